"""Measures how likely each 10 ms frame of a channel holds speech. `endpointing` decides what to make of it."""

from pipeline.vad.detectors import CombinedVad, EnergyVad, SileroVad, VoiceActivityDetector, WebRtcVad, create_vad

__all__ = ["CombinedVad", "EnergyVad", "SileroVad", "VoiceActivityDetector", "WebRtcVad", "create_vad"]
