"""Whisper's decoder: one call takes new tokens of every sequence and returns their hidden states."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import nn
from torch.nn import functional as F

from pipeline.engines.whisper.cache import CrossStates, DecoderCache, RowStates, Step, plan_step
from pipeline.engines.whisper.spec import ModelSpec


@dataclass(slots=True)
class AttentionProbe:
    """Collects how some heads look at the audio, for word times."""

    heads: tuple[tuple[int, int], ...]
    """(layer, head)."""
    scores: list[torch.Tensor] = field(default_factory=list)
    """Scaled scores before the softmax, `(rows, heads of one layer, tokens, positions)` each."""

    def collect(self, layer: int, query: torch.Tensor, cross: CrossStates) -> None:
        """Takes the scores of the wanted heads of a layer; `cross` has one row."""
        heads = [head for at, head in self.heads if at == layer]
        if heads:
            scale = query.shape[-1] ** -0.5
            key = cross.rows[0].keys[layer][heads].float()
            self.scores.append((query[:, heads].float() * scale) @ key.transpose(-1, -2))


class CachedSelfAttention(nn.Module):
    """Attention of new tokens to themselves and to those before them."""

    def __init__(self, width: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, hidden: torch.Tensor, layer: int, cache: DecoderCache, step: Step) -> torch.Tensor:
        """`(sequences, tokens, width)` to the same shape; stores the new keys and values."""
        sequences, tokens, width = hidden.shape
        qkv = self.qkv(hidden).view(sequences, tokens, 3, self.num_heads, width // self.num_heads)
        query, key, value = qkv.permute(2, 0, 3, 1, 4)
        cache.store(layer, key, value, step)
        mixed = F.scaled_dot_product_attention(
            query,
            cache.keys[layer][:, :, : step.end],
            cache.values[layer][:, :, : step.end],
            attn_mask=step.mask,
            is_causal=step.is_causal,
        )
        attended: torch.Tensor = self.out(mixed.transpose(1, 2).reshape(sequences, tokens, width))
        return attended


class CrossAttention(nn.Module):
    """Attention of tokens to the audio of their row."""

    def __init__(self, width: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.q = nn.Linear(width, width)
        self.kv: nn.Module = nn.Linear(width, 2 * width)
        self.out = nn.Linear(width, width)

    def project(self, states: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values of encoder states `(positions, width)`, `(heads, positions, head width)` each."""
        positions, width = states.shape
        kv = self.kv(states).view(positions, 2, self.num_heads, width // self.num_heads)
        key, value = kv.permute(1, 2, 0, 3).contiguous()
        return key, value

    def forward(
        self, hidden: torch.Tensor, layer: int, cross: CrossStates, probe: AttentionProbe | None
    ) -> torch.Tensor:
        """`(sequences, tokens, width)` to the same shape; the beams of a row are queries to the same audio."""
        sequences, tokens, width = hidden.shape
        query = self.q(hidden).view(cross.num_rows, -1, self.num_heads, width // self.num_heads).transpose(1, 2)
        if probe is not None:
            probe.collect(layer, query, cross)
        mixed = cross.attend(layer, query)
        attended: torch.Tensor = self.out(mixed.transpose(1, 2).reshape(sequences, tokens, width))
        return attended


class DecoderLayer(nn.Module):
    """Self-attention, cross-attention and feed-forward, each behind its norm and with a residual."""

    def __init__(self, width: int, num_heads: int) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(width)
        self.attention = CachedSelfAttention(width, num_heads)
        self.cross_norm = nn.LayerNorm(width)
        self.cross = CrossAttention(width, num_heads)
        self.ffn_norm = nn.LayerNorm(width)
        self.ffn_in = nn.Linear(width, 4 * width)
        self.ffn_out = nn.Linear(4 * width, width)

    def forward(
        self, hidden: torch.Tensor, layer: int, cache: DecoderCache, step: Step, probe: AttentionProbe | None
    ) -> torch.Tensor:
        """`(sequences, tokens, width)` to the same shape."""
        hidden = hidden + self.attention(self.attention_norm(hidden), layer, cache, step)
        hidden = hidden + self.cross(self.cross_norm(hidden), layer, cache.cross, probe)
        fed: torch.Tensor = self.ffn_out(F.gelu(self.ffn_in(self.ffn_norm(hidden))))
        return hidden + fed


class Decoder(nn.Module):
    """Tokens and encoder states to hidden states and logits."""

    embeddings: torch.Tensor
    positions: torch.Tensor

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__()
        self.spec = spec
        self.register_buffer("embeddings", torch.zeros(spec.vocabulary_size, spec.width))
        self.register_buffer("positions", torch.zeros(spec.max_tokens, spec.width))
        self.layers = nn.ModuleList(DecoderLayer(spec.width, spec.num_heads) for _ in range(spec.decoder_layers))
        self.norm = nn.LayerNorm(spec.width)
        self.projection: nn.Module | None = None
        """Hidden states to scores; None: by the embeddings themselves."""

    def cross_states(self, states: Sequence[torch.Tensor]) -> CrossStates:
        """Keys and values of each row's encoder states, `(positions, width)` each, for all layers.

        Row by row: the last bits of a row must not depend on the others.
        """
        return CrossStates([self.row_states(row) for row in states])

    def row_states(self, states: torch.Tensor) -> RowStates:
        """The same for one row."""
        attentions = [layer.cross for layer in self.layers if isinstance(layer, DecoderLayer)]
        pairs = [attention.project(states) for attention in attentions]
        return RowStates(keys=[key for key, _ in pairs], values=[value for _, value in pairs])

    def new_cache(self, cross: CrossStates, max_tokens: int) -> DecoderCache:
        """An empty memory for the rows of a batch."""
        return DecoderCache(cross, max_tokens, self.embeddings.dtype)

    def forward(
        self,
        tokens: torch.Tensor,
        cache: DecoderCache,
        num_tokens: Sequence[int] | None = None,
        probe: AttentionProbe | None = None,
    ) -> torch.Tensor:
        """Hidden states of new tokens, `(sequences, tokens, width)`; the cache grows by them.

        Args:
            tokens: `(sequences, tokens)`; shorter sequences are padded behind with any token.
            cache: What came before.
            num_tokens: How many of each sequence's tokens are not padding; None: all.
            probe: Collects cross-attention.
        """
        step = plan_step(cache, tokens.shape[1])
        positions = step.positions.clamp(max=self.spec.max_tokens - 1)
        hidden = F.embedding(tokens, self.embeddings) + F.embedding(positions, self.positions)
        for number, layer in enumerate(self.layers):
            hidden = layer(hidden, number, cache, step, probe)
        counts = num_tokens if num_tokens is not None else [tokens.shape[1]] * len(cache.lengths)
        cache.lengths = [length + count for length, count in zip(cache.lengths, counts, strict=True)]
        normed: torch.Tensor = self.norm(hidden)
        return normed

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """Scores of all tokens, float32, `(..., vocabulary size)`."""
        if self.projection is not None:
            found: torch.Tensor = self.projection(hidden)
            return found
        return F.linear(hidden, self.embeddings).float()
