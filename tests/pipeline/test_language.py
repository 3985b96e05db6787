"""The language of a party is decided from its finals, in their order, and kept."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pipeline.config import HintsUpdate
from pipeline.events import NoticeCode, RecognitionResult, SessionNotice
from pipeline.language import LanguageEpochs, LanguageLock
from pipeline.types import DecodeHints, DecodeRequest, DecodeResult, Hypothesis
from tests.support.audio import bursts, linear16, split
from tests.support.drivers import Log, plain_session, run_delayed, run_lockstep

AUTO = DecodeHints(language_code="auto")
GERMAN, ENGLISH = (("de", 0.9), ("en", 0.1)), (("en", 0.9), ("de", 0.1))


def heard(lock, *finals):
    return [lock.hear(probabilities, speech_s) for probabilities, speech_s in finals]


def test_it_locks_with_three_seconds_of_speech_and_not_before():
    verdicts = heard(LanguageLock(), (GERMAN, 1.0), (GERMAN, 1.5), (GERMAN, 1.0))
    assert [v.language_code for v in verdicts] == ["de", "de", "de"]
    assert [v.newly_locked is not None for v in verdicts] == [False, False, True]


def test_a_short_word_does_not_flip_what_was_heard_before():
    verdicts = heard(LanguageLock(), (GERMAN, 2.0), ((("cy", 0.7), ("de", 0.1)), 0.4), (GERMAN, 2.0))
    assert [v.language_code for v in verdicts] == ["de", "de", "de"]


def test_an_unclear_language_is_settled_later():
    unclear = (("es", 0.45), ("pt", 0.4), ("it", 0.1))
    verdicts = heard(LanguageLock(), *[(unclear, 4.0)] * 3)
    assert [v.newly_locked is not None for v in verdicts] == [False, False, True]


@pytest.mark.parametrize(
    ("finals", "expected"),
    [
        ([(ENGLISH, 2.0)], ["de"]),
        ([(ENGLISH, 2.0), (ENGLISH, 2.0)], ["de", "en"]),
        ([(ENGLISH, 2.0), (GERMAN, 2.0), (ENGLISH, 2.0)], ["de", "de", "de"]),
        ([(ENGLISH, 6.5)], ["en"]),
        ([(ENGLISH, 0.5)] * 4, ["de"] * 4),
        ([((("en", 0.7), ("de", 0.3)), 9.0)] * 3, ["de"] * 3),
    ],
)
def test_only_a_clear_and_long_contradiction_changes_the_lock(finals, expected):
    lock = LanguageLock()
    lock.hear(GERMAN, 5.0)
    verdicts = heard(lock, *finals)
    assert [v.language_code for v in verdicts] == expected
    assert [v.newly_locked is not None for v in verdicts] == [
        code == "en" and "en" not in expected[:index] for index, code in enumerate(expected)
    ]


def test_an_update_holds_for_what_begins_behind_it():
    epochs = LanguageEpochs(AUTO)
    epochs.of(0).hear(GERMAN, 5.0)
    epochs.update(DecodeHints(language_code="fr"), 1_000)
    epochs.update(AUTO, 2_000)
    assert epochs.newest_hints == AUTO
    assert epochs.of(999).hints_now(is_final=True).language_code == "de"
    assert epochs.of(1_000).hints_now(is_final=True) == DecodeHints(language_code="fr")
    assert epochs.of(2_000).hints_now(is_final=True).language_code == "auto"


def test_the_lock_outlives_an_update_of_something_else():
    epochs = LanguageEpochs(AUTO)
    epochs.of(0).hear(GERMAN, 5.0)
    epochs.update(AUTO, 1_000)
    assert epochs.of(1_000).hints_now(is_final=False).language_code == "de"


# Whole sessions: loud bursts "are" English, faint ones German.

LOUD, FAINT = 0.2, 0.05


def spoken_language(request: DecodeRequest) -> DecodeResult:
    """Decodes in the language asked for, and tells how likely the one spoken is: the shorter, the less."""
    loud = float(np.abs(request.audio).max()) > 0.3
    spoken, other = ("en", "de") if loud else ("de", "en")
    probability = min(0.95, 0.3 + len(request.audio) / 40_000)
    probabilities = ((spoken, probability), (other, 1 - probability))
    asked = request.hints.language_code
    code = max(probabilities, key=lambda pair: pair[1])[0] if asked == "auto" else asked
    hypothesis = Hypothesis(
        transcript=f"{code} of{len(request.audio)}", confidence=0.9, language_code=code, tokens=(1,), certainties=()
    )
    return DecodeResult(
        request_id=request.request_id,
        alternatives=(hypothesis,),
        language_probabilities=probabilities if request.hints.detects_language else (),
    )


def told(log: Log) -> list[object]:
    """Finals with their languages, and the locks between them."""
    lines: list[object] = []
    for event in log.effects:
        if isinstance(event, RecognitionResult) and event.is_final:
            lines.append((event.result_id, event.alternatives[0].language_code, event.alternatives[0].transcript))
        elif isinstance(event, SessionNotice):
            lines.append((event.code, event.message))
    return lines


UTTERANCES = st.lists(
    st.tuples(st.integers(20, 300).map(lambda n: 10 * n), st.sampled_from([LOUD, FAINT])), min_size=1, max_size=7
)


def audio_of(utterances: list[tuple[int, float]]) -> bytes:
    pattern = [part for said in utterances for part in (said, (700, 0.0))]
    return linear16(bursts([(200, 0.0), *pattern]))


@given(
    utterances=UTTERANCES,
    sizes=st.lists(st.integers(40, 4_000), min_size=1, max_size=4),
    delays=st.lists(st.integers(0, 60), min_size=1, max_size=7),
    honour_cancel=st.booleans(),
)
@example(  # both answers come at once: the lock that falls with the second one is told behind the first
    utterances=[(200, LOUD), (1820, FAINT), (1150, LOUD)], sizes=[40, 1776], delays=[32], honour_cancel=False
)
@settings(max_examples=25, deadline=None)
def test_languages_depend_on_finals_alone_never_on_when_they_came(utterances, sizes, delays, honour_cancel):
    audio = audio_of(utterances)
    expected = told(run_lockstep(plain_session(hints=AUTO), [audio], spoken_language))
    call = plain_session(hints=AUTO)
    delayed = run_delayed(call, split(audio, sizes), delays, honour_cancel=honour_cancel, answer=spoken_language)
    assert call.is_done
    assert told(delayed) == expected


def test_a_final_in_the_wrong_language_is_asked_for_again_and_the_lock_is_told():
    log = run_lockstep(
        plain_session(hints=AUTO),
        [audio_of([(2_000, FAINT), (2_500, FAINT), (500, LOUD), (2_000, FAINT)])],
        spoken_language,
    )
    lines = told(log)
    assert [line[1] for line in lines if line[0] is not NoticeCode.LANGUAGE_LOCKED] == ["de"] * 4
    locks = [line[1] for line in lines if line[0] is NoticeCode.LANGUAGE_LOCKED]
    assert len(locks) == 1
    assert "de" in locks[0]
    assert "%" in locks[0]


def test_answers_that_all_come_at_the_end_are_asked_for_again():
    audio = audio_of([(2_500, FAINT), (2_500, FAINT), (900, LOUD), (2_500, FAINT)])
    log = run_delayed(plain_session(hints=AUTO), split(audio, [1_600]), [10_000], answer=spoken_language)
    finals = [r for r in log.of(DecodeRequest) if r.is_final]
    assert len(finals) > len({r.segment_id for r in finals}), "nothing was asked again"
    assert told(log) == told(run_lockstep(plain_session(hints=AUTO), [audio], spoken_language))


def test_a_named_language_is_never_questioned():
    log = run_lockstep(
        plain_session(hints=DecodeHints(language_code="en")), [audio_of([(4_000, FAINT)] * 2)], spoken_language
    )
    assert [line[1] for line in told(log)] == ["en", "en"]
    assert not any(r.hints.detects_language for r in log.of(DecodeRequest))


@pytest.mark.parametrize("size", [1_600, 37, 100_000])
def test_an_update_changes_the_language_of_what_begins_behind_it(size):
    call = plain_session(hints=DecodeHints(language_code="en"))
    before, behind = audio_of([(800, LOUD)]), audio_of([(800, LOUD), (900, LOUD)])
    requests = []

    def drain():
        while hasattr(effect := call.next_effect(), "__slots__"):
            if isinstance(effect, DecodeRequest):
                requests.append(effect)

    for part in (before, behind):
        for chunk in split(part, [size]):
            call.receive_audio(chunk)
            drain()
        if part is before:
            call.receive_update(HintsUpdate(language_code="fr"))
    call.receive_end()
    drain()
    call.close()
    finals = [r for r in requests if r.is_final]
    assert [r.hints.language_code for r in finals] == ["en", "fr", "fr"]


def test_an_update_within_an_utterance_leaves_it_alone():
    call = plain_session(hints=DecodeHints(language_code="en"))
    call.receive_audio(linear16(bursts([(200, 0.0), (600, LOUD)])))
    call.receive_update(HintsUpdate(language_code="fr"))
    call.receive_audio(linear16(bursts([(600, LOUD), (700, 0.0), (600, LOUD), (700, 0.0)])))
    call.receive_end()
    log = run_lockstep(call, [])
    assert [r.hints.language_code for r in log.of(DecodeRequest) if r.is_final] == ["en", "fr"]
