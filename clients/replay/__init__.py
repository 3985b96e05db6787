"""Recorded-call replay: plays recordings as calls and measures what comes back."""
