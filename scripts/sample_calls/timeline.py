"""Lays the turns of a call on its channels and keeps the truth: who said what from when to when."""

import zlib
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sample_calls import line, sounds
from sample_calls.dialogue import ROLES, CallScript, Sound, Turn
from sample_calls.line import SAMPLE_RATE_HZ, Samples
from sample_calls.voice import Voice, VoiceSettings

SAMPLES_PER_MS = SAMPLE_RATE_HZ // 1000
OWN_GAP_MS = 200
"""Least silence between two turns of the same speaker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A stretch of one channel in samples: an utterance (text) or a sound (kind)."""

    channel_tag: int
    start_sample: int
    samples: Samples = field(repr=False, compare=False)
    text: str = ""
    sound_kind: str = ""
    key: str = ""
    """Of a pressed key."""

    @property
    def end_sample(self) -> int:
        """First sample behind the span."""
        return self.start_sample + len(self.samples)


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedCall:
    """A spoken call with its truth."""

    script: CallScript
    channels: NDArray[np.float32] = field(repr=False, compare=False)
    """Shape `(num_channels, num_samples)`."""
    utterances: tuple[Span, ...]
    """In order of their start."""
    sounds: tuple[Span, ...]
    """In order of their start; each key is one."""

    @property
    def duration_s(self) -> float:
        """Length of the recording."""
        return self.channels.shape[1] / SAMPLE_RATE_HZ

    @property
    def overlaps(self) -> list[tuple[int, int]]:
        """Start and end samples of the stretches where both parties talk."""
        agent, customer = ([s for s in self.utterances if s.channel_tag == tag] for tag in (1, 2))
        pairs = [
            (max(a.start_sample, c.start_sample), min(a.end_sample, c.end_sample)) for a in agent for c in customer
        ]
        return sorted((start, end) for start, end in pairs if start < end)


def render_call(script: CallScript, voice: Voice, seed: int) -> RenderedCall:
    """Speaks a whole call.

    Args:
        script: What happens.
        voice: Who speaks.
        seed: Of the line noise; the speech does not depend on it.

    Returns:
        The audio and, exact to the sample, what is where in it.
    """
    spans: list[Span] = []
    end = script.lead_in_ms * SAMPLES_PER_MS
    for step in script.steps:
        gap_ms = step.gap_ms if spans else 0
        start = end + gap_ms * SAMPLES_PER_MS
        if isinstance(step, Sound):
            spans += _render_sound(step, start)
            # The music's last audible note may fade before its time is over.
            end = max(spans[-1].end_sample, start + (0 if step.keys else step.duration_ms * SAMPLES_PER_MS))
        else:
            spans += _render_turn(step, script, voice, max(start, _free_from(spans, step.speaker)))
            end = max(end, spans[-1].end_sample)
    spans.sort(key=lambda span: span.start_sample)
    return RenderedCall(
        script=script,
        channels=_mix(script, spans, end + script.lead_out_ms * SAMPLES_PER_MS, seed),
        utterances=tuple(span for span in spans if span.text),
        sounds=tuple(span for span in spans if span.sound_kind),
    )


def _render_turn(turn: Turn, script: CallScript, voice: Voice, start: int) -> list[Span]:
    own_shift = script.customer_shift if turn.speaker == "customer" else 1.0
    settings = VoiceSettings(shift=own_shift if turn.shift is None else turn.shift, speed=script.speed)
    spans = []
    for piece in turn.pieces:
        start += piece.pause_before_ms * SAMPLES_PER_MS
        samples = voice.speak(piece.say, settings, line.SPEECH_LEVEL_DBFS + turn.level_db)
        spans.append(
            Span(channel_tag=ROLES.index(turn.speaker) + 1, start_sample=start, samples=samples, text=piece.text)
        )
        start += len(samples)
    return spans


def _render_sound(sound: Sound, start: int) -> list[Span]:
    tag = ROLES.index(sound.speaker) + 1
    if sound.keys:
        spans = []
        for key in sound.keys:
            samples = sounds.key_tone(key)
            spans.append(Span(channel_tag=tag, start_sample=start, samples=samples, sound_kind="key", key=key))
            start += len(samples) + sounds.KEY_PAUSE_SAMPLES
        return spans
    samples = sounds.make(sound.kind, sound.duration_ms * SAMPLES_PER_MS)
    return [Span(channel_tag=tag, start_sample=start, samples=samples, sound_kind=sound.kind)]


def _free_from(placed: list[Span], speaker: str) -> int:
    tag = ROLES.index(speaker) + 1
    ends = [span.end_sample + OWN_GAP_MS * SAMPLES_PER_MS for span in placed if span.channel_tag == tag]
    return max(ends, default=0)


def _mix(script: CallScript, spans: list[Span], num_samples: int, seed: int) -> NDArray[np.float32]:
    name_key = zlib.crc32(script.name.encode())
    channels = np.stack(
        [
            line.line_noise(num_samples, np.random.default_rng([seed, name_key, tag]))
            for tag in range(1, script.num_channels + 1)
        ]
    )
    for span in spans:
        channels[span.channel_tag - 1, span.start_sample : span.end_sample] += span.samples
    return channels
