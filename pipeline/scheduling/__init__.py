"""Who is decoded when: the pure scheduler and the one worker thread."""
