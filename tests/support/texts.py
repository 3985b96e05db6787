"""Texts as word errors see them."""

from whisper_normalizer.english import EnglishTextNormalizer

_normalize = EnglishTextNormalizer()


def words(text: str) -> list[str]:
    """The words of an English text, numbers and spelling normalised."""
    return _normalize(text).split()
