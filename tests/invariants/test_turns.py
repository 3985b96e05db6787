"""Turn events keep their order, on one channel and on two, whatever the chunking and the engine's delay."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.events import RecognitionResult, TurnEvent, TurnKind
from pipeline.session import RecognitionSession
from pipeline.types import DecodeRequest, DecodeResult
from tests.support.audio import bursts, linear16, split
from tests.support.drivers import plain_session, run_delayed, run_lockstep, words_by_length

# Bursts with pauses around post-roll (300 ms) and hangover (500 ms), so that all kinds of turns come up.
PATTERNS = st.lists(
    st.tuples(st.integers(10, 110).map(lambda n: 10 * n), st.integers(10, 80).map(lambda n: 10 * n)),
    min_size=1,
    max_size=7,
).map(lambda pairs: [part for speech, pause in pairs for part in ((speech, 0.2), (pause, 0.0))])
CHUNKINGS = st.lists(st.integers(400, 9_000), min_size=1, max_size=5)
DELAYS = st.lists(st.integers(0, 60), min_size=1, max_size=7)
EXAMPLES = settings(max_examples=25, deadline=None)
FOLLOWERS = {
    None: {TurnKind.STARTED},
    TurnKind.STARTED: {TurnKind.ENDS_PROBABLY, TurnKind.ENDED},
    TurnKind.ENDS_PROBABLY: {TurnKind.GOES_ON, TurnKind.ENDED},
    TurnKind.GOES_ON: {TurnKind.ENDS_PROBABLY, TurnKind.ENDED},
    TurnKind.ENDED: {TurnKind.STARTED},
}


def session(num_channels: int = 1, **fields: object) -> RecognitionSession:
    return plain_session(num_channels, **{"turn_events": True} | fields)


def sometimes_nothing(request: DecodeRequest) -> DecodeResult:
    nothing = DecodeResult(request_id=request.request_id)
    return words_by_length(request) if len(request.audio) // 160 % 5 else nothing


def assert_turns(effects: list, channel_tag: int) -> None:
    last: TurnEvent | None = None
    final: RecognitionResult | None = None
    for event in effects:
        if not isinstance(event, TurnEvent | RecognitionResult) or event.channel_tag != channel_tag:
            continue
        if isinstance(event, RecognitionResult):
            final = event if event.is_final else final
            continue
        assert event.kind in FOLLOWERS[last.kind if last else None]
        if event.kind is TurnKind.ENDED:
            assert final is not None
            words = final.alternatives[0].transcript if final.alternatives else ""
            assert (event.result_id, event.transcript) == (final.result_id, words)
            if last is not None and last.kind is TurnKind.ENDS_PROBABLY:
                assert (last.result_id, last.transcript) == (event.result_id, event.transcript)
        last = event
    assert last is None or last.kind is TurnKind.ENDED


@given(pattern=PATTERNS, sizes=CHUNKINGS, delays=DELAYS)
@EXAMPLES
def test_turns_are_in_order(pattern, sizes, delays):
    audio = linear16(bursts(pattern))
    for log in (
        run_lockstep(session(), [audio], sometimes_nothing),
        run_delayed(session(), split(audio, sizes), delays),
    ):
        assert_turns(log.effects, channel_tag=1)


@given(first=PATTERNS, second=PATTERNS, sizes=CHUNKINGS, delays=DELAYS)
@EXAMPLES
def test_so_are_those_of_two_channels(first, second, sizes, delays):
    parties = [bursts(first), bursts(second, seed=2)]
    longest = max(map(len, parties))
    audio = linear16(np.stack([np.pad(party, (0, longest - len(party))) for party in parties]))
    log = run_delayed(session(num_channels=2), split(audio, sizes), delays)
    for channel_tag in (1, 2):
        assert_turns(log.effects, channel_tag)


@given(pattern=PATTERNS, sizes=CHUNKINGS)
@EXAMPLES
def test_in_lockstep_they_do_not_depend_on_chunking(pattern, sizes):
    audio = linear16(bursts(pattern))
    whole = run_lockstep(session(), [audio], sometimes_nothing).of(TurnEvent)
    assert run_lockstep(session(), split(audio, sizes), sometimes_nothing).of(TurnEvent) == whole


@pytest.mark.parametrize(
    ("pause_ms", "kinds"),
    [
        (800, ["STARTED", "ENDS_PROBABLY", "ENDED"] * 2),
        (400, ["STARTED", "ENDS_PROBABLY", "GOES_ON", "ENDS_PROBABLY", "ENDED"]),
        (200, ["STARTED", "ENDS_PROBABLY", "ENDED"]),
    ],
)
def test_a_pause_may_be_the_end(pause_ms, kinds):
    audio = linear16(bursts([(300, 0.0), (600, 0.2), (pause_ms, 0.0), (600, 0.2), (900, 0.0)]))
    assert [turn.kind.name for turn in run_lockstep(session(), [audio]).of(TurnEvent)] == kinds


def test_nobody_is_told_who_did_not_ask():
    audio = linear16(bursts([(300, 0.0), (600, 0.2), (900, 0.0)]))
    assert run_lockstep(session(turn_events=False), [audio]).of(TurnEvent) == []
