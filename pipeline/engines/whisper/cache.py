"""What the decoder keeps between steps: keys and values of past tokens, and of the audio."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch.nn import functional as F


@dataclass(frozen=True, slots=True, kw_only=True)
class RowStates:
    """What the decoder attends to of one row's audio: one pair of keys and values a decoder layer."""

    keys: list[torch.Tensor]
    """`(heads, positions, head width)` each."""
    values: list[torch.Tensor]
    weights: torch.Tensor | None = None
    """Logarithm of how many positions each one stands for, `(1, 1, positions)`; None: one each."""


class CrossStates:
    """The audio of a batch, keys and values computed once for all steps. Rows may differ in length."""

    def __init__(self, rows: Sequence[RowStates]) -> None:
        self.rows = list(rows)
        self._padded: dict[int, tuple[torch.Tensor, torch.Tensor, torch.Tensor]] = {}
        """By layer, where rows are computed together."""

    @property
    def num_rows(self) -> int:
        """Rows of the batch."""
        return len(self.rows)

    def select(self, rows: Sequence[int]) -> "CrossStates":
        """The states of some rows, in the order given."""
        if list(rows) == list(range(self.num_rows)):
            return self
        return CrossStates([self.rows[row] for row in rows])

    def attend(self, layer: int, query: torch.Tensor) -> torch.Tensor:
        """Attention of queries `(rows, heads, queries, head width)` to each row's audio; same shape."""
        asked = query.to(self.rows[0].keys[layer].dtype)
        if not query.is_cuda:
            # A CPU gains nothing from rows computed together, and would pay for the padding.
            mixed = torch.cat([_attend(row, layer, asked[i : i + 1]) for i, row in enumerate(self.rows)])
        else:
            keys, values, mask = self._padded_to_longest(layer)
            mixed = F.scaled_dot_product_attention(asked, keys, values, attn_mask=mask)
        return mixed.to(query.dtype)

    def _padded_to_longest(self, layer: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        if layer not in self._padded:
            longest = max(row.keys[layer].shape[1] for row in self.rows)
            padded = [_padded_row(row, layer, longest) for row in self.rows]
            keys, values, masks = (torch.stack(parts) for parts in zip(*padded, strict=True))
            self._padded[layer] = (keys, values, masks)
        return self._padded[layer]


def _attend(row: RowStates, layer: int, query: torch.Tensor) -> torch.Tensor:
    mask = None if row.weights is None else row.weights[None]
    return F.scaled_dot_product_attention(query, row.keys[layer][None], row.values[layer][None], attn_mask=mask)


def _padded_row(row: RowStates, layer: int, length: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    keys = row.keys[layer]
    missing = length - keys.shape[1]
    weights = row.weights if row.weights is not None else keys.new_zeros(1, 1, keys.shape[1])
    return (
        F.pad(keys, (0, 0, 0, missing)),
        F.pad(row.values[layer], (0, 0, 0, missing)),
        F.pad(weights, (0, missing), value=float("-inf")),
    )


class DecoderCache:
    """The decoder's memory of a batch.

    A row is one audio; it has `num_beams` sequences, which share its audio. Sequences may differ in length: each
    has its own place in the preallocated keys and values, and what lies behind it is never attended to.
    """

    def __init__(self, cross: CrossStates, max_tokens: int, dtype: torch.dtype) -> None:
        """`dtype` is that of the decoder's hidden states."""
        self.cross = cross
        self.max_tokens = max_tokens
        self.num_beams = 1
        self.lengths = [0] * cross.num_rows
        """Tokens seen, one number a sequence."""
        layers = cross.rows[0].keys
        heads, _, head_width = layers[0].shape
        shape = (cross.num_rows, heads, max_tokens + 1, head_width)
        self.keys = [torch.zeros(shape, dtype=dtype, device=k.device) for k in layers]
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
    # The padding of a row that is almost full has nowhere to go but the last place, which no row reaches itself.
    positions = (starts[:, None] + torch.arange(num_tokens, device=cache.device)).clamp(max=cache.max_tokens)
    end = min(max(cache.lengths) + num_tokens, cache.max_tokens + 1)
    if len(set(cache.lengths)) == 1:
        start = cache.lengths[0]
        if num_tokens == 1 or start == 0:
            return Step(positions, end, start, None, is_causal=num_tokens > 1)
    else:
        start = None
    mask = torch.arange(end, device=cache.device) <= positions[:, None, :, None]
    return Step(positions, end, start, mask, is_causal=False)
