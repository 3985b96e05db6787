"""The result side of one channel: asks for decodes and puts their answers in order.

Rules:
1. Each segment gets exactly one final; finals come out in audio order, whatever order they were decoded in.
2. No interim of a segment after its final, none before the final of the segment before.
3. At most one interim is in flight; a newer revision cancels the older. An answer that comes all the same is
   still shown if nothing newer was: under load, dropping it would leave the caller with nothing.
4. An interim never takes back what was declared stable; one that would is shown from there on.
5. A final may be asked for early, when a pause may turn out to be the end. If it does, the answer is the final, since
   it has heard the same audio; if speech goes on, it was one more interim.
6. A final in another language than the finals before it allow (pipeline/language.py) is asked for once more.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import replace

from pipeline.config import SessionConfig
from pipeline.events import NoticeCode, RecognitionResult, SessionNotice, WithheldReason
from pipeline.language import LanguageEpochs
from pipeline.pending import EarlyFinal, EarlyWords, PendingSegment, speech_s
from pipeline.postprocessing import format_all, present
from pipeline.segmentation import OpenSegment
from pipeline.stabilization import Stabilizer
from pipeline.types import (
    SAMPLES_PER_MS,
    CancelDecode,
    DecodeHints,
    DecodeRequest,
    DecodeResult,
    SpeechSegment,
)

_PERCENT = 100

SequencerEffect = DecodeRequest | CancelDecode | RecognitionResult | SessionNotice | EarlyWords


class ResultSequencer:
    """Requests and results of one channel, in order."""

    def __init__(self, session_id: str, channel_tag: int, config: SessionConfig) -> None:
        self._session_id = session_id
        self._channel_tag = channel_tag
        self._config = config
        self._languages = LanguageEpochs(config.hints)
        self._segments: deque[PendingSegment] = deque()
        self._by_request: dict[str, tuple[PendingSegment, int]] = {}

    @property
    def is_idle(self) -> bool:
        """Whether every segment has its final."""
        return not self._segments

    @property
    def earliest_unfinished_sample(self) -> int | None:
        """Start of the first segment without a final, call clock at 16 kHz."""
        return self._segments[0].start_sample if self._segments else None

    @property
    def earliest_closed_sample(self) -> int | None:
        """Start of the first segment that waits for its final words alone, call clock at 16 kHz."""
        return self._segments[0].start_sample if self._segments and self._segments[0].closed is not None else None

    @property
    def first_speech_start_sample(self) -> int | None:
        """Where speech began in the first segment without a final, call clock at 16 kHz."""
        return self._segments[0].speech_start_sample if self._segments else None

    @property
    def newest_hints(self) -> DecodeHints:
        """What holds for speech that begins now."""
        return self._languages.newest_hints

    def update_hints(self, hints: DecodeHints, from_sample: int) -> None:
        """New hints for speech that begins at `from_sample` or later, call clock at 16 kHz."""
        self._languages.update(hints, from_sample)

    def request_interim(self, heard: OpenSegment, speech_end_sample: int) -> Iterator[SequencerEffect]:
        """Asks for the words of the segment under way."""
        segment = self._find(heard)
        yield from self._cancel(segment)
        request = self._request(segment, heard, speech_end_sample, is_final=False)
        segment.in_flight = request.request_id
        yield request

    def request_early_final(self, heard: OpenSegment, speech_end_sample: int) -> Iterator[SequencerEffect]:
        """Asks for the final words of a segment that may be over."""
        segment = self._find(heard)
        yield from self._cancel(segment)
        request = self._request(segment, heard, speech_end_sample, is_final=True)
        segment.in_flight = request.request_id
        segment.early = EarlyFinal(segment.revision, len(heard.samples))
        yield request

    def request_final(self, closed: SpeechSegment) -> Iterator[SequencerEffect]:
        """Asks for the final words of a closed segment, if that has not been done already."""
        segment = self._find(closed)
        segment.closed = closed
        early = segment.early
        if early is not None and early.revision == segment.revision and early.num_samples == len(closed.samples):
            segment.final = early.result
            yield from self._release_finals()
            return
        yield from self._cancel(segment)
        yield self._request(segment, closed, closed.speech_end_sample, is_final=True)

    def withhold(self, closed: SpeechSegment, reason: WithheldReason) -> Iterator[SequencerEffect]:
        """Gives a closed segment a final without words, whatever was asked for it."""
        segment = self._find(closed)
        segment.closed, segment.withheld = closed, reason
        yield from self._cancel(segment)
        self._forget_requests(segment)
        segment.final = DecodeResult(request_id="")
        yield from self._release_finals()

    def receive(self, result: DecodeResult) -> Iterator[SequencerEffect]:
        """Takes an answer; unknown and outdated ones are ignored."""
        if (known := self._by_request.pop(result.request_id, None)) is None:
            return
        segment, revision = known
        if segment.in_flight == result.request_id:
            segment.in_flight = None
        if segment.closed is not None and revision == segment.revision:
            segment.final = result
            yield from self._release_finals()
            return
        if segment.early is not None and segment.early.revision == revision:
            segment.early.result = result
            yield from self._tell_early_words(segment, result)
        if revision > segment.shown_revision and result.error is None:
            yield from self._show_interim(segment, revision, result)

    def _tell_early_words(self, segment: PendingSegment, result: DecodeResult) -> Iterator[EarlyWords]:
        is_newest = segment.early is not None and segment.early.revision == segment.revision
        if not self._config.turn_events or not is_newest or segment is not self._segments[0]:
            return
        if shown := present(result.alternatives[:1], 0, 0):
            _, speech_end_sample = segment.heard_samples[segment.revision]
            yield EarlyWords(
                segment_id=segment.segment_id, transcript=shown[0].transcript, speech_end_sample=speech_end_sample
            )

    def _find(self, heard: OpenSegment | SpeechSegment) -> PendingSegment:
        if not self._segments or self._segments[-1].segment_id != heard.segment_id:
            stabilizer = Stabilizer(self._config.interim.stable_after_ms)
            language = self._languages.of(heard.speech_start_sample)
            self._segments.append(PendingSegment(heard, stabilizer, language))
        return self._segments[-1]

    def _cancel(self, segment: PendingSegment) -> Iterator[CancelDecode]:
        if segment.in_flight is not None:
            yield CancelDecode(request_id=segment.in_flight, session_id=self._session_id)
            segment.in_flight = None

    def _request(
        self,
        segment: PendingSegment,
        heard: OpenSegment | SpeechSegment,
        speech_end_sample: int,
        *,
        is_final: bool,
        hints: DecodeHints | None = None,
    ) -> DecodeRequest:
        segment.revision += 1
        request_id = f"{self._session_id}/{segment.segment_id}/{segment.revision}"
        segment.heard_samples[segment.revision] = (len(heard.samples), speech_end_sample)
        self._by_request[request_id] = (segment, segment.revision)
        return DecodeRequest(
            request_id=request_id,
            session_id=self._session_id,
            segment_id=segment.segment_id,
            channel_tag=self._channel_tag,
            revision=segment.revision,
            audio=heard.samples,
            is_final=is_final,
            hints=hints or segment.language.hints_now(is_final=is_final),
            draft=segment.draft,
            speech_score=heard.speech_score,
        )

    def _show_interim(self, segment: PendingSegment, revision: int, result: DecodeResult) -> Iterator[SequencerEffect]:
        segment.shown_revision = revision
        if not result.alternatives:
            return
        segment.draft = result.alternatives[0].tokens
        if not self._config.interim.enabled:
            return  # a final that was asked for too early
        interim = self._interim(segment, revision, result)
        if interim is None:
            return
        if segment is self._segments[0]:
            yield interim
        else:
            segment.waiting_interim = interim

    def _interim(self, segment: PendingSegment, revision: int, result: DecodeResult) -> RecognitionResult | None:
        num_samples, speech_end_sample = segment.heard_samples[revision]
        end_ms = segment.start_ms + num_samples // SAMPLES_PER_MS
        alternatives = present(result.alternatives[:1], segment.start_ms, end_ms)
        if not alternatives:
            return None
        best = alternatives[0]
        text = segment.stabilizer.update(best.transcript, num_samples // SAMPLES_PER_MS, best.certainties)
        return RecognitionResult(
            result_id=segment.segment_id,
            channel_tag=self._channel_tag,
            alternatives=(replace(best, transcript=text.transcript),),
            is_final=False,
            stability=text.stability,
            stable_length=text.stable_length,
            result_start_ms=segment.start_ms,
            result_end_ms=end_ms,
            speech_start_ms=segment.speech_start_sample // SAMPLES_PER_MS,
            speech_end_ms=speech_end_sample // SAMPLES_PER_MS,
        )

    def _release_finals(self) -> Iterator[SequencerEffect]:
        """Emits the finals at the head of the queue, then the interim that waited for them."""
        while self._segments and (result := self._segments[0].final) is not None:
            yield from self._settle_language(self._segments[0], result)
            if self._segments[0].final is None:
                return
            segment = self._segments.popleft()
            self._forget_requests(segment)
            if result.error is not None:
                yield SessionNotice(
                    code=NoticeCode.DECODE_FAILED,
                    message=f"segment {segment.segment_id} could not be decoded: {result.error}",
                    channel_tag=self._channel_tag,
                )
            yield self._final(segment, result)
        if self._segments and (interim := self._segments[0].waiting_interim) is not None:
            self._segments[0].waiting_interim = None
            yield interim

    def _settle_language(self, segment: PendingSegment, result: DecodeResult) -> Iterator[SequencerEffect]:
        """Once every final before this one is out, its language is sure: asks again where it was decoded in another."""
        if segment.language_is_settled or not result.alternatives:
            return
        segment.language_is_settled = True
        closed = segment.closed_segment
        verdict = segment.language.hear(result.language_probabilities, speech_s(closed))
        if verdict.newly_locked is not None:
            percent = round(_PERCENT * verdict.newly_locked)
            yield SessionNotice(
                code=NoticeCode.LANGUAGE_LOCKED,
                message=f"the language is {verdict.language_code} (probability {percent} %); it is kept from here on",
                channel_tag=self._channel_tag,
            )
        if verdict.language_code not in ("", result.alternatives[0].language_code):
            segment.final = None
            segment.draft = ()  # words of another language
            hints = segment.language.hints_in(verdict.language_code)
            yield self._request(segment, closed, closed.speech_end_sample, is_final=True, hints=hints)

    def _forget_requests(self, segment: PendingSegment) -> None:
        for revision in segment.heard_samples:
            self._by_request.pop(f"{self._session_id}/{segment.segment_id}/{revision}", None)

    def _final(self, segment: PendingSegment, result: DecodeResult) -> RecognitionResult:
        closed = segment.closed_segment
        end_ms = closed.end_sample // SAMPLES_PER_MS
        alternatives = format_all(present(result.alternatives, segment.start_ms, end_ms))
        return RecognitionResult(
            result_id=segment.segment_id,
            channel_tag=self._channel_tag,
            alternatives=alternatives,
            is_final=True,
            stability=1.0,
            stable_length=len(alternatives[0].transcript) if alternatives else 0,
            result_start_ms=segment.start_ms,
            result_end_ms=end_ms,
            speech_start_ms=segment.speech_start_sample // SAMPLES_PER_MS,
            speech_end_ms=closed.speech_end_sample // SAMPLES_PER_MS,
            end_reason=closed.end_reason,
            withheld=segment.withheld,
        )
