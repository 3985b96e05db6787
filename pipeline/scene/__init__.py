"""What a line carries besides speech: tones, keys and music."""
