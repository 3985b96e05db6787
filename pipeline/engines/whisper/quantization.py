"""Linear layers in int8 for CPUs, exact in the sense that counts here: a row never depends on its batch mates.

Weights have one scale an output channel, activations one scale a row, found when the row is there (dynamic). The
products are summed as integers, so every kernel gives the same sum whatever else it works on at the time: which kernel
runs is a question of speed alone. FBGEMM is quickest for a few rows, oneDNN for many where the CPU has VNNI.

Called through torch.ops, the kernels under torchao's quantizer for x86, since `torch.ao.quantization` is deprecated and
its `quantize_dynamic` knows only one scale for a whole batch.
"""

import warnings
from collections.abc import Callable
from typing import Literal

import torch
from torch import nn

_WEIGHT_LEVELS = 127
_FEW_ROWS = 8
"""Up to here FBGEMM wins."""
_FEW_ROWS_OF_LARGE = 2
_LARGE_WEIGHTS = 4_000_000
_ROUNDING = 1.5 * 2**23
"""Float32 numbers around it are a whole one apart, so that adding it rounds, halves to even."""
_NO_LEVEL = 1e-20
"""Smallest scale; rows of zeros stay zeros."""


def has_fast_int8_sums() -> bool:
    """Whether the CPU sums products of 8 bits in 32 bits (VNNI); without it sums of 16 bits would overflow."""
    return bool(torch.cpu._is_vnni_supported())


def has_fast_bfloat16() -> bool:
    """Whether the CPU multiplies bfloat16 matrices in hardware (AMX), several times as fast as float32."""
    return bool(torch.cpu._is_amx_tile_supported())


def supports_int8() -> bool:
    """Whether this torch has the kernels: builds for x86 do."""
    return "fbgemm" in torch.backends.quantized.supported_engines


class Int8Linear(nn.Module):
    """`y = x Wᵀ + b`, float32 in and out, int8 inside."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None) -> None:
        """`weight` is `(outputs, inputs)`, `bias` `(outputs,)`, both float32 on the CPU."""
        super().__init__()
        self.out_features, self.in_features = weight.shape
        self.bias = bias
        scales = (weight.abs().amax(1) / _WEIGHT_LEVELS).clamp(min=_NO_LEVEL)
        levels = (weight / scales[:, None]).round().to(torch.int8)
        has_sums = has_fast_int8_sums()
        # Without VNNI two products are added in 16 bits: 127 * 63 * 2 is the most that fits with an offset of 64.
        self._levels = 127 if has_sums else 63
        self._offset = self._levels + 1
        self._most_few = _FEW_ROWS_OF_LARGE if levels.numel() > _LARGE_WEIGHTS else _FEW_ROWS
        self._scales = scales
        self._no_offsets = torch.zeros(self.out_features, dtype=torch.int32)
        self._many = torch.ops.onednn.qlinear_prepack(levels, None) if has_sums else None
        self._few = _pack_few(levels, scales)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """`(..., inputs)` to `(..., outputs)`."""
        flat = hidden.reshape(-1, self.in_features)
        scale = (flat.abs().amax(1, keepdim=True) / self._levels).clamp_(min=_NO_LEVEL)
        summed = self._sums((flat / scale).add_(_ROUNDING + self._offset))
        scaled = summed.mul_(scale) if self.bias is None else torch.addcmul(self.bias, summed, scale)
        return scaled.view(*hidden.shape[:-1], self.out_features)

    def _sums(self, shifted: torch.Tensor) -> torch.Tensor:
        """Sums of products with the weights' scales, not yet with those of the rows.

        `shifted` are the rows' levels, rounded by being added to `_ROUNDING`, and their offset.
        """
        if self._many is None or (self._few is not None and len(shifted) <= self._most_few):
            # The levels are whole numbers already: the kernel's own rounding changes nothing.
            found: torch.Tensor = torch.ops.quantized.linear_with_input_q_dq_qweight_dq_output_fp32(
                shifted.sub_(_ROUNDING + self._offset), 1.0, self._offset, self._few
            )
            return found
        # Unsigned: without AMX, oneDNN has no quick kernel for two signed operands and falls back to its reference.
        # The lowest bits of the sum are the level: many times as quick as a conversion from float32 to 8 bits.
        levels = shifted.view(torch.int32).to(torch.uint8)
        found = torch.ops.onednn.qlinear_pointwise(
            levels, 1.0, self._offset, self._many, self._scales, self._no_offsets, None,
            1.0, 0, torch.float32, "none", [], "",
        )  # fmt: skip
        return found


def _pack_few(levels: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    with warnings.catch_warnings():
        # FBGEMM takes its weights as a quantized tensor, a kind that torch 2.13 announces to remove some day.
        warnings.simplefilter("ignore", UserWarning)
        offsets = torch.zeros(len(scales), dtype=torch.long)
        quantized = torch._make_per_channel_quantized_tensor(levels, scales.double(), offsets, 0)
        packed: torch.Tensor = torch.ops.quantized.linear_prepack(quantized, None)
    return packed


class PackedLinear(nn.Module):
    """A bfloat16 linear layer whose weights lie as the matrix unit wants them, with its activation inside."""

    def __init__(self, linear: nn.Linear, activation: Literal["none", "gelu"] = "none") -> None:
        super().__init__()
        self._packed = torch.ops.mkldnn._reorder_linear_weight(linear.weight.detach().contiguous(), None)
        self._bias = linear.bias
        self._activation = activation

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """`(..., inputs)` to `(..., outputs)`."""
        found: torch.Tensor = torch.ops.mkldnn._linear_pointwise(
            hidden, self._packed, self._bias, self._activation, [], "none"
        )
        return found


def pack_linears(module: nn.Module) -> None:
    """Replaces every bfloat16 linear layer inside a module."""
    _replace_linears(module, torch.bfloat16, PackedLinear)


def quantize_linears(module: nn.Module) -> None:
    """Replaces every float32 linear layer inside a module; their float weights are let go."""
    _replace_linears(module, torch.float32, lambda linear: Int8Linear(linear.weight, linear.bias))


def _replace_linears(module: nn.Module, dtype: torch.dtype, replacement: Callable[[nn.Linear], nn.Module]) -> None:
    for name, child in module.named_children():
        if isinstance(child, nn.Linear) and child.weight.dtype == dtype:
            setattr(module, name, replacement(child))
        else:
            _replace_linears(child, dtype, replacement)
