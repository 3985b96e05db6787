"""Engines: whatever turns a batch of decode requests into hypotheses."""
