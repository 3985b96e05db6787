"""Which words of an utterance its interims have agreed on for so long that they are not decoded again.

The next interim begins with them. Costs of an interim then no longer grow with the text before it; a final decodes
everything. LocalAgreement (Liu et al. 2020, arXiv:2005.11185), over a time instead of two hypotheses.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(slots=True)
class AgreedText:
    """The newest text of an utterance, and since when each of its tokens stands there."""

    prompt: tuple[int, ...] = ()
    tokens: tuple[int, ...] = field(default=(), repr=False)
    log_probs: tuple[float, ...] = field(default=(), repr=False)
    """One a token."""
    _since: list[int] = field(default_factory=list)
    """Samples heard when a token got its place."""

    def note(
        self, prompt: tuple[int, ...], tokens: Sequence[int], log_probs: Sequence[float], num_samples: int
    ) -> None:
        """A new text of the utterance, of which so many samples were heard."""
        known = self.tokens if prompt == self.prompt else ()
        num_kept = 0
        for old, new in zip(known, tokens, strict=False):
            if old != new:
                break
            num_kept += 1
        self.prompt, self.tokens = prompt, tuple(tokens)
        self.log_probs = tuple(log_probs[: len(tokens)])
        self._since[num_kept:] = [num_samples] * (len(tokens) - num_kept)

    def num_settled(self, prompt: tuple[int, ...], num_samples: int, min_age_samples: int) -> int:
        """How many tokens have stood for so long, when so many samples are heard."""
        if prompt != self.prompt:
            return 0
        for count, since in enumerate(self._since):
            if num_samples - since < min_age_samples:
                return count
        return len(self._since)
