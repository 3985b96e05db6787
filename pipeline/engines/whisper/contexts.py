"""What the engine keeps of an utterance that is still being said, so that the next interim encodes only what is new.

Every position's states depend on all others, also on later ones; stock weights were never trained to encode in pieces.
But what a position learns from audio seconds behind it is little. So positions with enough audio behind them (the
look-ahead) are settled: their keys and values stay, in every layer, and the newer ones attend to them. Finals never use
any of this.
"""

import threading
from collections.abc import Collection
from dataclasses import dataclass, field

import torch

from pipeline.engines.whisper.agreement import AgreedText

_FIRST_POSITIONS = 256
"""Room for 5 s at first, doubled when it is used up."""
_TAIL_SAMPLES = 1_600


class GrowingStates:
    """Keys and values along the positions of one audio, one pair a layer."""

    def __init__(self) -> None:
        self.keys: list[torch.Tensor] = []
        """`(heads, room, head width)` each."""
        self.values: list[torch.Tensor] = []

    def write(
        self, layer: int, start: int, keys: torch.Tensor, values: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Puts `(heads, positions, head width)` at `start`; returns views of all from the beginning to their end."""
        end = start + keys.shape[1]
        if layer == len(self.keys):
            self.keys.append(_room_for(end, keys))
            self.values.append(_room_for(end, values))
        elif self.keys[layer].shape[1] < end:
            self.keys[layer] = _moved(self.keys[layer][:, :start], _room_for(end, keys))
            self.values[layer] = _moved(self.values[layer][:, :start], _room_for(end, values))
        self.keys[layer][:, start:end] = keys
        self.values[layer][:, start:end] = values
        return self.keys[layer][:, :end], self.values[layer][:, :end]


def _room_for(num_positions: int, like: torch.Tensor) -> torch.Tensor:
    room = _FIRST_POSITIONS
    while room < num_positions:
        room *= 2
    return like.new_empty(like.shape[0], room, like.shape[2])


def _moved(kept: torch.Tensor, room: torch.Tensor) -> torch.Tensor:
    room[:, : kept.shape[1]] = kept
    return room


@dataclass(slots=True)
class SegmentContext:
    """One utterance under way."""

    num_samples: int = 0
    """Audio known so far, at 16 kHz."""
    tail: torch.Tensor | None = None
    """The last of these samples: audio that goes on has the same ones in this place."""
    frames: torch.Tensor | None = None
    """Raw log-mel frames, `(mel bins, frames)`."""
    settled: int = 0
    """Encoder positions that are not encoded again."""
    encoder: GrowingStates = field(default_factory=GrowingStates)
    cross: GrowingStates = field(default_factory=GrowingStates)
    text: AgreedText = field(default_factory=AgreedText)

    def restart(self) -> None:
        """Other audio has taken the name: nothing is known of it. Room that was made is kept."""
        self.settled, self.frames, self.text = 0, None, AgreedText()

    def continues_in(self, samples: torch.Tensor) -> bool:
        """Whether these samples begin with those known so far."""
        if self.tail is None or len(samples) < self.num_samples:
            return False
        return torch.equal(samples[self.num_samples - len(self.tail) : self.num_samples], self.tail)

    def remember(self, samples: torch.Tensor, frames: torch.Tensor) -> None:
        """Notes how far the audio goes now."""
        self.num_samples = len(samples)
        self.tail = samples[-_TAIL_SAMPLES:].clone()
        self.frames = frames


SegmentKey = tuple[str, str]


class SegmentContexts:
    """The contexts of all utterances under way; the one not used for longest makes room for a new one."""

    def __init__(self, max_contexts: int) -> None:
        self._max_contexts = max_contexts
        self._contexts: dict[SegmentKey, SegmentContext] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        """Utterances under way."""
        return len(self._contexts)

    def of(self, segment_key: SegmentKey) -> SegmentContext:
        """The context of an utterance; a new one where there is none."""
        with self._lock:
            context = self._contexts.pop(segment_key, None) or SegmentContext()
            while len(self._contexts) >= self._max_contexts:
                del self._contexts[next(iter(self._contexts))]
            self._contexts[segment_key] = context
        return context

    def release(self, segment_keys: Collection[SegmentKey]) -> None:
        """Forgets utterances; unknown ones are ignored."""
        with self._lock:
            for key in segment_keys:
                self._contexts.pop(key, None)
