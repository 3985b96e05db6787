"""What one channel of a call knows about the other: whether it is a copy of it, and whether it only hears it."""

from pipeline.channels.pair import ChannelPair, Origin

__all__ = ["ChannelPair", "Origin"]
