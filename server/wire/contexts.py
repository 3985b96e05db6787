"""Speech contexts: checked on the way in, echoed on the way out."""

from collections.abc import Iterable, Sequence

from pipeline.errors import InvalidConfigError
from pipeline.types import MAX_BOOST, SpeechContext
from talkpath.speech.v1 import speech_pb2 as pb

MAX_PHRASES = 500
"""Of a call, all contexts together."""
MAX_PHRASE_CHARS = 100


def parse_contexts(field: str, messages: Sequence[pb.SpeechContext], default_boost: float) -> tuple[SpeechContext, ...]:
    """Takes the contexts of a call.

    Args:
        field: The public name of the list, for complaints.
        messages: As they came; those without phrases are left out.
        default_boost: Of contexts whose boost is 0.

    Raises:
        InvalidConfigError: Too many phrases, or one is empty, too long or without a letter or digit, or a boost is
            out of range.
    """
    num_phrases = sum(len(message.phrases) for message in messages)
    if num_phrases > MAX_PHRASES:
        raise InvalidConfigError(
            f"{field}.phrases",
            f"{num_phrases} phrases exceed the limit of {MAX_PHRASES} for a call; send those that are likely in it",
        )
    contexts = []
    for number, message in enumerate(messages):
        name = f"{field}[{number}]"
        boost = _boost(f"{name}.boost", message.boost, default_boost)
        phrases = tuple(dict.fromkeys(_phrase(f"{name}.phrases[{i}]", p) for i, p in enumerate(message.phrases)))
        if phrases:
            contexts.append(SpeechContext(phrases=phrases, boost=boost))
    return tuple(contexts)


def render_contexts(contexts: Iterable[SpeechContext]) -> list[pb.SpeechContext]:
    """The contexts in force."""
    return [pb.SpeechContext(phrases=context.phrases, boost=context.boost) for context in contexts]


def _phrase(field: str, phrase: str) -> str:
    words = " ".join(phrase.split())
    if len(words) > MAX_PHRASE_CHARS:
        raise InvalidConfigError(
            field, f"{len(words)} characters exceed the limit of {MAX_PHRASE_CHARS}; send words or short phrases"
        )
    if not any(c.isalnum() for c in words) or not words.isprintable():
        raise InvalidConfigError(field, "holds no printable word; send words as they shall appear, or leave it out")
    return words


def _boost(field: str, boost: float, default: float) -> float:
    if not 0 <= boost <= MAX_BOOST:  # written so that NaN fails
        raise InvalidConfigError(
            field, f"{boost:g} is outside 0 to {MAX_BOOST:g}; use a value in that range, 0 for the server's default"
        )
    return boost or default
