"""The encoder's convolutions over frames, as linear layers over three neighbouring frames each.

Frames lie one behind the other in memory, so that three neighbours are one run of numbers: a convolution is a matrix
product over overlapping rows, without a weight to be brought into another order each time, and its outcome lies as
the layers behind it read it.
"""

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

_FRAMES = 3
"""Each output frame sees its own input frame and one on either side; beyond the ends there are zeros."""


class FrameConvolution(nn.Module):
    """A convolution of kernel size 3 and padding 1 over frames. Loads the weights of a `torch.nn.Conv1d`."""

    def __init__(self, inputs: int, outputs: int, stride: int = 1) -> None:
        super().__init__()
        self.stride = stride
        self.linear: nn.Module = nn.Linear(_FRAMES * inputs, outputs)
        self.register_load_state_dict_pre_hook(_flatten_weight)  # type: ignore[no-untyped-call]

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        """`(rows, frames, inputs)` to `(rows, ceil(frames / stride), outputs)`."""
        rows, num_frames, inputs = frames.shape
        padded = F.pad(frames, (0, 0, 1, 1))
        neighbours = padded.as_strided(
            (rows, -(-num_frames // self.stride), _FRAMES * inputs),
            ((num_frames + 2) * inputs, self.stride * inputs, 1),
        )
        convolved: torch.Tensor = self.linear(neighbours)
        return convolved


def _flatten_weight(_: nn.Module, state: dict[str, Any], prefix: str, *_rest: Any) -> None:
    """`(outputs, inputs, 3)` to `(outputs, 3 * inputs)`, frame by frame."""
    weight = state.pop(f"{prefix}weight", None)
    if weight is not None:
        state[f"{prefix}linear.weight"] = weight.transpose(1, 2).flatten(1)
    if f"{prefix}bias" in state:
        state[f"{prefix}linear.bias"] = state.pop(f"{prefix}bias")
