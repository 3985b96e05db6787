"""Speech contexts: what is taken, what is refused, and what a complaint says."""

import math

import pytest

from pipeline.errors import InvalidConfigError
from pipeline.types import SpeechContext
from server.errors import StartupError
from server.wire.contexts import MAX_PHRASE_CHARS, MAX_PHRASES, parse_contexts, render_contexts
from talkpath.speech.v1 import speech_pb2 as pb
from tests.support.server import settings_for_tests

FIELD = "config.speech_contexts"


def parsed(*messages):
    return parse_contexts(FIELD, messages, default_boost=9.0)


def test_spaces_and_repeats_are_tidied_and_no_boost_is_the_default():
    contexts = parsed(
        pb.SpeechContext(phrases=["  Fennimar  Plus ", "Fennimar Plus", "Ada"], boost=3),
        pb.SpeechContext(phrases=["Ån"]),
    )
    assert contexts == (
        SpeechContext(phrases=("Fennimar Plus", "Ada"), boost=3.0),
        SpeechContext(phrases=("Ån",), boost=9.0),
    )
    assert parsed(*render_contexts(contexts)) == contexts


def test_contexts_without_phrases_are_left_out():
    assert parsed(pb.SpeechContext(boost=2)) == parsed() == ()


def test_limits_are_inclusive():
    contexts = parsed(
        pb.SpeechContext(phrases=["x" * MAX_PHRASE_CHARS], boost=20),
        pb.SpeechContext(phrases=[f"name {n}" for n in range(MAX_PHRASES - 1)]),
    )
    assert sum(len(context.phrases) for context in contexts) == MAX_PHRASES


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        (
            [{"phrases": ["a"] * MAX_PHRASES}, {"phrases": ["b"]}],
            [f"{FIELD}.phrases", "501 phrases", "limit of 500", "send those that are likely"],
        ),
        (
            [{"phrases": ["ok"]}, {"phrases": ["ok", "x" * 101]}],
            [f"{FIELD}[1].phrases[1]", "101 characters", "limit of 100", "short phrases"],
        ),
        ([{"phrases": [" "]}], [f"{FIELD}[0].phrases[0]", "no printable word", "leave it out"]),
        ([{"phrases": ["?!"]}], [f"{FIELD}[0].phrases[0]", "no printable word"]),
        ([{"phrases": ["a\x00b"]}], [f"{FIELD}[0].phrases[0]", "no printable word"]),
        ([{"phrases": ["ok"], "boost": 20.5}], [f"{FIELD}[0].boost", "20.5 is outside 0 to 20", "0 for the server's"]),
        ([{"phrases": ["ok"], "boost": -1}], [f"{FIELD}[0].boost", "-1 is outside 0 to 20"]),
        ([{"phrases": ["ok"], "boost": math.nan}], [f"{FIELD}[0].boost", "nan is outside 0 to 20"]),
    ],
)
def test_complaints_name_field_value_limit_and_remedy(messages, said):
    with pytest.raises(InvalidConfigError) as caught:
        parsed(*(pb.SpeechContext(**message) for message in messages))
    for part in said:
        assert part in str(caught.value)


def test_the_default_boost_is_a_setting():
    assert settings_for_tests(recognition__default_boost=7.5).recognition.call_defaults().boost == 7.5
    with pytest.raises(StartupError, match="default_boost"):
        settings_for_tests(recognition__default_boost=21)
