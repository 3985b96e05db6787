"""The other end of the wire: SDK, replay harness. Speaks the public contract only."""
