"""How alike two spellings sound: a weighted edit distance over letters, for many pairs at once.

Speech recognisers that do not know a name write something that sounds like it, often in several words. So spelling is
first brought closer to sound by a few rules that hold in most languages written in Latin letters ("ph" is "f"), after
Philips' Metaphone (1990); then vowels are cheap to change, consonants of one place of articulation cheaper than others
(Wagner and Fischer 1974 with these weights). Letters of other scripts are compared as they are.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_RULES = [
    (re.compile(pattern), sound)
    for pattern, sound in (
        ("tch|sch|sh|ch|sz|cz", "j"),
        ("ph", "f"),
        ("qu", "kw"),
        ("gh|h(?![aeiouy])", ""),
        ("c(?=[eiy])", "s"),
        ("[cq]", "k"),
        ("^x", "s"),
        ("x", "ks"),
        ("y", "i"),
        (r"(.)\1+", r"\1"),
    )
]
_CLASSES = ("aeiou", "bp", "dt", "gk", "fvw", "szj", "mn", "lr", "h")
_CLASS_OF = {ord(letter): number for number, letters in enumerate(_CLASSES, start=1) for letter in letters}
_VOWELS = 1
_VOWEL_CHANGE = 0.35
_KIN_CHANGE = 0.4
_OTHER_CHANGE = 1.0
_VOWEL_GAP = 0.5
_OTHER_GAP = 0.9
_NUM_CLASSES = len(_CLASSES) + 1
"""Class 0 is every other letter."""


def sound_of(text: str) -> str:
    """Letters and digits of a text, spelled nearer to how they sound."""
    plain = unicodedata.normalize("NFKD", text.casefold())
    key = "".join(c for c in plain if c.isalnum())
    for pattern, sound in _RULES:
        key = pattern.sub(sound, key)
    return key


@dataclass(frozen=True, slots=True, kw_only=True)
class Sounds:
    """Several spellings as arrays, padded to the longest."""

    letters: NDArray[np.int32]
    """Code points, 0 behind the end, `(spellings, longest)`."""
    classes: NDArray[np.int8]
    gaps: NDArray[np.float32]
    """What it costs to leave a letter out, `(spellings, longest)`."""
    lengths: NDArray[np.intp]
    counts: NDArray[np.int16]
    """Letters of each class, `(spellings, classes)`."""

    @property
    def weights(self) -> NDArray[np.float32]:
        """What it costs to leave a whole spelling out."""
        total: NDArray[np.float32] = self.gaps.sum(1)
        return total


def sounds(keys: Sequence[str]) -> Sounds:
    """Arrays of what `sound_of` gave."""
    longest = max((len(key) for key in keys), default=0)
    letters = np.zeros((len(keys), longest), dtype=np.int32)
    classes = np.zeros(letters.shape, dtype=np.int8)
    for row, key in enumerate(keys):
        letters[row, : len(key)] = [ord(c) for c in key]
        classes[row, : len(key)] = [_CLASS_OF.get(ord(c), 0) for c in key]
    used = letters > 0
    gaps = np.where(classes == _VOWELS, _VOWEL_GAP, _OTHER_GAP).astype(np.float32) * used
    counts = [((classes == number) & used).sum(1) for number in range(_NUM_CLASSES)]
    return Sounds(
        letters=letters,
        classes=classes,
        gaps=gaps,
        lengths=used.sum(1),
        counts=np.stack(counts, axis=1).astype(np.int16),
    )


def near_pairs(wanted: Sounds, heard: Sounds, limit: float) -> list[tuple[int, int, float]]:
    """Pairs that sound alike: index in `wanted`, index in `heard`, distance.

    The distance is 0 for the same sound and 1 where nothing is shared; pairs beyond `limit` are left out.
    """
    if not wanted.letters.size or not heard.letters.size:
        return []
    # Letters of a class that the other side lacks cost at least a gap: what cannot be near is not compared.
    missing = wanted.counts[:, None] - heard.counts[None]
    gap = np.full(_NUM_CLASSES, _OTHER_GAP, dtype=np.float32)
    gap[_VOWELS] = _VOWEL_GAP
    at_least = np.maximum((np.maximum(missing, 0) * gap).sum(-1), (np.maximum(-missing, 0) * gap).sum(-1))
    allowed = limit * wanted.weights[:, None]
    ours, theirs = np.nonzero(at_least <= allowed)
    if not len(ours):
        return []
    distances = _distances(wanted, ours, heard, theirs) / wanted.weights[ours]
    near = np.flatnonzero(distances <= limit)
    return [(int(ours[i]), int(theirs[i]), float(distances[i])) for i in near]


def _distances(wanted: Sounds, ours: NDArray[np.intp], heard: Sounds, theirs: NDArray[np.intp]) -> NDArray[np.float32]:
    """Edit distances of pairs; one step a letter of `wanted`, all pairs and letters of `heard` at once."""
    letters, classes = heard.letters[theirs], heard.classes[theirs]
    skipped = np.concatenate((np.zeros((len(theirs), 1), np.float32), np.cumsum(heard.gaps[theirs], 1)), axis=1)
    row = skipped.copy()
    for step in range(wanted.letters.shape[1]):
        letter, kind = wanted.letters[ours, step, None], wanted.classes[ours, step, None]
        kin = np.where(kind == _VOWELS, _VOWEL_CHANGE, _KIN_CHANGE)
        change = np.where(letters == letter, 0.0, np.where((classes == kind) & (kind > 0), kin, _OTHER_CHANGE))
        entered = row + wanted.gaps[ours, step, None]
        entered[:, 1:] = np.minimum(entered[:, 1:], row[:, :-1] + change)
        # Letters of `heard` left out: the running minimum, each position seen from the start of its row.
        following = np.minimum.accumulate(entered - skipped, axis=1) + skipped
        row = np.where(letter > 0, following, row).astype(np.float32)
    result: NDArray[np.float32] = row[np.arange(len(theirs)), heard.lengths[theirs]]
    return result
