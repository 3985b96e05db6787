import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.config import EndpointingConfig
from pipeline.endpointing import _NEXT, Endpointer, EndpointState, SpeechBegan, SpeechEnded, _Input

CONFIG = EndpointingConfig(onset_ms=50, hangover_ms=200)


def changes(scores, config=CONFIG):
    endpointer = Endpointer(config)
    return [(i, change) for i, score in enumerate(scores) if (change := endpointer.advance(score))]


def test_table_is_complete():
    assert set(_NEXT) == {(state, event) for state in EndpointState for event in _Input}


def test_speech_begins_with_its_first_voiced_frame_and_ends_after_the_hangover():
    found = changes([0.0] * 10 + [1.0] * 30 + [0.0] * 40)
    assert found == [(14, SpeechBegan(frame=10)), (59, SpeechEnded(frame=40))]


def test_a_click_is_not_speech():
    assert changes([0.0] * 10 + [1.0] * 4 + [0.0] * 40) == []


def test_a_pause_shorter_than_the_hangover_does_not_end_speech():
    found = changes([1.0] * 20 + [0.0] * 19 + [1.0] * 20 + [0.0] * 30)
    assert [type(change) for _, change in found] == [SpeechBegan, SpeechEnded]


def test_going_on_takes_less_than_starting():
    assert changes([0.42] * 50) == []
    assert [c for _, c in changes([1.0] * 10 + [0.42] * 50)] == [SpeechBegan(frame=0)]


def test_sensitivity_lowers_the_threshold():
    quiet = [0.3] * 50
    assert changes(quiet, EndpointingConfig(sensitivity=0.5)) == []
    assert changes(quiet, EndpointingConfig(sensitivity=1.0))


def test_flush_counts_an_onset_and_end_closes_it():
    endpointer = Endpointer(CONFIG)
    endpointer.advance(1.0)
    assert endpointer.flush() == SpeechBegan(frame=0)
    assert endpointer.end() == SpeechEnded(frame=1)
    assert endpointer.end() is None


@given(st.lists(st.floats(0, 1), max_size=300))
def test_begin_and_end_alternate_and_times_grow(scores):
    found = [change for _, change in changes(scores)]
    kinds = [type(change) for change in found]
    assert kinds == [SpeechBegan, SpeechEnded] * (len(kinds) // 2) + [SpeechBegan] * (len(kinds) % 2)
    frames = [change.frame for change in found]
    assert frames == sorted(frames)


@pytest.mark.parametrize("field", ["onset_ms", "hangover_ms", "pre_roll_ms", "max_segment_ms", "sensitivity"])
def test_limits_are_named(field):
    from pipeline.errors import InvalidConfigError

    with pytest.raises(InvalidConfigError, match=rf"endpointing.{field}: -1 is outside"):
        EndpointingConfig(**{field: -1})


def test_doubt_holds_a_beginning_back_but_not_for_ever_and_loses_nothing():
    endpointer = Endpointer(EndpointingConfig())
    begun = [endpointer.advance(1.0, is_doubtful=True) for _ in range(30)]
    assert begun.index(SpeechBegan(frame=0)) == 15
    cleared = Endpointer(EndpointingConfig())
    assert [cleared.advance(1.0, is_doubtful=True) for _ in range(8)] == [None] * 8
    assert cleared.advance(0.0) == SpeechBegan(frame=0)


def test_what_turns_out_to_be_a_tone_never_began():
    endpointer = Endpointer(EndpointingConfig())
    for _ in range(8):
        endpointer.advance(1.0, is_doubtful=True)
    endpointer.withdraw()
    assert endpointer.advance(0.0) is None
    assert not endpointer.is_speaking
