"""What the decoder keeps between steps: keys and values of past tokens, and of the audio."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch


@dataclass(slots=True)
class CrossStates:
    """Keys and values of encoder states, computed once for all steps, one pair a decoder layer."""

    keys: list[torch.Tensor]
    """`(rows, heads, positions, head width)` each."""
    values: list[torch.Tensor]

    @property
    def num_rows(self) -> int:
        """Rows of the batch."""
        return self.keys[0].shape[0]

    def select(self, rows: Sequence[int]) -> "CrossStates":
        """The states of some rows, in the order given; a copy unless these are all rows as they are."""
        if list(rows) == list(range(self.num_rows)):
            return self
        index = torch.tensor(rows, device=self.keys[0].device)
        return CrossStates(
            [k.index_select(0, index) for k in self.keys], [v.index_select(0, index) for v in self.values]
        )


class DecoderCache:
    """The decoder's memory of a batch.

    A row is one audio; it has `num_beams` sequences, which share its audio. Sequences may differ in length: each
    has its own place in the preallocated keys and values, and what lies behind it is never attended to.
    """

    def __init__(self, cross: CrossStates, max_tokens: int) -> None:
        self.cross = cross
        self.max_tokens = max_tokens
        self.num_beams = 1
        self.lengths = [0] * cross.num_rows
        """Tokens seen, one number a sequence."""
        _, heads, _, head_width = cross.keys[0].shape
        shape = (cross.num_rows, heads, max_tokens, head_width)
        self.keys = [torch.zeros(shape, dtype=k.dtype, device=k.device) for k in cross.keys]
        self.values = [torch.zeros_like(k) for k in self.keys]

    @property
    def device(self) -> torch.device:
        """Where the tensors lie."""
        return self.keys[0].device

    def expand(self, num_beams: int) -> None:
        """Gives each row `num_beams` copies of its only sequence."""
        self.keys = [k.repeat_interleave(num_beams, 0) for k in self.keys]
        self.values = [v.repeat_interleave(num_beams, 0) for v in self.values]
        self.lengths = [length for length in self.lengths for _ in range(num_beams)]
        self.num_beams = num_beams

    def select(self, sequences: Sequence[int], rows: Sequence[int]) -> None:
        """Keeps these sequences of these rows, in this order; `num_beams` sequences a row."""
        if list(sequences) != list(range(len(self.lengths))):
            index = torch.tensor(sequences, device=self.device)
            self.keys = [k.index_select(0, index) for k in self.keys]
            self.values = [v.index_select(0, index) for v in self.values]
            self.lengths = [self.lengths[s] for s in sequences]
        self.cross = self.cross.select(rows)

    def store(self, layer: int, keys: torch.Tensor, values: torch.Tensor, step: "Step") -> None:
        """Writes the keys and values of a step's tokens, `(sequences, heads, tokens, head width)` each."""
        if step.uniform_start is not None:
            span = slice(step.uniform_start, step.end)
            self.keys[layer][:, :, span] = keys
            self.values[layer][:, :, span] = values
            return
        index = step.positions[:, None, :, None].expand_as(keys)
        self.keys[layer].scatter_(2, index, keys)
        self.values[layer].scatter_(2, index, values)


@dataclass(frozen=True, slots=True)
class Step:
    """Where the tokens of one decoder call lie in their sequences."""

    positions: torch.Tensor
    """`(sequences, tokens)`."""
    end: int
    """First position behind the longest sequence."""
    uniform_start: int | None
    """The position of the first token where it is the same in all sequences."""
    mask: torch.Tensor | None
    """`(sequences, 1, tokens, end)`, true where a token may look; None where causality needs no mask."""
    is_causal: bool
    """Whether the tokens are the first ones, so that attention is plainly causal."""


def plan_step(cache: DecoderCache, num_tokens: int) -> Step:
    """Places `num_tokens` new tokens behind the sequences of a cache."""
    starts = torch.tensor(cache.lengths, device=cache.device)
    positions = starts[:, None] + torch.arange(num_tokens, device=cache.device)
    end = max(cache.lengths) + num_tokens
    if len(set(cache.lengths)) == 1:
        start = cache.lengths[0]
        if num_tokens == 1 or start == 0:
            return Step(positions, end, start, None, is_causal=num_tokens > 1)
    else:
        start = None
    mask = torch.arange(end, device=cache.device) <= positions[:, None, :, None]
    return Step(positions, end, start, mask, is_causal=False)
