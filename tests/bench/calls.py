"""Hand-made calls, alone and among others."""

from dataclasses import replace

from clients.types import Alternative, Result, Word
from tests.clients.traces import entry, final, interim, trace

SPOKEN = (("Hello", 500, 900), ("there,", 1000, 1300), ("how", 1400, 1600), ("are", 1650, 1750), ("you?", 1800, 2000))
"""Word, start and end in ms."""
TEXT = " ".join(word for word, _, _ in SPOKEN)


def with_words(result: Result) -> Result:
    """The final with the times of its words, which are all of SPOKEN."""
    words = tuple(Word(text=t, start_ms=s, end_ms=e, confidence=0.9) for t, s, e in SPOKEN)
    return replace(result, alternatives=(Alternative(transcript=TEXT, confidence=0.9, words=words),))


def alone_trace(name="a.wav"):
    """The recording without other calls beside it."""
    reference = entry({1: TEXT}, [(1, 500, 2000)])
    result = with_words(final(TEXT, start_ms=300, end_ms=2500))
    return trace([(0.2, result)], reference=reference, name=name, speed=0.0)


def live_trace(*, delay_s=0.0, index=0, name="a.wav", text=TEXT, **options):
    """The recording in real time: two interims and the final, all so much later."""
    reference = entry({1: TEXT}, [(1, 500, 2000)])
    events = [
        (1.1 + delay_s, interim("Hello", start_ms=300, end_ms=1000)),
        (1.8 + delay_s, interim("Hello their how", start_ms=300, end_ms=1700)),
        (2.6 + delay_s, final(text, start_ms=300, end_ms=2500)),
    ]
    return trace(events, reference=reference, index=index, name=name, **options)
