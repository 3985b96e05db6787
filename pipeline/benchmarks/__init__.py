"""What engine and audio front end cost on this machine, and whether every path says the same."""
