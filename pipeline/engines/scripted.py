"""An engine that answers from a script: for tests, demos and load tests without a model."""

import time
from collections.abc import Callable, Collection
from itertools import pairwise

from pipeline.engines.base import EngineInfo
from pipeline.errors import EngineError
from pipeline.types import (
    CORE_SAMPLE_RATE_HZ,
    SAMPLES_PER_MS,
    Batch,
    DecodeRequest,
    DecodeResult,
    DropReason,
    Hypothesis,
    Word,
)

Script = Callable[[DecodeRequest], str]
"""The transcript of a request; raises EngineError to make the request fail alone."""

WORD_MS = 300
"""Audio behind each word of `counting_script`."""
_WORD_SAMPLES = WORD_MS * SAMPLES_PER_MS
_CONFIDENCE = 0.9


def counting_script(request: DecodeRequest) -> str:
    """Says "word1 word2 ...", a word for every 300 ms of audio begun: grows with the segment, the same each time."""
    num_words = -(-len(request.audio) // _WORD_SAMPLES)
    return " ".join(f"word{number}" for number in range(1, num_words + 1))


class ScriptedEngine:
    """Answers by script, as slowly and as badly as it is told to. Not thread-safe, like any engine."""

    def __init__(
        self,
        model: str = "scripted:demo",
        *,
        script: Script = counting_script,
        delay_s: float = 0.0,
        fail_on: Collection[int] = (),
        raise_on: Collection[int] = (),
    ) -> None:
        """Makes an engine.

        Args:
            model: its public name.
            script: request to transcript.
            delay_s: compute time of a batch.
            fail_on: requests, counted from 1, that are answered with an error.
            raise_on: batches, counted from 1, that raise.
        """
        self._info = EngineInfo(
            model=model,
            language_codes=("en", "de", "fr"),
            precision="none",
            device="cpu",
            max_audio_ms=30_000,
            can_translate=True,
            can_detect_language=True,
            max_alternatives=3,
        )
        self._script = script
        self._delay_s = delay_s
        self._fail_on = frozenset(fail_on)
        self._raise_on = frozenset(raise_on)
        self.num_requests = 0
        self.num_batches = 0
        self.is_closed = False

    @property
    def info(self) -> EngineInfo:
        """See Engine."""
        return self._info

    def warm_up(self) -> None:
        """See Engine."""

    def transcribe(self, batch: Batch) -> list[DecodeResult]:
        """See Engine."""
        self.num_batches += 1
        if self._delay_s:
            time.sleep(self._delay_s)
        if self.num_batches in self._raise_on:
            raise EngineError(f"batch {self.num_batches} fails, as the script says")
        return [self._answer(request) for request in batch.requests]

    def release(self, segment_keys: Collection[tuple[str, str]]) -> None:
        """See Engine."""

    def close(self) -> None:
        """See Engine."""
        self.is_closed = True

    def _answer(self, request: DecodeRequest) -> DecodeResult:
        self.num_requests += 1
        if self.num_requests in self._fail_on:
            error = f"request {self.num_requests} fails, as the script says"
            return DecodeResult(request_id=request.request_id, error=error)
        try:
            transcript = self._script(request)
        except EngineError as error:
            return DecodeResult(request_id=request.request_id, error=str(error))
        count = request.hints.num_alternatives if request.is_final else 1
        alternatives = tuple(_hypothesis(request, transcript, rank) for rank in range(count)) if transcript else ()
        dropped = DropReason.NO_SPEECH if request.is_final and not alternatives else None
        languages = (("en", 1.0),) if request.hints.detects_language else ()
        return DecodeResult(
            request_id=request.request_id,
            alternatives=alternatives,
            language_probabilities=languages,
            dropped=dropped,
        )


def _hypothesis(request: DecodeRequest, transcript: str, rank: int) -> Hypothesis:
    """Lower ranks differ in a mark at the end."""
    text = transcript + "?" * rank
    wants_words = request.is_final and request.hints.word_details
    language = request.hints.language_code
    return Hypothesis(
        transcript=text,
        words=_words(text, len(request.audio)) if wants_words else (),
        confidence=_CONFIDENCE / (rank + 1),
        language_code="en" if language == "auto" else language,
        tokens=tuple(range(len(text.split()))),
        certainties=(1.0,) * len(text.split()),
    )


def _words(text: str, num_samples: int) -> tuple[Word, ...]:
    """Spreads the words evenly over the audio."""
    words = text.split()
    audio_ms = num_samples * 1000 // CORE_SAMPLE_RATE_HZ
    edges_ms = [audio_ms * index // len(words) for index in range(len(words) + 1)]
    return tuple(
        Word(text=word, start_ms=start_ms, end_ms=end_ms, confidence=_CONFIDENCE)
        for word, (start_ms, end_ms) in zip(words, pairwise(edges_ms), strict=True)
    )
