"""Load on a real server: paced calls, what they saw, and whether that is good enough."""
