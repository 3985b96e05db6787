"""Finals of two channels in the order of the call, without waiting for anybody who still speaks."""

from pipeline.events import RecognitionResult
from pipeline.ordering import CallOrder
from pipeline.types import SAMPLES_PER_MS


class Channel:
    def __init__(self):
        self.earliest_closed_sample = None

    def owes(self, start_ms):
        self.earliest_closed_sample = None if start_ms is None else start_ms * SAMPLES_PER_MS


def result(tag, start_ms, *, is_final=True):
    return RecognitionResult(
        result_id=f"{tag}-{start_ms}",
        channel_tag=tag,
        alternatives=(),
        is_final=is_final,
        stability=1.0,
        stable_length=0,
        result_start_ms=start_ms,
        result_end_ms=start_ms + 500,
        speech_start_ms=start_ms,
        speech_end_ms=start_ms + 400,
    )


def order():
    channels = {1: Channel(), 2: Channel()}
    return channels, CallOrder(channels)


def test_a_final_waits_for_what_began_earlier_and_is_being_decoded():
    channels, call = order()
    channels[1].owes(1_000)
    early, late = result(1, 1_000), result(2, 2_000)
    assert call.put([late]) == []
    assert call.held_starts_ms == [2_000]
    channels[1].owes(None)
    assert call.put([early]) == [early, late]
    assert call.is_idle


def test_a_final_does_not_wait_for_what_began_later_or_still_goes_on():
    channels, call = order()
    final = result(2, 2_000)
    assert call.put([final]) == [final]
    channels[1].owes(3_000)
    again = result(2, 2_500)
    assert call.put([again]) == [again]


def test_later_results_of_a_channel_stay_behind_its_held_final():
    channels, call = order()
    channels[1].owes(1_000)
    held, interim = result(2, 2_000), result(2, 4_000, is_final=False)
    other = result(1, 1_000, is_final=False)
    assert call.put([held, interim]) == []
    assert call.put([other]) == [other]
    channels[1].owes(None)
    assert call.put([]) == [held, interim]
