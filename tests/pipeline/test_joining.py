"""A number said in groups: one result, whatever the packets and the engine's delays."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.config import EndpointingConfig
from pipeline.events import AudioAcknowledged, RecognitionResult, TurnEvent, TurnKind
from pipeline.numbers.unfinished import ends_in_unfinished_number, format_joined
from pipeline.session import NEED_AUDIO
from pipeline.types import DecodeRequest, DecodeResult, Hypothesis
from tests.support.audio import bursts, linear16, split
from tests.support.drivers import plain_session, run_delayed, run_lockstep

DIGITS, WORDS, NOTHING = 0.2, 0.05, 0.01
"""Loud bursts "are" digits, one each 200 ms of a segment, softer ones words, the softest nothing."""


def spoken_digits(request: DecodeRequest) -> DecodeResult:
    level = float(np.abs(request.audio).max())
    count = len(request.audio) // 3_200
    digits = " ".join(str(n % 10) for n in range(count))
    text = digits if level > 0.3 else f"words{count}" if level > 0.1 else ""
    hypothesis = Hypothesis(transcript=text, confidence=0.9, language_code="en", certainties=())
    return DecodeResult(request_id=request.request_id, alternatives=(hypothesis,) if text else ())


def session(number_hangover_ms=1_500, **given):
    return plain_session(endpointing=EndpointingConfig(number_hangover_ms=number_hangover_ms), **given)


def audio_of(*parts):
    return linear16(bursts([(200, 0.0), *parts]))


def told(log):
    return [(r.result_id, r.alternatives[:1], r.result_start_ms, r.result_end_ms, r.end_reason) for r in log.finals]


def test_groups_with_pauses_are_one_number():
    audio = audio_of((400, DIGITS), (1_200, 0), (300, DIGITS), (900, 0), (400, DIGITS), (3_000, 0))
    (final,) = run_lockstep(session(), split(audio, [1_600]), spoken_digits).finals
    best = final.alternatives[0]
    assert best.formatted_transcript == best.transcript.replace(" ", "")
    assert len(best.transcript.split()) >= 11
    assert final.result_id == "1-1"
    assert final.result_start_ms < 200


@pytest.mark.parametrize(
    "parts",
    [
        [(400, DIGITS), (1_900, 0), (300, DIGITS), (3_000, 0)],  # too long a pause
        [(400, WORDS), (1_200, 0), (300, DIGITS), (3_000, 0)],  # no number before it
    ],
)
def test_what_is_no_pause_in_a_number_ends_the_result(parts):
    assert len(run_lockstep(session(), [audio_of(*parts)], spoken_digits).finals) == 2


def test_words_behind_the_number_end_it():
    audio = audio_of((400, DIGITS), (1_200, 0), (600, WORDS), (1_200, 0), (400, DIGITS), (3_000, 0))
    first, second = run_lockstep(session(), [audio], spoken_digits).finals
    assert "words" in first.alternatives[0].transcript
    assert second.result_id == "1-3"


def test_a_pause_of_the_hangover_ends_it_where_that_is_asked_for():
    audio = audio_of((400, DIGITS), (1_200, 0), (300, DIGITS), (3_000, 0))
    assert len(run_lockstep(session(number_hangover_ms=500), [audio], spoken_digits).finals) == 2


def test_a_sound_without_words_between_two_groups_ends_nothing():
    audio = audio_of((400, DIGITS), (600, 0), (100, NOTHING), (600, 0), (300, DIGITS), (3_000, 0))
    assert len(run_lockstep(session(), [audio], spoken_digits).finals) == 1


def test_interims_go_on_under_the_first_name_and_take_back_nothing_stable():
    audio = audio_of((600, DIGITS), (1_000, 0), (1_800, DIGITS), (3_000, 0))
    log = run_lockstep(session(), split(audio, [1_600]), spoken_digits)
    results = log.of(RecognitionResult)
    assert {result.result_id for result in results} == {"1-1"}
    (final,) = log.finals
    for interim in results[:-1]:
        stable = interim.alternatives[0].transcript[: interim.stable_length]
        assert final.alternatives[0].transcript.startswith(stable)
    assert any(interim.stable_length >= len("0 1 2 3 4") for interim in results[:-1])


def test_nothing_that_is_held_is_acknowledged():
    audio = audio_of((400, DIGITS), (1_200, 0), (300, DIGITS), (3_000, 0))
    log = run_lockstep(session(), split(audio, [800]), spoken_digits)
    at_final = next(i for i, e in enumerate(log.effects) if isinstance(e, RecognitionResult) and e.is_final)
    before = [e.offset_ms for e in log.effects[:at_final] if isinstance(e, AudioAcknowledged)]
    assert max(before, default=0) <= log.finals[0].result_start_ms


def test_the_final_comes_as_soon_as_nobody_can_go_on_in_time():
    call = session()
    call.receive_audio(audio_of((400, DIGITS), (4_000, 0)))
    heard_ms = None
    while (effect := call.next_effect()) is not NEED_AUDIO:
        if isinstance(effect, DecodeRequest):
            call.receive_decode(spoken_digits(effect))
        if isinstance(effect, RecognitionResult) and effect.is_final:
            heard_ms = call.audio_received_ms
    call.close()
    assert 600 + 1_500 <= heard_ms <= 600 + 1_500 + 250


def test_a_turn_goes_on_over_the_pauses_of_a_number():
    audio = audio_of((400, DIGITS), (1_200, 0), (300, DIGITS), (3_000, 0))
    log = run_lockstep(session(turn_events=True), split(audio, [1_600]), spoken_digits)
    turns = log.of(TurnEvent)
    kinds = [turn.kind for turn in turns]
    assert kinds == [TurnKind.STARTED, TurnKind.ENDS_PROBABLY, TurnKind.GOES_ON, TurnKind.ENDS_PROBABLY, TurnKind.ENDED]
    (final,) = log.finals
    assert {turns[3].transcript, turns[4].transcript} == {final.alternatives[0].transcript}


PARTS = st.lists(
    st.tuples(
        st.integers(10, 90).map(lambda n: 10 * n),
        st.sampled_from([DIGITS, DIGITS, WORDS, NOTHING]),
        st.integers(20, 200).map(lambda n: 10 * n),
    ),
    min_size=1,
    max_size=6,
)


@given(
    parts=PARTS,
    sizes=st.lists(st.integers(40, 4_000), min_size=1, max_size=4),
    delays=st.lists(st.integers(0, 40), min_size=1, max_size=7),
    flush_after=st.none() | st.integers(0, 40),
    honour_cancel=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_numbers_depend_on_what_was_said_alone(parts, sizes, delays, flush_after, honour_cancel):
    audio = audio_of(*(piece for ms, level, pause_ms in parts for piece in ((ms, level), (pause_ms, 0.0))))
    chunks = list(split(audio, sizes))

    def flushed(call):
        """The chunks, with a flush behind one of them."""
        for index, chunk in enumerate(chunks):
            yield chunk
            if index == flush_after:
                call.receive_flush()

    plain, late = session(), session()
    expected = told(run_lockstep(plain, flushed(plain), spoken_digits))
    log = run_delayed(late, flushed(late), delays, honour_cancel=honour_cancel, answer=spoken_digits)
    assert late.is_done
    assert told(log) == expected


@pytest.mark.parametrize(
    ("text", "unfinished"),
    [
        ("My card number is four one one one.", True),
        ("4111", True),
        ("It is 4-1-1-1, 2", True),
        ("double four", True),
        ("Sure, it's five, five", True),
        ("8-2.", True),
        ("4167 2, 7 940 8th, 8th.", True),
        ("4167 940 A-0, A.", True),
        ("That is plan B", False),
        ("9710 A5, A1", True),
        ("97572 A4A26", True),
        ("on the 4th", False),
        ("at 5pm", False),
        ("I have two", False),
        ("He is 45", False),
        ("That is fifty dollars", False),
        ("4111 2222 3333 4444", False),
        ("4111 is my number", False),
        ("", False),
    ],
)
def test_what_stops_in_the_middle_of_a_number(text, unfinished):
    assert ends_in_unfinished_number(text, "en") is unfinished


def test_languages_without_known_numbers_wait_for_nothing():
    assert not ends_in_unfinished_number("cuatro uno uno uno 4111", "es")


@pytest.mark.parametrize(
    ("first", "then", "written"),
    [
        ("My card is 4111.", "two two double two", "My card is 41112222"),
        ("4111,", "2222. Thanks.", "41112222. Thanks."),
        ("4111", "and that is it", "4111 and that is it"),
        ("4-1-1", "5", "4115"),
    ],
)
def test_the_joined_number_is_written_as_one(first, then, written):
    assert format_joined(first, then, "en") == written
