"""int8 layers: close to float32, and a row never depends on its batch mates or on the kernel."""

import time
from collections.abc import Callable

import pytest
import torch
from torch import nn

from pipeline.engines.whisper import quantization
from pipeline.engines.whisper.quantization import (
    Int8Linear,
    PackedLinear,
    quantize_linears,
    supports_int8,
)

pytestmark = pytest.mark.skipif(not supports_int8(), reason="this torch has no int8 kernels")

_SHAPES = [(384, 1152), (1536, 384), (512, 9_001)]


def _layer(inputs: int, outputs: int, seed: int = 1) -> nn.Linear:
    torch.manual_seed(seed)
    return nn.Linear(inputs, outputs).requires_grad_(False)


def _rows(count: int, inputs: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(count)
    loud = 10.0 ** torch.empty(count, 1).uniform_(-3, 2, generator=generator)
    return torch.randn(count, inputs, generator=generator) * loud


@pytest.mark.parametrize(("inputs", "outputs"), _SHAPES)
def test_a_row_is_the_same_alone_and_in_any_batch(inputs: int, outputs: int) -> None:
    layer = _layer(inputs, outputs)
    int8 = Int8Linear(layer.weight, layer.bias)
    rows = _rows(40, inputs)
    together = int8(rows)
    for count in (1, 3, 8, 9, 33):
        assert torch.equal(int8(rows[:count]), together[:count])
    assert torch.equal(int8(rows.view(5, 8, inputs)).view(40, outputs), together)
    assert torch.equal(int8(rows.flip(0)).flip(0), together)


@pytest.mark.parametrize(("inputs", "outputs"), _SHAPES)
def test_it_is_close_to_float32(inputs: int, outputs: int) -> None:
    layer = _layer(inputs, outputs)
    rows = _rows(16, inputs)
    expected = layer(rows) - layer.bias
    found = Int8Linear(layer.weight, None)(rows)
    assert torch.linalg.vector_norm(found - expected) < 0.015 * torch.linalg.vector_norm(expected)


@pytest.mark.parametrize("num_rows", [1, 8, 9, 300])
def test_no_shape_falls_back_to_a_reference_kernel(num_rows: int) -> None:
    layer = _layer(384, 1536)
    int8, rows = Int8Linear(layer.weight, layer.bias), _rows(num_rows, 384)
    # Reference kernels are a thousand times as slow; a busy machine is not.
    assert _quickest_s(lambda: int8(rows)) < 20 * _quickest_s(lambda: layer(rows)) + 1e-3


def _quickest_s(work: Callable[[], object]) -> float:
    times_s = []
    for _ in range(5):
        started_s = time.perf_counter()
        work()
        times_s.append(time.perf_counter() - started_s)
    return min(times_s)


def test_extreme_rows_do_not_overflow() -> None:
    layer = nn.Linear(1536, 64, bias=False).requires_grad_(False)
    layer.weight.fill_(1.0)
    rows = torch.ones(9, 1536)
    expected = torch.full((9, 64), 1536.0)
    torch.testing.assert_close(Int8Linear(layer.weight, None)(rows), expected, rtol=1e-5, atol=0)
    torch.testing.assert_close(Int8Linear(layer.weight, None)(rows[:1]), expected[:1], rtol=1e-5, atol=0)


def test_rows_and_weights_of_zeros_stay_zeros() -> None:
    layer = _layer(384, 384)
    layer.weight[5] = 0.0
    found = Int8Linear(layer.weight, None)(torch.cat((torch.zeros(1, 384), _rows(1, 384))))
    assert torch.equal(found[0], torch.zeros(384))
    assert found[1, 5] == 0.0
    assert torch.isfinite(found).all()


def test_a_cpu_without_sums_of_32_bits_gets_shorter_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quantization, "has_fast_int8_sums", lambda: False)
    layer = _layer(384, 1152)
    rows = _rows(40, 384)
    int8 = Int8Linear(layer.weight, layer.bias)
    assert int8._levels == 63
    assert torch.equal(int8(rows[:3]), int8(rows)[:3])
    error = torch.linalg.vector_norm(int8(rows) - layer(rows)) / torch.linalg.vector_norm(layer(rows))
    assert error < 0.02


def test_only_float32_layers_are_replaced() -> None:
    parts = nn.Sequential(_layer(384, 384), nn.Sequential(_layer(384, 64).to(torch.bfloat16), nn.GELU()))
    quantize_linears(parts)
    assert isinstance(parts[0], Int8Linear)
    assert isinstance(parts[1][0], nn.Linear)


def test_a_packed_layer_is_the_layer() -> None:
    layer = _layer(384, 1536).to(torch.bfloat16)
    hidden = torch.randn(1, 170, 384).to(torch.bfloat16)
    assert torch.equal(PackedLinear(layer)(hidden), layer(hidden))
    torch.testing.assert_close(
        PackedLinear(layer, "gelu")(hidden), nn.functional.gelu(layer(hidden)), atol=0.04, rtol=0
    )
