"""Recordings as the clips that engines are given: each utterance with some audio around it, one channel, 16 kHz."""

from collections.abc import Sequence

import numpy as np

from clients.audio_files import Recording, mix_channels, pick_channels, read_recording, resample
from clients.replay.manifest import ManifestEntry, Utterance
from clients.replay.pacing import MS_PER_S
from pipeline.benchmarks.schedule import Clip
from pipeline.config import EndpointingConfig
from pipeline.types import CORE_SAMPLE_RATE_HZ, SAMPLES_PER_MS

_PRE_ROLL_MS = EndpointingConfig().pre_roll_ms
_HANGOVER_MS = EndpointingConfig().hangover_ms
_MAX_CLIP_MS = EndpointingConfig().max_segment_ms + _PRE_ROLL_MS + _HANGOVER_MS
"""Longer ones would be cut in a call."""


def clips_of(entries: Sequence[ManifestEntry], limit: int | None) -> list[Clip]:
    """Up to `limit` clips, taken evenly from all there are; recordings without utterances are one clip each."""
    spans = [(entry, span) for entry in entries for span in _spans(entry) if span.text.strip()]
    fitting = [(entry, span) for entry, span in spans if span.end_ms - span.start_ms <= _MAX_CLIP_MS]
    count = len(fitting) if limit is None else min(limit, len(fitting))
    return [_clip(*fitting[number * len(fitting) // count]) for number in range(count)]


def _spans(entry: ManifestEntry) -> Sequence[Utterance]:
    if entry.utterances:
        return entry.utterances
    end_ms = round(entry.duration_s * MS_PER_S)
    return [Utterance(channel_tag=tag, start_ms=0, end_ms=end_ms, text=text) for tag, text in entry.texts.items()]


def _clip(entry: ManifestEntry, said: Utterance) -> Clip:
    recording = _channel(read_recording(entry.path), entry, said.channel_tag)
    samples = resample(recording, CORE_SAMPLE_RATE_HZ).samples[:, 0]
    start_ms, end_ms = _with_surroundings(entry, said, len(samples) // SAMPLES_PER_MS)
    cut = np.ascontiguousarray(samples[start_ms * SAMPLES_PER_MS : end_ms * SAMPLES_PER_MS], dtype=np.float32)
    return Clip(
        name=f"{entry.name}@{said.start_ms / MS_PER_S:.1f}",
        samples=cut,
        text=said.text,
        tail_samples=(end_ms - said.end_ms) * SAMPLES_PER_MS if entry.utterances else 0,
    )


def _channel(recording: Recording, entry: ManifestEntry, channel_tag: int) -> Recording:
    return mix_channels(recording) if entry.is_mixed else pick_channels(recording, [channel_tag])


def _with_surroundings(entry: ManifestEntry, said: Utterance, audio_ms: int) -> tuple[int, int]:
    """Pre-roll and hangover around an utterance, as far as nobody else speaks there on the same channel."""
    others = [u for u in entry.utterances if u.channel_tag == said.channel_tag and u is not said]
    before_ms = max((u.end_ms for u in others if u.end_ms <= said.start_ms), default=0)
    behind_ms = min((u.start_ms for u in others if u.start_ms >= said.end_ms), default=audio_ms)
    return max(before_ms, said.start_ms - _PRE_ROLL_MS), min(behind_ms, audio_ms, said.end_ms + _HANGOVER_MS)
