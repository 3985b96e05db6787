"""Bytes to samples: codecs, framing, resampling."""
