"""The Whisper engine: weights, features, encoder, decoder, search, gates and word times."""
