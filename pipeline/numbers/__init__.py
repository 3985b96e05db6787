"""Numbers in spoken text: whether one is still being said, and how it is written."""
