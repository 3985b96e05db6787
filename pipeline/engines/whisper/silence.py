"""Remembered silence: what the decoder sees of the rest of Whisper's window, encoded once for all utterances.

Whisper ends its text at the silence that fills the window of 30 s. A clip of speech and then silence is encoded once,
and the keys and values of that silence are appended to those of any audio, at the same positions. The decoder need not
even look at all of it: half a second of silence is one position with the weight of 25.
"""

from importlib.resources import files
from io import BytesIO

import numpy as np
import torch

from pipeline.engines.whisper.cache import RowStates
from pipeline.engines.whisper.spec import MAX_POSITIONS
from pipeline.types import Samples

_CLIP = "data/speech_16k.npy"
"""int16 at 16 kHz."""
_INT16_RANGE = 32_768.0
_POOLED_POSITIONS = 25
"""Positions that become one."""


def remembered_speech() -> Samples:
    """The clip whose silence is remembered, float32 at 16 kHz."""
    raw = files("pipeline.engines.whisper").joinpath(_CLIP).read_bytes()
    samples: Samples = np.load(BytesIO(raw)).astype(np.float32) / _INT16_RANGE
    return samples


class SilenceMemory:
    """Keys and values of silence, by the position at which it begins."""

    def __init__(self, window: RowStates, first_silent: int) -> None:
        """`window` is a whole one; from `first_silent` on its states no longer tell what was said."""
        count = MAX_POSITIONS // _POOLED_POSITIONS
        self._keys = window.keys
        self._values = window.values
        self._pooled_keys = [_pooled(keys, count) for keys in window.keys]
        self._pooled_values = [_pooled(values, count) for values in window.values]
        self.first_silent = first_silent
        """From this position on there is silence to remember."""

    def behind(self, position: int) -> RowStates:
        """Silence from a position, at least `first_silent`, to the end of the window."""
        first_pooled = -(-position // _POOLED_POSITIONS)
        edge = first_pooled * _POOLED_POSITIONS
        num_pooled = MAX_POSITIONS // _POOLED_POSITIONS - first_pooled
        weights = torch.zeros(1, 1, edge - position + num_pooled)
        weights[:, :, edge - position :] = float(np.log(_POOLED_POSITIONS))
        return RowStates(
            keys=[_joined(k, p, position, edge) for k, p in zip(self._keys, self._pooled_keys, strict=True)],
            values=[_joined(v, p, position, edge) for v, p in zip(self._values, self._pooled_values, strict=True)],
            weights=weights.to(self._keys[0]),
        )


def _pooled(states: torch.Tensor, count: int) -> torch.Tensor:
    """Every run of positions as its mean."""
    return states.view(states.shape[0], count, _POOLED_POSITIONS, -1).mean(2)


def _joined(states: torch.Tensor, pooled: torch.Tensor, position: int, edge: int) -> torch.Tensor:
    return torch.cat((states[:, position:edge], pooled[:, edge // _POOLED_POSITIONS :]), dim=1)
