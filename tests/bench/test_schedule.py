"""Who is decoded when."""

import numpy as np

from pipeline.benchmarks.schedule import Clip, schedule, turns_of

RATE_HZ = 16_000


def clip(duration_s: float, tail_s: float = 0.0) -> Clip:
    samples = np.zeros(round(duration_s * RATE_HZ), dtype=np.float32)
    return Clip(name="clip", samples=samples, text="hello", tail_samples=round(tail_s * RATE_HZ))


def test_interims_every_interval_then_the_final():
    turns = turns_of(3, clip(2.5), RATE_HZ)
    assert [(t.clip, t.revision, t.num_samples / RATE_HZ, t.is_final) for t in turns] == [
        (3, 1, 1.0, False),
        (3, 2, 2.0, False),
        (3, 3, 2.5, True),
    ]


def test_a_clip_that_ends_with_an_interval_has_no_interim_there():
    assert [t.num_samples / RATE_HZ for t in turns_of(0, clip(2.0), RATE_HZ)] == [1.0, 2.0]


def test_no_interim_in_the_hangover():
    assert [t.num_samples / RATE_HZ for t in turns_of(0, clip(2.5, tail_s=0.5), RATE_HZ)] == [1.0, 2.5]


def test_one_lane_takes_one_turn_at_a_time():
    rounds = schedule([clip(1.5), clip(0.5)], interims_per_s=1, lanes=1)
    assert [[(t.clip, t.is_final) for t in turns] for turns in rounds] == [[(0, False)], [(0, True)], [(1, True)]]


def test_lanes_go_on_together_and_are_refilled():
    rounds = schedule([clip(1.5), clip(0.5), clip(1.5)], interims_per_s=1, lanes=2)
    assert [[(t.clip, t.is_final) for t in turns] for turns in rounds] == [
        [(0, False), (1, True)],
        [(0, True), (2, False)],
        [(2, True)],
    ]


def test_lanes_change_the_order_and_not_the_turns():
    clips = [clip(s) for s in (0.3, 4.2, 1.0, 2.7, 3.3)]
    alone, together = schedule(clips, 2, 1), schedule(clips, 2, 3)
    assert {t for turns in alone for t in turns} == {t for turns in together for t in turns}
    assert max(map(len, together)) == 3
