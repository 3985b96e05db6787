"""Engines in processes of their own: no lane waits for another one's interpreter, nor for the calls' audio."""
