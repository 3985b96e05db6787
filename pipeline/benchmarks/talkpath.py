"""Talkpath's own engine in a benchmark: with drafts or without, batch by batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pipeline.benchmarks.running import Hearing
from pipeline.benchmarks.variants import Setup
from pipeline.engines.base import Engine
from pipeline.engines.whisper.settings import WhisperSettings
from pipeline.errors import EngineError
from pipeline.types import CORE_SAMPLE_RATE_HZ, Batch, DecodeHints, DecodeRequest, DecodeResult

if TYPE_CHECKING:
    from pipeline.engines.whisper.engine import WhisperEngine

_SESSION = "bench"


def open_engine(setup: Setup, precision: str) -> WhisperEngine:
    """A warm engine with its default settings.

    Raises:
        InvalidConfigError: There is no such precision.
        EngineError: The device does not have it, or the model is not there.
    """
    engine = load_engine(
        WhisperSettings(model=setup.model, device=setup.device, precision=precision, num_threads=setup.num_threads)
    )
    engine.warm_up()
    return engine


def load_engine(settings: WhisperSettings) -> WhisperEngine:
    """An engine that has not decoded anything yet."""
    from pipeline.engines.whisper.engine import WhisperEngine  # brings torch: the command's help needs none

    return WhisperEngine(settings)


class TalkpathTranscriber:
    """Asks an engine as sessions do."""

    def __init__(self, name: str, engine: Engine, *, with_drafts: bool = True) -> None:
        self._name = name
        self._engine = engine
        self._with_drafts = with_drafts
        self._drafts: dict[int, tuple[int, ...]] = {}
        """By clip: tokens of the newest hypothesis."""

    @property
    def name(self) -> str:
        """See Transcriber."""
        return self._name

    def warm_up(self) -> None:
        """See Transcriber."""
        self._engine.warm_up()

    def transcribe(self, hearings: Sequence[Hearing]) -> list[str]:
        """See Transcriber."""
        requests = tuple(self._request(hearing) for hearing in hearings)
        results = self._engine.transcribe(batch_of(requests))
        for hearing, result in zip(hearings, results, strict=True):
            if self._with_drafts and result.alternatives:
                self._drafts[hearing.turn.clip] = result.alternatives[0].tokens
        ended = [request for request in requests if request.is_final]
        for request in ended:
            self._drafts.pop(int(request.segment_id), None)
        self._engine.release([request.segment_key for request in ended])
        return [text_of(result) for result in results]

    def close(self) -> None:
        """See Transcriber."""
        self._engine.close()

    def _request(self, hearing: Hearing) -> DecodeRequest:
        turn = hearing.turn
        return DecodeRequest(
            # As in calls: each clip is spoken on a line of its own.
            request_id=f"{_SESSION}-{turn.clip}/{turn.clip}/{turn.revision}",
            session_id=f"{_SESSION}-{turn.clip}",
            segment_id=str(turn.clip),
            channel_tag=1,
            revision=turn.revision,
            audio=hearing.audio,
            is_final=turn.is_final,
            hints=DecodeHints(),
            draft=self._drafts.get(turn.clip, ()),
        )


def batch_of(requests: Sequence[DecodeRequest]) -> Batch:
    """One batch of these requests."""
    longest_s = max(len(request.audio) for request in requests) / CORE_SAMPLE_RATE_HZ
    return Batch(requests=tuple(requests), padded_audio_s=longest_s * len(requests))


def text_of(result: DecodeResult) -> str:
    """The best transcript; empty when there are no words.

    Raises:
        EngineError: The request failed.
    """
    if result.error is not None:
        raise EngineError(f"{result.request_id}: {result.error}")
    return result.alternatives[0].transcript if result.alternatives else ""
