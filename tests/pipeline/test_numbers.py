"""Numbers in digits, and the profiles of endpointing."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.config import EndpointingConfig, EndpointingProfile
from pipeline.numbers.formatting import format_numbers
from pipeline.profiles import PROFILES, with_profile

_SAID = {"zero": "0", "oh": "0", "one": "1", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6"}


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("four two double one oh", "42110"),
        ("4-2-1 5, 6", "42156"),
        ("zero zero one", "001"),
        ("My number is oh seven seven double four.", "My number is 07744."),
        ("nine one one.", "911."),
        ("triple zero two", "0002"),
        ("five-five-five", "555"),
        ("4215 6377 8890 1234", "4215 6377 8890 1234"),
        ("1-800-555-0199", "1-800-555-0199"),
        ("twenty three", "23"),
        ("forty-two people", "42 people"),
        ("one hundred and five", "105"),
        ("two thousand and five", "2005"),
        ("five million two hundred thousand and six", "5200006"),
        ("in nineteen eighty four, you know", "in 1984, you know"),
        ("one of them", "one of them"),
        ("Oh, two of them", "Oh, two of them"),
        ("oh no", "oh no"),
        ("double trouble", "double trouble"),
        ("that is $5 at 10:30", "that is $5 at 10:30"),
        ("", ""),
    ],
)
def test_numbers_are_written_in_digits(said, written):
    assert format_numbers(said, "en") == written


def test_other_languages_are_not_touched():
    assert format_numbers("two six hundred", "de") == "two six hundred"


@given(st.lists(st.sampled_from(sorted(_SAID)), min_size=3, max_size=19).filter(lambda words: words[0] != "oh"))
def test_no_said_digit_is_lost(words):
    assert format_numbers(f"It is {' '.join(words)}.", "en") == f"It is {''.join(_SAID[w] for w in words)}."


@given(st.text(alphabet="0123456789 -,.;", max_size=30))
def test_no_written_digit_is_lost(text):
    assert re.sub(r"\D", "", format_numbers(text, "en")) == re.sub(r"\D", "", text)


@given(st.lists(st.sampled_from(["I", "see", "and", "well,", "no."]), max_size=6))
def test_words_are_not_touched(words):
    assert format_numbers(" ".join(words), "en") == " ".join(words)


@pytest.mark.parametrize("profile", EndpointingProfile)
def test_a_profile_sets_what_is_not_given(profile):
    base = EndpointingConfig(onset_ms=80, sensitivity=0.7)
    config = with_profile(base, profile, {"hangover_ms": 410})
    assert (config.profile, config.onset_ms, config.sensitivity, config.hangover_ms) == (profile, 80, 0.7, 410)
    assert config.max_segment_ms == PROFILES[profile]["max_segment_ms"]


def test_the_defaults_are_those_of_conversation():
    assert with_profile(EndpointingConfig(), EndpointingProfile.CONVERSATION, {}) == EndpointingConfig()
