"""The pacer: what interims cost decides how often a channel gets one."""

import pytest

from pipeline.scheduling.pacing import InterimPacer


def _pacer(num_channels, cost_s, now_s=100.0):
    pacer = InterimPacer()
    for n in range(num_channels):
        pacer.served((f"call {n}", 1), now_s)
    pacer.measured(2, 2 * cost_s)
    return pacer


def test_a_new_channel_need_not_wait():
    assert _pacer(20, 0.1).ready_s(("new", 1), 1) == float("-inf")


def test_an_idle_engine_holds_nobody_back():
    assert _pacer(1, 0.05).interval_s(1) < 0.1


def test_more_channels_and_dearer_interims_come_less_often():
    assert _pacer(10, 0.1).interval_s(1) == pytest.approx(2 * _pacer(10, 0.1).interval_s(2))
    assert _pacer(10, 0.1).interval_s(1) == pytest.approx(2 * _pacer(5, 0.1).interval_s(1))
    assert 1.0 < _pacer(10, 0.1).interval_s(1) < 1.5
    assert _pacer(1_000, 1.0).interval_s(1) <= 3.0


def test_channels_that_fell_silent_do_not_count():
    pacer = _pacer(10, 0.1, now_s=0.0)
    pacer.served(("speaks", 1), 10.0)
    assert pacer.interval_s(1) < 0.2


def test_a_call_that_left_does_not_count():
    pacer = _pacer(2, 0.1)
    before_s = pacer.interval_s(1)
    pacer.forget("call 0")
    assert pacer.interval_s(1) == pytest.approx(before_s / 2)
