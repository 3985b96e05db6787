"""Which tokens may come next: the suppressions and timestamp rules of OpenAI's decoder."""

from collections.abc import Sequence

import torch

from pipeline.engines.whisper.spec import ModelSpec
from pipeline.engines.whisper.vocabulary import Vocabulary

_FORBIDDEN = float("-inf")
_MAX_FIRST_TIMESTAMP = 50
"""The first words begin at 1.0 s at most: 50 steps of 20 ms."""


class TokenRules:
    """Forbids tokens by setting their logits to minus infinity."""

    def __init__(self, spec: ModelSpec, vocabulary: Vocabulary, timestamps: bool, device: torch.device) -> None:
        self._vocabulary = vocabulary
        self._timestamps = timestamps
        always = torch.zeros(spec.vocabulary_size, dtype=torch.bool)
        always[list(spec.suppressed_ids)] = True
        # All special tokens but the end, and timestamps where they are wanted, can only be noise.
        always[vocabulary.end_of_text + 1 : vocabulary.first_timestamp if timestamps else None] = True
        always[vocabulary.end_of_text] = False
        first = always.clone()
        first[list(spec.begin_suppressed_ids)] = True
        self._always = always.nonzero().squeeze(1).to(device)
        self._first = first.nonzero().squeeze(1).to(device)

    def apply(self, logits: torch.Tensor, written: Sequence[Sequence[int]]) -> torch.Tensor:
        """Changes `logits` in place and returns it.

        Args:
            logits: `(sequences, vocabulary size)`.
            written: The tokens of each sequence behind the prompt.
        """
        logits.index_fill_(1, self._always, _FORBIDDEN)
        for row, tokens in zip(logits, written, strict=True):
            if not tokens:
                row.index_fill_(0, self._first, _FORBIDDEN)
        if self._timestamps:
            for row, tokens in zip(logits, written, strict=True):
                self._apply_timestamps(row, tokens)
        return logits

    def _apply_timestamps(self, logits: torch.Tensor, tokens: Sequence[int]) -> None:
        first, end = self._vocabulary.first_timestamp, self._vocabulary.end_of_text
        if not tokens:
            logits[:first] = _FORBIDDEN
            logits[first + _MAX_FIRST_TIMESTAMP + 1 :] = _FORBIDDEN
            return
        after_time = tokens[-1] >= first
        closed = after_time and len(tokens) >= 2 and tokens[-2] < first
        if closed:
            logits[:end] = _FORBIDDEN  # the next segment opens, or the text ends
        elif after_time:
            logits[first:] = _FORBIDDEN  # a segment is open: words follow
        times = [t for t in tokens if t >= first]
        if times:
            # Times never go back, and no segment closes where it opened.
            logits[first : times[-1] + (0 if closed else 1)] = _FORBIDDEN
        log_probs = logits.log_softmax(-1)
        if log_probs[first:].logsumexp(-1) > log_probs[:first].max():
            logits[:first] = _FORBIDDEN
