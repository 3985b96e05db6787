"""When words were said: dynamic time warping over the cross-attention of the heads that follow the audio.

The method of OpenAI's timing.py: scores of the alignment heads, softmax over the real audio alone, normalised over
the tokens, median-filtered over time, averaged, and the cheapest monotone path through them. Then the words are
trimmed to where there is sound, since the path gives every pause to one of its neighbours.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray

from pipeline.engines.whisper.cache import CrossStates
from pipeline.engines.whisper.decoder import AttentionProbe, Decoder
from pipeline.engines.whisper.gates import confidence
from pipeline.engines.whisper.scores import log_sum_exp
from pipeline.engines.whisper.words import WordSpan
from pipeline.types import Word

POSITION_MS = 20
"""One encoder position."""
_FRAMES_PER_POSITION = 2
_MEDIAN_POSITIONS = 7
_MIN_RANGE_LOG10 = 1.0
"""Less than 10 dB between the quietest and the loudest: nothing to trim by."""
_MAX_RANGE_LOG10 = 5.0
_SOUND_SHARE = 0.35
"""Sound is what lies above this share of the range between quiet and loud."""
_MARGIN_POSITIONS = 2
_PAUSE_POSITIONS = 15
_SNIPPET_POSITIONS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Alignment:
    """How the tokens of one text lie on its audio."""

    starts: NDArray[np.int64] | None
    """The encoder position at which each token begins, and the one at which the last one ends; never decreases. None
    where no positions were asked for."""
    log_probs: tuple[float, ...] = field(repr=False)
    """Natural logarithm of each token's probability, and of the end of text behind them."""


def align(
    decoder: Decoder, cross: CrossStates, prompt: Sequence[int], tokens: Sequence[int], num_positions: int
) -> Alignment:
    """Reads one text along with its audio. One row at a time: the outcome is the same whatever the batch was.

    Args:
        decoder: The decoder.
        cross: One row.
        prompt: What came before the text.
        tokens: Text tokens and the end of text.
        num_positions: Encoder positions that hold real audio; 0 reads the probabilities alone.
    """
    sequence = [*prompt, *tokens]
    probe = AttentionProbe(decoder.spec.alignment_heads) if num_positions else None
    cache = decoder.new_cache(cross, len(sequence))
    hidden = decoder.forward(torch.tensor([sequence], device=cache.device), cache, probe=probe)[0]
    logits = decoder.logits(hidden[len(prompt) - 1 : -1])
    chosen = torch.tensor(tokens, device=cache.device)
    log_probs = logits.gather(-1, chosen[:, None]).squeeze(-1) - log_sum_exp(logits)
    starts = None
    if probe is not None:
        scores = torch.cat(probe.scores, dim=1)[0, :, :, :num_positions]
        starts = _align(scores, len(prompt), len(tokens) - 1)
    return Alignment(starts=starts, log_probs=tuple(log_probs.tolist()))


def _align(scores: torch.Tensor, prompt_tokens: int, text_tokens: int) -> NDArray[np.int64]:
    """`scores` is `(heads, tokens, positions)`, for the prompt, the text and the end of text."""
    weights = scores.softmax(-1)
    deviation, mean = torch.std_mean(weights, dim=-2, keepdim=True, unbiased=False)
    weights = _median_filtered((weights - mean) / deviation.clamp(min=1e-9)).mean(0)
    # The token at n - 1 looks at the audio of token n, which it predicts; the last text token at that of the end.
    rows = weights[prompt_tokens - 1 : prompt_tokens + text_tokens]
    return _path_starts(-rows.double().cpu().numpy())


def _median_filtered(weights: torch.Tensor) -> torch.Tensor:
    reach = _MEDIAN_POSITIONS // 2
    if weights.shape[-1] <= reach:
        return weights
    padded = torch.nn.functional.pad(weights, (reach, reach), mode="reflect")
    return padded.unfold(-1, _MEDIAN_POSITIONS, 1).median(-1).values


def _path_starts(cost: NDArray[np.float64]) -> NDArray[np.int64]:
    """The first position of each row on the cheapest monotone path from the first to the last cell."""
    total = np.empty_like(cost)
    total[0] = np.cumsum(cost[0])
    for i in range(1, len(cost)):
        above = total[i - 1]
        entered = np.minimum(above, np.concatenate(([np.inf], above[:-1])))
        # total[j] = cost[j] + min(entered[j], total[j - 1]), solved for all j at once through the running sum.
        summed = np.cumsum(cost[i])
        total[i] = summed + np.minimum.accumulate(entered - summed + cost[i])
    starts = np.zeros(len(cost), dtype=np.int64)
    i, j = cost.shape[0] - 1, cost.shape[1] - 1
    while i > 0:
        up, diagonal = total[i - 1, j], total[i - 1, j - 1] if j else np.inf
        left = total[i, j - 1] if j else np.inf
        if left < min(up, diagonal):
            j -= 1
            continue
        starts[i] = j
        i -= 1
        j -= int(diagonal <= up)
    return starts


def make_words(
    spans: Sequence[WordSpan],
    starts: NDArray[np.int64],
    log_probs: Sequence[float],
    frames: NDArray[np.float32],
    audio_ms: int,
) -> tuple[Word, ...]:
    """Words with times on a grid of 20 ms, in order, without overlap, within the audio.

    Args:
        spans: The words as runs of text tokens.
        starts: From an `Alignment`.
        log_probs: One a text token.
        frames: Raw log-mel frames of the audio, `(mel bins, frames)`.
        audio_ms: Length of the audio.
    """
    sounds = _sounding_positions(frames)
    words, earliest_ms = [], 0
    for span in spans:
        first, end = _trimmed(int(starts[span.first]), int(starts[span.end]), sounds)
        start_ms = min(max(first * POSITION_MS, earliest_ms), audio_ms)
        end_ms = min(max(end * POSITION_MS, start_ms + POSITION_MS), audio_ms)
        share = confidence(float(np.mean(log_probs[span.first : span.end])))
        words.append(Word(text=span.text, start_ms=start_ms, end_ms=end_ms, confidence=share))
        earliest_ms = end_ms
    return tuple(words)


def _sounding_positions(frames: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Where there is sound rather than background, one flag an encoder position."""
    level = frames.max(axis=0)
    level = level[: len(level) // _FRAMES_PER_POSITION * _FRAMES_PER_POSITION].reshape(-1, _FRAMES_PER_POSITION).max(1)
    if not len(level):
        return np.ones(0, dtype=np.bool_)
    loud = level.max()
    quiet = max(np.percentile(level, 5), loud - _MAX_RANGE_LOG10)
    if loud - quiet < _MIN_RANGE_LOG10:
        return np.ones(len(level), dtype=np.bool_)
    sounding: NDArray[np.bool_] = level > quiet + _SOUND_SHARE * (loud - quiet)
    return sounding


def _trimmed(first: int, end: int, sounds: NDArray[np.bool_]) -> tuple[int, int]:
    """Cuts soundless positions off both ends of `[first, end)`, but for a margin; all soundless: as it was."""
    inside = np.flatnonzero(sounds[first:end])
    if not len(inside):
        return first, end
    parts = np.split(inside, np.flatnonzero(np.diff(inside) > _PAUSE_POSITIONS) + 1)
    longest = max(len(part) for part in parts)
    # A snippet across a pause is the edge of the neighbouring word.
    while len(parts[0]) < min(_SNIPPET_POSITIONS, longest):
        parts.pop(0)
    while len(parts[-1]) < min(_SNIPPET_POSITIONS, longest):
        parts.pop()
    return (
        max(first, first + int(parts[0][0]) - _MARGIN_POSITIONS),
        min(end, first + int(parts[-1][-1]) + 1 + _MARGIN_POSITIONS),
    )
