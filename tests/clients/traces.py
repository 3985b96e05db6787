"""Hand-made traces of played calls."""

from collections.abc import Sequence
from pathlib import Path

from clients.errors import RecognitionError
from clients.replay.manifest import ManifestEntry, Utterance
from clients.replay.plan import PlannedCall
from clients.replay.player import CallTrace, SentChunk, TimedEvent
from clients.types import Alternative, CallEvent, CallSettings, ChannelRole, EndReason, Result

CHUNK_MS = 100


def interim(text: str, *, end_ms: int, start_ms: int = 0, stable: int = 0, tag: int = 1, segment: str = "s1") -> Result:
    return Result(
        result_id=segment,
        channel_tag=tag,
        alternatives=(Alternative(transcript=text, confidence=0.5),),
        is_final=False,
        stability=0.5,
        stable_length=stable,
        start_ms=start_ms,
        end_ms=end_ms,
    )


def final(
    text: str,
    *,
    end_ms: int,
    start_ms: int = 0,
    tag: int = 1,
    segment: str = "s1",
    reason: EndReason = EndReason.SILENCE,
    latency_ms: float | None = None,
) -> Result:
    return Result(
        result_id=segment,
        channel_tag=tag,
        alternatives=(Alternative(transcript=text, confidence=0.9),) if text else (),
        is_final=True,
        language_code="en",
        start_ms=start_ms,
        end_ms=end_ms,
        end_reason=reason,
        latency_ms=latency_ms,
    )


def entry(
    texts: dict[int, str], utterances: Sequence[tuple[int, int, int]] = (), language: str = "en"
) -> ManifestEntry:
    return ManifestEntry(
        path=Path("a.wav"),
        name="a.wav",
        language_code=language,
        texts=texts,
        utterances=tuple(Utterance(channel_tag=tag, start_ms=s, end_ms=e, text="") for tag, s, e in utterances),
    )


def trace(
    events: Sequence[tuple[float, CallEvent]],
    *,
    reference: ManifestEntry | None = None,
    speed: float = 1.0,
    audio_ms: int = 5_000,
    acknowledged_ms: int = 5_000,
    error: RecognitionError | None = None,
    index: int = 0,
    name: str = "a.wav",
) -> CallTrace:
    """A call whose chunks were sent exactly when due."""
    pace = speed or 1_000.0
    ends_ms = range(CHUNK_MS, audio_ms + 1, CHUNK_MS)
    return CallTrace(
        call=PlannedCall(
            index=index,
            name=name,
            path=Path(name),
            duration_s=audio_ms / 1_000,
            settings=CallSettings(
                sample_rate_hz=8000, num_channels=2, channel_roles={1: ChannelRole.AGENT, 2: ChannelRole.CUSTOMER}
            ),
            is_mixed=False,
            reference=reference,
        ),
        speed=speed,
        events=tuple(TimedEvent(t_s=t_s, event=event) for t_s, event in events),
        sent=tuple(SentChunk(end_ms=end_ms, t_s=end_ms / 1_000 / pace) for end_ms in ends_ms),
        acknowledged_ms=acknowledged_ms,
        wall_s=audio_ms / 1_000 / pace,
        error=error,
    )
