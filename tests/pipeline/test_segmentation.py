import numpy as np
import pytest

from pipeline.config import EndpointingConfig
from pipeline.segmentation import Segmenter
from pipeline.types import FRAME_SAMPLES, EndReason

CONFIG = EndpointingConfig(onset_ms=50, pre_roll_ms=200, max_segment_ms=5_000, cut_search_ms=1_000)


def frame(value):
    return np.full(FRAME_SAMPLES, value, dtype=np.float32)


def feed(segmenter, values, score=0.0):
    for value in values:
        segmenter.append(frame(value), score)


def frame_values(samples):
    return samples[::FRAME_SAMPLES].tolist()


def test_pre_roll_and_post_roll():
    segmenter = Segmenter(1, CONFIG, start_sample=16_000)
    feed(segmenter, range(100))
    segmenter.open(speech_frame=96)
    feed(segmenter, range(100, 200))
    segment = segmenter.close(speech_end_frame=120, reason=EndReason.SILENCE)
    assert frame_values(segment.samples) == list(range(76, 150))
    assert segment.start_sample == 16_000 + 76 * FRAME_SAMPLES
    assert segment.end_sample == 16_000 + 150 * FRAME_SAMPLES
    assert segment.speech_end_sample == 16_000 + 120 * FRAME_SAMPLES
    assert segment.segment_id == "1-1"


@pytest.mark.parametrize(("unsure_frames", "pre_roll_frames"), [(0, 20), (7, 27), (200, 80)])
def test_where_the_line_was_unsure_before_the_onset_more_is_kept(unsure_frames, pre_roll_frames):
    segmenter = Segmenter(1, CONFIG, start_sample=0)
    feed(segmenter, range(300 - unsure_frames))
    feed(segmenter, range(300 - unsure_frames, 300), score=0.3)
    feed(segmenter, range(300, 305), score=0.9)
    needed_sample = segmenter.earliest_needed_sample
    segmenter.open(speech_frame=300)
    assert segmenter.open_segment.start_sample == (300 - pre_roll_frames) * FRAME_SAMPLES
    assert segmenter.open_segment.speech_start_sample == 300 * FRAME_SAMPLES
    assert needed_sample <= segmenter.open_segment.start_sample


def test_the_speech_score_is_that_of_the_voiced_frames():
    segmenter = Segmenter(1, CONFIG, start_sample=0)
    feed(segmenter, range(20), score=0.1)
    feed(segmenter, range(20, 30), score=0.8)
    segmenter.open(speech_frame=20)
    feed(segmenter, range(30, 40), score=0.6)
    feed(segmenter, range(40, 80), score=0.0)
    assert segmenter.open_segment.speech_score == pytest.approx(0.7)
    assert segmenter.closed_at(speech_end_frame=40).speech_score == pytest.approx(0.7)
    assert segmenter.close(speech_end_frame=40, reason=EndReason.SILENCE).speech_score == pytest.approx(0.7)


def test_segments_do_not_overlap_when_speech_resumes_at_once():
    segmenter = Segmenter(2, CONFIG, start_sample=0)
    feed(segmenter, range(10))
    segmenter.open(speech_frame=5)
    feed(segmenter, range(10, 60))
    first = segmenter.close(speech_end_frame=25, reason=EndReason.SILENCE)
    feed(segmenter, range(60, 65))
    segmenter.open(speech_frame=60)
    feed(segmenter, range(65, 70))
    second = segmenter.close(speech_end_frame=70, reason=EndReason.END_OF_STREAM)
    assert first.end_sample == second.start_sample
    assert frame_values(second.samples) == list(range(55, 70))
    assert second.segment_id == "2-2"


def test_a_too_long_segment_is_cut_where_it_is_quietest():
    segmenter = Segmenter(1, CONFIG, start_sample=0)
    feed(segmenter, [1.0] * 5)
    segmenter.open(speech_frame=0)
    values = [1.0] * 440 + [0.1] * 9 + [1.0] * 46
    for value in values:
        assert not segmenter.is_at_limit
        segmenter.append(frame(value), 1.0)
    assert segmenter.is_at_limit
    first = segmenter.split(speech_end_frame=500, reason=EndReason.MAX_LENGTH)
    assert 445 <= len(first.samples) // FRAME_SAMPLES <= 454
    assert first.speech_end_sample == first.end_sample
    rest = segmenter.open_segment
    assert rest.start_sample == first.end_sample
    assert len(first.samples) + len(rest.samples) == 500 * FRAME_SAMPLES


def test_what_may_still_be_cut_off_is_not_offered():
    segmenter = Segmenter(1, CONFIG, start_sample=0)
    feed(segmenter, [1.0] * 5)
    segmenter.open(speech_frame=0)
    offered = []
    for index in range(495):
        segmenter.append(frame(0.01 if 430 < index < 445 else 1.0), 1.0)
        offered.append(len(segmenter.open_segment.samples))
    assert offered == sorted(offered)
    assert offered[-1] <= len(segmenter.split(speech_end_frame=500, reason=EndReason.MAX_LENGTH).samples)


def test_offered_audio_is_read_only_and_grows_without_moving():
    segmenter = Segmenter(1, CONFIG, start_sample=0)
    feed(segmenter, range(5))
    segmenter.open(speech_frame=0)
    early = segmenter.open_segment.samples
    copy = early.copy()
    feed(segmenter, range(5, 50))
    assert np.array_equal(early, copy)
    assert np.shares_memory(early, segmenter.open_segment.samples)
    with pytest.raises(ValueError, match="read-only"):
        early[0] = 1


def test_audio_needed_later_is_known():
    segmenter = Segmenter(1, CONFIG, start_sample=0)
    feed(segmenter, range(100))
    pre_roll_onset_and_doubt = 20 + 5 + 10
    assert segmenter.earliest_needed_sample == (100 - pre_roll_onset_and_doubt) * FRAME_SAMPLES
    segmenter.open(speech_frame=96)
    feed(segmenter, range(100, 300))
    assert segmenter.earliest_needed_sample == 76 * FRAME_SAMPLES


def test_skipped_time_moves_the_clock():
    segmenter = Segmenter(1, CONFIG, start_sample=0)
    feed(segmenter, range(10))
    segmenter.skip(1_000)
    feed(segmenter, range(5))
    segmenter.open(speech_frame=1_010)
    assert segmenter.open_segment.start_sample == 1_010 * FRAME_SAMPLES
