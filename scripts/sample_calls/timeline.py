"""Lays the turns of a call on its channels and keeps the truth: who said what from when to when."""

import zlib
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sample_calls import line
from sample_calls.dialogue import ROLES, CallScript, Hold, Turn
from sample_calls.line import SAMPLE_RATE_HZ, Samples
from sample_calls.voice import Voice, VoiceSettings

SAMPLES_PER_MS = SAMPLE_RATE_HZ // 1000
OWN_GAP_MS = 200
"""Least silence between two turns of the same speaker."""
CUSTOMER_TAG = ROLES.index("customer") + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A stretch of one channel in samples: an utterance (text) or a hold (kind)."""

    channel_tag: int
    start_sample: int
    samples: Samples = field(repr=False, compare=False)
    text: str = ""
    hold_kind: str = ""

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
    holds: tuple[Span, ...]

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
        if isinstance(step, Hold):
            spans.append(_render_hold(step, start))
            # The music's last audible note may fade before the hold ends.
            end = start + step.duration_ms * SAMPLES_PER_MS
        else:
            spans += _render_turn(step, script, voice, max(start, _free_from(spans, step.speaker)))
            end = max(end, spans[-1].end_sample)
    spans.sort(key=lambda span: span.start_sample)
    return RenderedCall(
        script=script,
        channels=_mix(script, spans, end + script.lead_out_ms * SAMPLES_PER_MS, seed),
        utterances=tuple(span for span in spans if span.text),
        holds=tuple(span for span in spans if span.hold_kind),
    )


def _render_turn(turn: Turn, script: CallScript, voice: Voice, start: int) -> list[Span]:
    shift = script.customer_shift if turn.speaker == "customer" else 1.0
    settings = VoiceSettings(shift=shift, speed=script.speed)
    spans = []
    for piece in turn.pieces:
        start += piece.pause_before_ms * SAMPLES_PER_MS
        samples = voice.speak(piece.say, settings, line.SPEECH_LEVEL_DBFS + turn.level_db)
        spans.append(
            Span(channel_tag=ROLES.index(turn.speaker) + 1, start_sample=start, samples=samples, text=piece.text)
        )
        start += len(samples)
    return spans


def _render_hold(hold: Hold, start: int) -> Span:
    num_samples = hold.duration_ms * SAMPLES_PER_MS
    samples = line.hold_music(num_samples) if hold.kind == "music" else np.zeros(num_samples, np.float32)
    return Span(channel_tag=CUSTOMER_TAG, start_sample=start, samples=samples, hold_kind=hold.kind)


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
