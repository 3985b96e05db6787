"""Speech recognition of telephone calls."""
