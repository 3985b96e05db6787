"""Whisper's encoder, for any number of frames up to a full window."""

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F

from pipeline.engines.whisper.contexts import GrowingStates
from pipeline.engines.whisper.convolution import FrameConvolution
from pipeline.engines.whisper.spec import MAX_POSITIONS, ModelSpec

_CONV_REACH = 2
"""Positions at the start of a piece that the two convolutions would compute from missing frames."""


@dataclass(frozen=True, slots=True)
class Past:
    """What one layer knows of the audio before a piece."""

    states: GrowingStates
    layer: int
    start: int
    """The position at which the piece begins."""


class SelfAttention(nn.Module):
    """Attention among the positions of the audio."""

    def __init__(self, width: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, hidden: torch.Tensor, past: Past | None = None) -> torch.Tensor:
        """`(rows, positions, width)` to the same shape; with a past, one row that attends to what came before too."""
        rows, positions, width = hidden.shape
        qkv = self.qkv(hidden).view(rows, positions, 3, self.num_heads, width // self.num_heads)
        query, key, value = qkv.permute(2, 0, 3, 1, 4)
        if past is not None:
            all_keys, all_values = past.states.write(past.layer, past.start, key[0], value[0])
            key, value = all_keys[None], all_values[None]
        mixed = F.scaled_dot_product_attention(query, key, value)
        attended: torch.Tensor = self.out(mixed.transpose(1, 2).reshape(rows, positions, width))
        return attended


class EncoderLayer(nn.Module):
    """Attention and feed-forward, each behind its norm and with a residual."""

    def __init__(self, width: int, num_heads: int) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(width)
        self.attention = SelfAttention(width, num_heads)
        self.ffn_norm = nn.LayerNorm(width)
        self.ffn_in: nn.Module = nn.Linear(width, 4 * width)
        self.ffn_out = nn.Linear(4 * width, width)
        self.has_gelu_inside = False
        """Whether the activation is part of `ffn_in`."""

    def forward(self, hidden: torch.Tensor, past: Past | None = None) -> torch.Tensor:
        """`(rows, positions, width)` to the same shape."""
        hidden = hidden + self.attention(self.attention_norm(hidden), past)
        expanded = self.ffn_in(self.ffn_norm(hidden))
        fed: torch.Tensor = self.ffn_out(expanded if self.has_gelu_inside else F.gelu(expanded))
        return hidden + fed


class Encoder(nn.Module):
    """Log-mel windows to encoder states."""

    positions: torch.Tensor

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__()
        self.conv1 = FrameConvolution(spec.num_mel_bins, spec.width)
        self.conv2 = FrameConvolution(spec.width, spec.width, stride=2)
        self.register_buffer("positions", torch.zeros(MAX_POSITIONS, spec.width))
        self.layers = nn.ModuleList(EncoderLayer(spec.width, spec.num_heads) for _ in range(spec.encoder_layers))
        self.norm = nn.LayerNorm(spec.width)

    def forward(self, mel: torch.Tensor) -> torch.Tensor:
        """`(rows, mel bins, frames)` to `(rows, ceil(frames / 2), width)`; frames at most `MAX_FRAMES`."""
        hidden = self._convolved(mel)
        hidden = hidden + self.positions[: hidden.shape[1]]
        for layer in self.layers:
            hidden = layer(hidden)
        states: torch.Tensor = self.norm(hidden)
        return states

    def extend(self, mel: torch.Tensor, start: int, states: GrowingStates) -> torch.Tensor:
        """Encodes one row from a position on, with what is known of the positions before it.

        Args:
            mel: All frames of the row, `(mel bins, frames)`.
            start: The first position to encode.
            states: Keys and values of the layers; those from `start` on are written anew.

        Returns:
            `(positions from start on, width)`.
        """
        left_out = min(start, _CONV_REACH)
        piece = mel[None, :, 2 * (start - left_out) :]
        hidden = self._convolved(piece)[:, left_out:]
        hidden = hidden + self.positions[start : start + hidden.shape[1]]
        for number, layer in enumerate(self.layers):
            hidden = layer(hidden, Past(states, number, start))
        normed: torch.Tensor = self.norm(hidden)[0]
        return normed

    def _convolved(self, mel: torch.Tensor) -> torch.Tensor:
        """`(rows, mel bins, frames)` to `(rows, positions, width)`."""
        return F.gelu(self.conv2(F.gelu(self.conv1(mel.transpose(1, 2).contiguous()))))
