"""Drivers of a RecognitionSession: how a server would run it, without a server."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pipeline.config import DenoisingMode, SessionConfig, VadMode
from pipeline.events import RecognitionResult
from pipeline.session import NEED_AUDIO, Effect, RecognitionSession
from pipeline.types import AudioEncoding, AudioFormat, CancelDecode, DecodeRequest, DecodeResult, Hypothesis

Answer = Callable[[DecodeRequest], DecodeResult]


def words_by_length(request: DecodeRequest) -> DecodeResult:
    """One word per 300 ms of audio, depending on the audio itself."""
    count = max(1, len(request.audio) // 4_800)
    loudness = [int(1000 * float(np.abs(part).mean())) for part in np.array_split(request.audio, count)]
    transcript = " ".join(f"word{level}" for level in loudness)
    hypothesis = Hypothesis(
        transcript=transcript, confidence=0.9, language_code="en", tokens=(1, 2, 3), certainties=(0.9,) * count
    )
    return DecodeResult(request_id=request.request_id, alternatives=(hypothesis,))


@dataclass
class Log:
    """All effects of a session in order."""

    effects: list[Effect] = field(default_factory=list)
    most_interims_in_flight: int = 0
    """On one channel, requests neither answered nor cancelled."""

    def of(self, kind: type) -> list:
        return [effect for effect in self.effects if isinstance(effect, kind)]

    @property
    def finals(self) -> list[RecognitionResult]:
        return [result for result in self.of(RecognitionResult) if result.is_final]


def plain_session(num_channels: int = 1, **fields: Any) -> RecognitionSession:
    """A call on a line of 8 kHz where whatever is loud is speech; `fields` are those of SessionConfig."""
    audio_format = AudioFormat(encoding=AudioEncoding.LINEAR16, sample_rate_hz=8_000, num_channels=num_channels)
    plain: dict[str, Any] = {"denoising": DenoisingMode.OFF, "vad": VadMode.ENERGY}
    return RecognitionSession("call", SessionConfig(audio_format=audio_format, **plain | fields))


def run_lockstep(session: RecognitionSession, chunks: Iterable[bytes], answer: Answer = words_by_length) -> Log:
    """Answers every request before the next frame."""
    log = Log()

    def drain() -> None:
        while (effect := session.next_effect()) is not NEED_AUDIO:
            log.effects.append(effect)
            if isinstance(effect, DecodeRequest):
                session.receive_decode(answer(effect))

    for chunk in chunks:
        session.receive_audio(chunk)
        drain()
    session.receive_end()
    drain()
    session.close()
    return log


def run_delayed(
    session: RecognitionSession,
    chunks: Iterable[bytes],
    delays: Sequence[int],
    *,
    honour_cancel: bool = True,
    answer: Answer = words_by_length,
) -> Log:
    """Answers each request after so many further chunks (`delays`, cycling), thus late and out of order."""
    return _DelayedDriver(session, delays, honour_cancel, answer).run(chunks)


class _DelayedDriver:
    def __init__(self, session: RecognitionSession, delays: Sequence[int], honour_cancel: bool, answer: Answer) -> None:
        self._answer_of = answer
        self._session = session
        self._delays = delays
        self._honour_cancel = honour_cancel
        self._waiting: list[tuple[int, DecodeRequest]] = []
        self._interims_in_flight: dict[str, int] = {}
        self._num_requests = 0
        self._log = Log()

    def run(self, chunks: Iterable[bytes]) -> Log:
        for chunk in chunks:
            self._session.receive_audio(chunk)
            self._drain()
            self._answer([w for w in self._waiting if w[0] <= 0])
            self._waiting = [(delay - 1, request) for delay, request in self._waiting]
        self._session.receive_end()
        self._drain()
        while self._waiting:
            self._answer(list(self._waiting))
        self._session.close()
        return self._log

    def _drain(self) -> None:
        while (effect := self._session.next_effect()) is not NEED_AUDIO:
            self._log.effects.append(effect)
            if isinstance(effect, DecodeRequest):
                self._take_request(effect)
            elif isinstance(effect, CancelDecode):
                self._take_cancel(effect)

    def _take_request(self, request: DecodeRequest) -> None:
        self._waiting.append((self._delays[self._num_requests % len(self._delays)], request))
        self._num_requests += 1
        if not request.is_final:
            self._interims_in_flight[request.request_id] = request.channel_tag
            on_channel = sum(tag == request.channel_tag for tag in self._interims_in_flight.values())
            self._log.most_interims_in_flight = max(self._log.most_interims_in_flight, on_channel)

    def _take_cancel(self, cancel: CancelDecode) -> None:
        self._interims_in_flight.pop(cancel.request_id, None)
        if self._honour_cancel:
            self._waiting = [w for w in self._waiting if w[1].request_id != cancel.request_id]

    def _answer(self, due: list[tuple[int, DecodeRequest]]) -> None:
        for entry in due:
            if entry in self._waiting:
                self._waiting.remove(entry)
                self._interims_in_flight.pop(entry[1].request_id, None)
                self._session.receive_decode(self._answer_of(entry[1]))
                self._drain()
