"""Counts interim words that are later taken back: how restless the text on a screen is."""


class FlickerCounter:
    """Follows the interims of the segments under way; keeps no text of finished ones."""

    def __init__(self) -> None:
        self._shown: dict[str, list[str]] = {}

    def update(self, result_id: str, transcript: str, *, is_final: bool) -> int:
        """Takes the newest text of a segment; returns how many words shown before it does not keep."""
        words = transcript.split()
        before = self._shown.pop(result_id, [])
        if not is_final:
            self._shown[result_id] = words
        kept = 0
        for old, new in zip(before, words, strict=False):
            if old != new:
                break
            kept += 1
        return len(before) - kept

    def knows(self, result_id: str) -> bool:
        """Whether an interim of this segment was shown."""
        return result_id in self._shown
