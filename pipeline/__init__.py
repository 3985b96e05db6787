"""Audio in, transcript out: the recognition core, engines and scheduling."""
