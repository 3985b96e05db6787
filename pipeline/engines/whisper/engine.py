"""The Whisper engine: requests in, hypotheses out, for single requests and batches alike."""

import math
import os
import zlib
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch

from pipeline.engines.base import EngineInfo
from pipeline.engines.whisper.attempts import Attempts, Found
from pipeline.engines.whisper.biasing import HintBooks
from pipeline.engines.whisper.cache import CrossStates
from pipeline.engines.whisper.contexts import SegmentContext, SegmentContexts
from pipeline.engines.whisper.features import LogMel
from pipeline.engines.whisper.hypotheses import HeardAudio, make_hypotheses, settle
from pipeline.engines.whisper.info import ENGLISH, describe
from pipeline.engines.whisper.language import Languages, languages_of
from pipeline.engines.whisper.model import build_model, choose_device, choose_precision
from pipeline.engines.whisper.requests import level_dbfs, refusal
from pipeline.engines.whisper.rescoring import rescored
from pipeline.engines.whisper.rules import TokenRules
from pipeline.engines.whisper.search import Candidate, RowPlan, Search, token_budget
from pipeline.engines.whisper.settings import MAX_CPU_LANES, WHOLE_WINDOW_MS, WhisperSettings
from pipeline.engines.whisper.sources import load_model
from pipeline.engines.whisper.warm_up import warm_up_requests
from pipeline.engines.whisper.windows import Listener
from pipeline.errors import EngineError
from pipeline.types import (
    CORE_SAMPLE_RATE_HZ,
    SAMPLES_PER_MS,
    Batch,
    DecodeHints,
    DecodeRequest,
    DecodeResult,
    DropReason,
    Hypothesis,
)

_ENGLISH_TOKENS_PER_S = 12.0
_OTHER_TOKENS_PER_S = 30.0
_INTERIM_BUDGET = 0.6
"""An interim that runs on is a loop: it holds up its batch and would not be shown."""
_FEW_TOKENS_PER_S = 2.3
"""Speech without longer pauses has more. In self-similar speech ("press 1 to ..., press 2 to ...") Whisper likes to end
behind the first sentence."""
_UNSPOKEN_S = 0.8
"""Pre-roll, post-roll and the like."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """A request on its way through the engine."""

    request: DecodeRequest
    frames: torch.Tensor = field(repr=False)
    languages: Languages
    plan: RowPlan
    context: SegmentContext | None = None

    @property
    def language_code(self) -> str:
        """What it is decoded in."""
        return self.languages.code


class WhisperEngine:
    """Whisper with real weights; implements `pipeline.engines.base.Engine`.

    Finals are decoded from their whole audio, interims from what was said so far, both with remembered silence up to
    the 30 s that the model was trained on. Between requests only what interims of an open segment share is kept.
    """

    def __init__(self, settings: WhisperSettings) -> None:
        self._settings = settings
        device = choose_device(settings.device)
        num_cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        num_lanes = settings.num_lanes or (min(MAX_CPU_LANES, num_cores) if device.type == "cpu" else 1)
        self._num_threads = settings.num_threads or max(1, num_cores // num_lanes)
        torch.set_num_threads(1)  # the process may be forked between here and `warm_up`: no pool of threads before that
        precision = choose_precision(settings.precision, device)
        self._model = build_model(load_model(settings.model), device, precision)
        self._log_mel = LogMel(self._model.spec.num_mel_bins, device)
        with torch.inference_mode():
            self._listener = Listener(self._model.encoder, self._model.decoder, self._log_mel)
        vocabulary = self._model.vocabulary
        rules = TokenRules(self._model.spec, vocabulary, settings.timestamps, device)
        self._attempts = Attempts(Search(self._model.decoder, vocabulary, rules), settings.gates)
        self._contexts = SegmentContexts(settings.max_contexts)
        self._hint_books = HintBooks(settings.max_hint_books)
        self._info = describe(settings, self._model, num_lanes)

    @property
    def info(self) -> EngineInfo:
        """What this engine is; constant after construction."""
        return self._info

    def warm_up(self) -> None:
        """Decodes interims and finals of real speech, so that the first call finds memory and kernels ready.

        Raises:
            EngineError: The model cannot decode.
        """
        torch.set_num_threads(self._num_threads)
        for request in warm_up_requests():
            audio_s = len(request.audio) / CORE_SAMPLE_RATE_HZ
            result = self.transcribe(Batch(requests=(request,), padded_audio_s=audio_s))[0]
            if result.error is not None:
                raise EngineError(f"model {self._info.model!r} does not decode: {result.error}")

    def transcribe(self, batch: Batch) -> list[DecodeResult]:
        """Decodes a batch: one result a request, same order; a request that cannot be decoded gets an error."""
        results: dict[int, DecodeResult] = {}
        finals: list[int] = []
        interims: list[int] = []
        for index, request in enumerate(batch.requests):
            if (error := refusal(request, self._info)) is not None:
                results[index] = DecodeResult(request_id=request.request_id, error=error)
            elif level_dbfs(request.audio) < self._settings.gates.min_level_dbfs:
                results[index] = _without_words(request, DropReason.TOO_QUIET)
            else:
                (finals if request.is_final else interims).append(index)
        with torch.inference_mode():
            for indices, decode in ((finals, self._finals), (interims, self._interims)):
                found = decode([batch.requests[i] for i in indices]) if indices else []
                results.update(zip(indices, found, strict=True))
        return [results[index] for index in range(len(batch.requests))]

    def release(self, segment_keys: Collection[tuple[str, str]]) -> None:
        """Forgets what was settled of these segments."""
        self._contexts.release(segment_keys)

    def close(self) -> None:
        """Frees the model. No call may follow."""
        del self._model, self._listener, self._attempts
        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    def _finals(self, requests: Sequence[DecodeRequest]) -> list[DecodeResult]:
        cross, rows = self._listen(requests, self._settings.final_padding_ms)
        by_beams: dict[int, list[int]] = defaultdict(list)
        for index, row in enumerate(rows):
            by_beams[self._num_beams(row.request.hints)].append(index)
        found: dict[int, Found] = {}
        for num_beams, indices in by_beams.items():
            plans, frames = [rows[i].plan for i in indices], [rows[i].frames for i in indices]
            of_beams = self._attempts.finals(cross.select(indices), plans, num_beams, frames)
            found.update(zip(indices, of_beams, strict=True))
        return [self._final(cross.select([i]), row, found[i]) for i, row in enumerate(rows)]

    def _interims(self, requests: Sequence[DecodeRequest]) -> list[DecodeResult]:
        cross, rows = self._follow(requests)
        found = self._attempts.interims(cross, [row.plan for row in rows])
        for candidates, row in zip(found, rows, strict=True):
            if candidates and row.context is not None:
                best, heard = candidates[0], len(row.request.audio)
                row.context.text.note(row.plan.prompt, best.tokens, best.log_probs, heard)
        return [
            _result(row, self._interim(cross, index, row, candidates))
            for index, (candidates, row) in enumerate(zip(found, rows, strict=True))
        ]

    def _listen(self, requests: Sequence[DecodeRequest], padding_ms: int) -> tuple[CrossStates, list[_Row]]:
        """Encodes the audio of requests, finds their languages and plans their decoding."""
        frames = [self._log_mel.frames(self._samples(request)) for request in requests]
        cross = self._listener.listen(frames, padding_ms)
        return cross, self._rows(cross, requests, frames)

    def _follow(self, requests: Sequence[DecodeRequest]) -> tuple[CrossStates, list[_Row]]:
        """The same for utterances under way, of which the beginning may be encoded already."""
        settings = self._settings
        contexts = [self._contexts.of(r.segment_key) for r in requests]
        followed = [
            self._listener.follow(context, self._samples(r), settings.interim_padding_ms, settings.look_ahead_ms)
            for context, r in zip(contexts, requests, strict=True)
        ]
        cross = CrossStates([row for row, _ in followed])
        rows = self._rows(cross, requests, [frames for _, frames in followed])
        return cross, [self._settled(row, context) for row, context in zip(rows, contexts, strict=True)]

    def _settled(self, row: _Row, context: SegmentContext) -> _Row:
        """The row with what needs no decoding."""
        if self._settings.timestamps:
            return row
        plan, text = row.plan, context.text
        min_age_samples = self._settings.settle_text_ms * SAMPLES_PER_MS
        num_settled = min(
            text.num_settled(plan.prompt, len(row.request.audio), min_age_samples), plan.max_new_tokens - 1
        )
        if self._settings.settle_text_ms == WHOLE_WINDOW_MS or plan.draft[:num_settled] != text.tokens[:num_settled]:
            num_settled = 0
        plan = replace(
            plan,
            settled=text.tokens[:num_settled],
            settled_log_probs=text.log_probs[:num_settled],
            draft=plan.draft[num_settled:],
        )
        return replace(row, plan=plan, context=context)

    def _samples(self, request: DecodeRequest) -> torch.Tensor:
        # The copy is needed: torch takes no read-only arrays, and the request's audio may be a growing buffer's view.
        return torch.from_numpy(request.audio.astype(np.float32)).to(self._model.device)

    def _rows(
        self, cross: CrossStates, requests: Sequence[DecodeRequest], frames: Sequence[torch.Tensor]
    ) -> list[_Row]:
        return [
            _Row(request=r, frames=f, languages=languages, plan=self._plan(r, languages.code))
            for r, f, languages in zip(requests, frames, self._languages(cross, requests), strict=True)
        ]

    def _languages(self, cross: CrossStates, requests: Sequence[DecodeRequest]) -> list[Languages]:
        if not self._info.can_detect_language:
            return [Languages(code=ENGLISH)] * len(requests)
        return languages_of(self._model, cross, [request.hints for request in requests])

    def _plan(self, request: DecodeRequest, language_code: str) -> RowPlan:
        vocabulary, spec = self._model.vocabulary, self._model.spec
        prompt = [vocabulary.start]
        if spec.is_multilingual:
            prompt += [vocabulary.language_ids[language_code], vocabulary.task_ids[request.hints.task]]
        if not self._settings.timestamps:
            prompt.append(vocabulary.no_timestamps)
        audio_s = len(request.audio) / CORE_SAMPLE_RATE_HZ
        tokens_per_s = _ENGLISH_TOKENS_PER_S if language_code == ENGLISH else _OTHER_TOKENS_PER_S
        budget = token_budget(audio_s, len(prompt), spec.max_tokens, tokens_per_s)
        # Finals end where the model ends them: nothing that it doubts itself becomes part of the transcript.
        doubts_ends = not request.is_final and not self._settings.timestamps
        return RowPlan(
            prompt=tuple(prompt),
            max_new_tokens=budget if request.is_final else math.ceil(budget * _INTERIM_BUDGET),
            seed=zlib.crc32(request.audio.tobytes()) if request.is_final else 0,
            speech_score=request.speech_score,
            min_tokens=int((audio_s - _UNSPOKEN_S) * _FEW_TOKENS_PER_S) if doubts_ends else 0,
            # A text with its timestamps left out is no draft of one with timestamps.
            draft=() if self._settings.timestamps else vocabulary.text_ids(request.draft),
        )

    def _num_beams(self, hints: DecodeHints) -> int:
        return max(self._settings.beam_size, min(hints.num_alternatives, self._settings.max_alternatives))

    def _hinted(self, cross: CrossStates, row: _Row, candidates: Sequence[Candidate]) -> Sequence[Candidate]:
        """The candidates, with what the call's hints make of the best one before them; `cross` has its row alone."""
        book = self._hint_books.of(row.request.hints.speech_contexts)
        if book is None or not candidates:
            return candidates
        best = rescored(self._model, cross, row.plan.prompt, candidates[0], book, row.language_code)
        return candidates if best is candidates[0] else (best, *candidates)

    def _interim(self, cross: CrossStates, index: int, row: _Row, candidates: Sequence[Candidate]) -> list[Hypothesis]:
        hinted = candidates
        if row.request.hints.speech_contexts:
            hinted = self._hinted(cross.select([index]), row, candidates)
        found = make_hypotheses(self._model, hinted, row.language_code, limit=1, is_final=False)
        if found and hinted is not candidates:
            # The next search runs without hints: the draft that it agrees with is what this one found.
            found[0] = replace(found[0], tokens=self._model.vocabulary.text_ids(candidates[0].tokens))
        return found

    def _final(self, cross: CrossStates, row: _Row, found: Found) -> DecodeResult:
        """The answer to a final; `cross` has its row alone."""
        hints = row.request.hints
        limit = max(1, hints.num_alternatives)
        hinted = self._hinted(cross, row, found.candidates)
        hypotheses = make_hypotheses(self._model, hinted, row.language_code, limit, is_final=True)
        if not hypotheses:
            return _without_words(row.request, found.dropped or DropReason.NO_SPEECH)
        audio = HeardAudio(frames=row.frames, num_samples=len(row.request.audio))
        hypotheses[0] = settle(self._model, cross, row.plan.prompt, hypotheses[0], audio, with_words=hints.word_details)
        return _result(row, hypotheses)


def _without_words(request: DecodeRequest, reason: DropReason) -> DecodeResult:
    return DecodeResult(request_id=request.request_id, dropped=reason if request.is_final else None)


def _result(row: _Row, hypotheses: Sequence[Hypothesis]) -> DecodeResult:
    request = row.request
    return DecodeResult(
        request_id=request.request_id,
        alternatives=tuple(hypotheses),
        language_probabilities=row.languages.probabilities if request.hints.detects_language else (),
    )
