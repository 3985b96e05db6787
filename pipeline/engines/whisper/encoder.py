"""Whisper's encoder, for any number of frames up to a full window."""

import torch
from torch import nn
from torch.nn import functional as F

from pipeline.engines.whisper.spec import MAX_POSITIONS, ModelSpec


class SelfAttention(nn.Module):
    """Attention among the positions of the audio."""

    def __init__(self, width: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """`(rows, positions, width)` to the same shape."""
        rows, positions, width = hidden.shape
        qkv = self.qkv(hidden).view(rows, positions, 3, self.num_heads, width // self.num_heads)
        query, key, value = qkv.permute(2, 0, 3, 1, 4)
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
        self.ffn_in = nn.Linear(width, 4 * width)
        self.ffn_out = nn.Linear(4 * width, width)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """`(rows, positions, width)` to the same shape."""
        hidden = hidden + self.attention(self.attention_norm(hidden))
        fed: torch.Tensor = self.ffn_out(F.gelu(self.ffn_in(self.ffn_norm(hidden))))
        return hidden + fed


class Encoder(nn.Module):
    """Log-mel windows to encoder states."""

    positions: torch.Tensor

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__()
        self.conv1 = nn.Conv1d(spec.num_mel_bins, spec.width, kernel_size=3, padding=1)
        self.conv2 = nn.Conv1d(spec.width, spec.width, kernel_size=3, stride=2, padding=1)
        self.register_buffer("positions", torch.zeros(MAX_POSITIONS, spec.width))
        self.layers = nn.ModuleList(EncoderLayer(spec.width, spec.num_heads) for _ in range(spec.encoder_layers))
        self.norm = nn.LayerNorm(spec.width)

    def forward(self, mel: torch.Tensor) -> torch.Tensor:
        """`(rows, mel bins, frames)` to `(rows, ceil(frames / 2), width)`; frames at most `MAX_FRAMES`."""
        hidden = F.gelu(self.conv2(F.gelu(self.conv1(mel)))).transpose(1, 2)
        hidden = hidden + self.positions[: hidden.shape[1]]
        for layer in self.layers:
            hidden = layer(hidden)
        states: torch.Tensor = self.norm(hidden)
        return states
