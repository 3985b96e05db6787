"""Word errors of clips, scored as recordings are."""

from collections.abc import Iterable, Mapping, Sequence

from clients.replay.scoring import Edit, compare, normalize
from pipeline.benchmarks.schedule import Clip

_LANGUAGE = "en"


def word_error_rate(clips: Sequence[Clip], texts: Mapping[int, str]) -> float:
    """Errors of all texts (by clip) per word that was said."""
    edits = [_edits(clips[index].text, text) for index, text in texts.items()]
    return _num_errors(e for found in edits for e in found) / max(1, _num_words(e for found in edits for e in found))


def interim_difference_rate(finals: Mapping[int, str], interims: Mapping[int, str]) -> float:
    """Words in which interims differ from the finals of the same clips, per word of those finals.

    What a final has behind the end of its interim does not count: it may not have been said by then.
    """
    edits = [_edits(finals[index], text) for index, text in interims.items()]
    heard = [found[:-1] if found and found[-1].kind == "delete" else found for found in edits]
    return _num_errors(e for found in heard for e in found) / max(1, _num_words(e for found in edits for e in found))


def _edits(reference: str, other: str) -> tuple[Edit, ...]:
    """Spelling of numbers, case and punctuation do not count."""
    return compare(normalize(reference, _LANGUAGE), normalize(other, _LANGUAGE))


def _num_errors(edits: Iterable[Edit]) -> int:
    wrong = (edit for edit in edits if edit.kind != "equal")
    return sum(max(len(edit.reference.split()), len(edit.hypothesis.split())) for edit in wrong)


def _num_words(edits: Iterable[Edit]) -> int:
    """Of the references."""
    return sum(len(edit.reference.split()) for edit in edits)
