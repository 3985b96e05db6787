"""What else than speech is on a line: keys, call-progress tones, beeps, silence.

Every detector hears one channel's original audio at 16 kHz and keeps its own state; `track` runs them all.
"""
