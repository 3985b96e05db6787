"""Where a decoder step and an encoder pass spend their time, against reading their weights once.

The engine decodes a clip as it always does, alone and in a batch, while a stopwatch looks at the parts of its model.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any

import torch
from torch import nn

from pipeline.benchmarks.schedule import Clip
from pipeline.benchmarks.stopwatch import NS_PER_US, Pass, Stopwatch
from pipeline.benchmarks.talkpath import batch_of
from pipeline.engines.whisper.decoder import Decoder
from pipeline.engines.whisper.encoder import Encoder
from pipeline.engines.whisper.engine import WhisperEngine
from pipeline.engines.whisper.quantization import Int8Linear
from pipeline.types import DecodeHints, DecodeRequest

_US_PER_S = 1e6
_PROJECTION = "vocabulary projection"
_OTHERS = "norms, embeddings, residuals"
_SEARCH = "search between steps"
_DECODER_PARTS = {"self-attention": ("attention",), "cross-attention": ("cross",), "ffn": ("ffn_in", "ffn_out")}
"""Part to modules of a layer."""
_ENCODER_PARTS = {"attention": ("attention",), "ffn": ("ffn_in", "ffn_out")}
_CONVOLUTIONS = "convolutions"
_REPEATS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class PartFigures:
    """One part of a pass, all layers together."""

    part: str
    measured_us: float
    """Median over passes."""
    weight_bytes: int = 0
    limit_us: float = 0.0
    """Reading the weights once from memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PassFigures:
    """One kind of pass."""

    title: str
    num_passes: int
    parts: tuple[PartFigures, ...]

    @property
    def total(self) -> PartFigures:
        """All parts together."""
        return PartFigures(
            part="all",
            measured_us=sum(p.measured_us for p in self.parts),
            weight_bytes=sum(p.weight_bytes for p in self.parts),
            limit_us=sum(p.limit_us for p in self.parts),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineProfile:
    """What was found, and in which precision."""

    precision: str
    passes: tuple[PassFigures, ...]


def profile_engine(engine: WhisperEngine, clip: Clip, rows: Sequence[int], bytes_per_s: float) -> EngineProfile:
    """Decodes the clip with each number of rows and takes the time of all parts."""
    encoder, decoder = engine._model.encoder, engine._model.decoder
    decoder_bytes, encoder_bytes = _decoder_bytes(decoder), _encoder_bytes(encoder)
    found = []
    for count in rows:
        steps = _watched(engine, clip, count, lambda watch: _watch_decoder(watch, decoder))
        found.append(_decoder_figures(steps, count, decoder_bytes, bytes_per_s))
    windows = _watched(engine, clip, 1, lambda watch: _watch_encoder(watch, encoder))
    found.append(_encoder_figures(windows, encoder_bytes, bytes_per_s))
    return EngineProfile(precision=engine.info.precision, passes=tuple(found))


def weight_bytes(modules: Iterable[nn.Module]) -> int:
    """Bytes of all weights in these modules; what int8 layers keep packed is counted by its shape."""
    total = 0
    for module in (inner for outer in modules for inner in outer.modules()):
        if isinstance(module, Int8Linear):
            scale_and_bias = 2 * torch.float32.itemsize
            total += module.out_features * (module.in_features * torch.int8.itemsize + scale_and_bias)
        else:
            own = [*module.parameters(recurse=False), *module.buffers(recurse=False)]
            total += sum(tensor.nbytes for tensor in own)
    return total


def _watched(engine: WhisperEngine, clip: Clip, rows: int, watch: Callable[[Stopwatch], None]) -> list[Pass]:
    stopwatch = Stopwatch()
    requests = [_request(clip, row) for row in range(rows)]
    with stopwatch.running():
        watch(stopwatch)
        for _ in range(_REPEATS):
            engine.transcribe(batch_of(requests))
            engine.release([request.segment_key for request in requests])
    return stopwatch.passes


def _request(clip: Clip, row: int) -> DecodeRequest:
    return DecodeRequest(
        request_id=f"profile-{row}/1/1",
        session_id=f"profile-{row}",
        segment_id="1",
        channel_tag=1,
        revision=1,
        audio=clip.samples,
        is_final=True,
        hints=DecodeHints(),
    )


def _watch_decoder(stopwatch: Stopwatch, decoder: Decoder) -> None:
    stopwatch.watch_whole(decoder, "forward", lambda tokens, *_, **__: _step_label(tokens))
    stopwatch.watch_part(decoder, "logits", _PROJECTION)
    _watch_layers(stopwatch, decoder.layers, _DECODER_PARTS)


def _step_label(tokens: torch.Tensor) -> str:
    sequences, length = tokens.shape
    return f"{sequences} x 1" if length == 1 else "prompt"


def _watch_encoder(stopwatch: Stopwatch, encoder: Encoder) -> None:
    stopwatch.watch_whole(encoder, "forward", lambda mel, *_, **__: f"{mel.shape[-1]} frames")
    for convolution in (encoder.conv1, encoder.conv2):
        stopwatch.watch_part(convolution, "forward", _CONVOLUTIONS)
    _watch_layers(stopwatch, encoder.layers, _ENCODER_PARTS)


def _watch_layers(stopwatch: Stopwatch, layers: Iterable[Any], parts: dict[str, tuple[str, ...]]) -> None:
    for layer in layers:
        for part, names in parts.items():
            for name in names:
                stopwatch.watch_part(getattr(layer, name), "forward", part)


def _layer_bytes(layers: Iterable[Any], parts: dict[str, tuple[str, ...]]) -> dict[str, int]:
    layers = list(layers)
    return {part: weight_bytes(getattr(la, name) for la in layers for name in names) for part, names in parts.items()}


def _decoder_bytes(decoder: Decoder) -> dict[str, int]:
    found = _layer_bytes(decoder.layers, _DECODER_PARTS)
    # Keys and values of the audio are projected once a decode, not in a step.
    found["cross-attention"] -= weight_bytes(la.cross.kv for la in decoder.layers)  # type: ignore[misc,union-attr]
    found[_PROJECTION] = decoder.embeddings.nbytes if decoder.projection is None else weight_bytes([decoder.projection])
    return found


def _encoder_bytes(encoder: Encoder) -> dict[str, int]:
    return {
        _CONVOLUTIONS: weight_bytes([encoder.conv1, encoder.conv2]),
        **_layer_bytes(encoder.layers, _ENCODER_PARTS),
    }


def _decoder_figures(passes: list[Pass], rows: int, sizes: dict[str, int], bytes_per_s: float) -> PassFigures:
    label = f"{rows} x 1"
    steps = [taken for taken in passes if taken.label == label]
    gaps_us = [
        (after.began_ns - before.began_ns - before.whole_ns) / NS_PER_US - before.part_us(_PROJECTION)
        for before, after in pairwise(passes)
        if before.label == after.label == label
    ]
    parts = [_part(name, [step.part_us(name) for step in steps], sizes[name], bytes_per_s) for name in sizes]
    others_us = [step.whole_us - sum(step.part_us(name) for name in _DECODER_PARTS) for step in steps]
    return PassFigures(
        title=f"decoder step, {rows} {'row' if rows == 1 else 'rows'}",
        num_passes=len(steps),
        parts=(*parts, _part(_OTHERS, others_us), _part(_SEARCH, gaps_us)),
    )


def _encoder_figures(passes: list[Pass], sizes: dict[str, int], bytes_per_s: float) -> PassFigures:
    parts = [_part(name, [taken.part_us(name) for taken in passes], sizes[name], bytes_per_s) for name in sizes]
    others_us = [taken.whole_us - sum(taken.part_us(name) for name in sizes) for taken in passes]
    title = f"encoder pass, {passes[0].label}" if passes else "encoder pass"
    return PassFigures(title=title, num_passes=len(passes), parts=(*parts, _part(_OTHERS, others_us)))


def _part(name: str, measured_us: Sequence[float], size: int = 0, bytes_per_s: float = 1.0) -> PartFigures:
    return PartFigures(
        part=name,
        measured_us=median(measured_us) if measured_us else 0.0,
        weight_bytes=size,
        limit_us=size / bytes_per_s * _US_PER_S,
    )
