"""The six rules of pipeline/session.py, over generated calls, chunkings and engine delays."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.config import EndpointingConfig
from pipeline.events import ActivityKind, AudioAcknowledged, RecognitionResult, SpeechActivity
from pipeline.session import RecognitionSession
from pipeline.types import DecodeRequest
from tests.support.audio import bursts, linear16, split
from tests.support.drivers import Log, plain_session, run_delayed, run_lockstep

PATTERNS = st.lists(
    st.tuples(st.integers(1, 90).map(lambda n: 10 * n), st.sampled_from([0.0, 0.0, 0.05, 0.2])),
    min_size=1,
    max_size=9,
)
CHUNKINGS = st.lists(st.integers(1, 4_000), min_size=1, max_size=5)
DELAYS = st.lists(st.integers(0, 40), min_size=1, max_size=7)
EXAMPLES = settings(max_examples=25, deadline=None)


def session(num_channels: int = 1) -> RecognitionSession:
    return plain_session(
        num_channels,
        speech_activity_events=True,
        endpointing=EndpointingConfig(max_segment_ms=5_000, cut_search_ms=1_000),
    )


def stereo(left: list[tuple[int, float]], right: list[tuple[int, float]]) -> bytes:
    one, two = bursts(left, seed=1), bursts(right, seed=2)
    length = min(len(one), len(two))
    return linear16(np.stack([one[:length], two[:length]]))


def contents(results: list[RecognitionResult]) -> list[tuple]:
    return [
        (
            r.result_id,
            tuple(a.transcript for a in r.alternatives),
            r.is_final,
            r.stable_length,
            r.result_start_ms,
            r.result_end_ms,
            r.end_reason,
        )
        for r in results
    ]


def log_lines(log: Log) -> list[object]:
    """Everything that a log says, transcripts included."""
    return [contents([e])[0] if isinstance(e, RecognitionResult) else e for e in log.effects]


@given(pattern=PATTERNS, sizes=CHUNKINGS)
@EXAMPLES
def test_lockstep_log_is_independent_of_chunking(pattern, sizes):
    audio = linear16(bursts(pattern))
    whole = run_lockstep(session(), [audio])
    assert log_lines(run_lockstep(session(), split(audio, sizes))) == log_lines(whole)


def test_lockstep_log_is_the_same_from_single_bytes():
    audio = linear16(bursts([(300, 0), (900, 0.2), (700, 0), (6_500, 0.1), (90, 0.2)]))
    whole = run_lockstep(session(), [audio])
    assert len(whole.finals) >= 3
    assert log_lines(run_lockstep(session(), split(audio, [1]))) == log_lines(whole)


@given(left=PATTERNS, right=PATTERNS, sizes=CHUNKINGS, delays=DELAYS, honour_cancel=st.booleans())
@EXAMPLES
def test_finals_are_independent_of_chunking_and_delay(left, right, sizes, delays, honour_cancel):
    audio = stereo(left, right)
    reference = run_lockstep(session(2), [audio])
    delayed = run_delayed(session(2), split(audio, sizes), delays, honour_cancel=honour_cancel)
    for tag in (1, 2):
        expected = [r for r in reference.finals if r.channel_tag == tag]
        assert contents([r for r in delayed.finals if r.channel_tag == tag]) == contents(expected)


@given(left=PATTERNS, right=PATTERNS, sizes=CHUNKINGS, delays=DELAYS, honour_cancel=st.booleans())
@EXAMPLES
def test_order_and_number_of_results(left, right, sizes, delays, honour_cancel):
    call = session(2)
    log = run_delayed(call, split(stereo(left, right), sizes), delays, honour_cancel=honour_cancel)
    assert call.is_done
    requested = {(r.channel_tag, r.segment_id) for r in log.of(DecodeRequest) if r.is_final}
    counted = Counter((r.channel_tag, r.result_id) for r in log.finals)
    assert counted == Counter(requested)
    for tag in (1, 2):
        assert_channel_in_order([r for r in log.of(RecognitionResult) if r.channel_tag == tag])


def assert_channel_in_order(results: list[RecognitionResult]) -> None:
    ends = [r.result_end_ms for r in results]
    assert ends == sorted(ends)
    order = list(dict.fromkeys(r.result_id for r in results))
    assert order == sorted(order, key=lambda name: int(name.split("-")[1]))
    open_id = None
    closed: set[str] = set()
    for result in results:
        assert result.result_id not in closed, "a result after its final"
        assert open_id in (None, result.result_id), "a result before the final of the segment before"
        open_id = None if result.is_final else result.result_id
        if result.is_final:
            closed.add(result.result_id)
    assert open_id is None, "an interim without a final"


@given(left=PATTERNS, right=PATTERNS, delays=DELAYS)
@EXAMPLES
def test_at_most_one_interim_in_flight(left, right, delays):
    log = run_delayed(session(2), split(stereo(left, right), [160]), delays)
    assert log.most_interims_in_flight <= 1


@given(pattern=PATTERNS, sizes=CHUNKINGS, delays=DELAYS)
@EXAMPLES
def test_acknowledged_audio_only_grows_and_ends_with_all_of_it(pattern, sizes, delays):
    audio = bursts(pattern)
    log = run_delayed(session(), split(linear16(audio), sizes), delays)
    offsets = [a.offset_ms for a in log.of(AudioAcknowledged)]
    assert offsets == sorted(set(offsets))
    assert offsets[-1] == pytest.approx(len(audio) / 8, abs=10)


@given(pattern=PATTERNS)
@EXAMPLES
def test_stable_text_of_interims_only_grows(pattern):
    log = run_lockstep(session(), [linear16(bursts(pattern))])
    stable: dict[str, str] = {}
    for result in log.of(RecognitionResult):
        if not result.is_final:
            text = result.alternatives[0].transcript[: result.stable_length]
            assert result.alternatives[0].transcript.startswith(stable.get(result.result_id, ""))
            stable[result.result_id] = text


@given(left=PATTERNS, right=PATTERNS, sizes=CHUNKINGS, delays=DELAYS)
@EXAMPLES
def test_no_final_passes_one_that_began_earlier_and_was_closed(left, right, sizes, delays):
    log = run_delayed(session(2), split(stereo(left, right), sizes), delays)
    starts = {r.result_id: r.result_start_ms for r in log.finals}
    closed: set[str] = set()
    for effect in log.effects:
        if isinstance(effect, SpeechActivity) and effect.kind is ActivityKind.END:
            # The segment it ends is the newest of its channel that began before.
            begun = [
                r for r in log.finals if r.channel_tag == effect.channel_tag and r.speech_end_ms == effect.offset_ms
            ]
            closed.update(r.result_id for r in begun)
        elif isinstance(effect, RecognitionResult) and effect.is_final:
            closed.discard(effect.result_id)
            owed = [name for name in closed if name[0] != effect.result_id[0]]
            assert all(starts[name] >= effect.result_start_ms for name in owed)
