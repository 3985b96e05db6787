import pytest
from hypothesis import given
from hypothesis import strategies as st

from clients.replay.pacing import Pacer, chunk_bounds


class FakeTime:
    """A clock that moves only when someone sleeps or works."""

    def __init__(self, oversleep_s: float = 0.0) -> None:
        self.now_s = 1_000.0
        self.slept_s: list[float] = []
        self._oversleep_s = oversleep_s

    def clock(self) -> float:
        return self.now_s

    async def sleep(self, duration_s: float) -> None:
        self.slept_s.append(duration_s)
        self.now_s += duration_s + self._oversleep_s


def pacer_with(time: FakeTime, speed: float) -> Pacer:
    pacer = Pacer(speed, clock=time.clock, sleep=time.sleep)
    pacer.start()
    return pacer


async def test_a_chunk_is_due_when_its_last_sample_was_spoken():
    time = FakeTime()
    pacer = pacer_with(time, 1.0)
    due_s = []
    for chunk in (1, 2, 3):
        await pacer.wait_for(100 * chunk)
        due_s.append(pacer.elapsed_s())
    assert due_s == pytest.approx([0.1, 0.2, 0.3])


async def test_oversleeping_and_slow_sending_do_not_add_up():
    time = FakeTime(oversleep_s=0.004)
    pacer = pacer_with(time, 1.0)
    for chunk in range(1, 1_001):
        await pacer.wait_for(100 * chunk)
        time.now_s += 0.03  # the work of sending
    assert pacer.elapsed_s() == pytest.approx(100.0 + 0.004 + 0.03)


async def test_after_a_stall_late_audio_follows_at_once_and_the_schedule_holds():
    time = FakeTime()
    pacer = pacer_with(time, 1.0)
    await pacer.wait_for(100)
    time.now_s += 0.35
    await pacer.wait_for(200)
    await pacer.wait_for(400)
    assert time.slept_s == pytest.approx([0.1])
    await pacer.wait_for(500)
    assert pacer.elapsed_s() == pytest.approx(0.5)


@pytest.mark.parametrize(("speed", "expected_s"), [(2.0, 5.0), (0.5, 20.0)])
async def test_speed_scales_the_schedule(speed, expected_s):
    time = FakeTime()
    await pacer_with(time, speed).wait_for(10_000)
    assert time.slept_s == pytest.approx([expected_s])


async def test_speed_zero_never_waits():
    time = FakeTime()
    await pacer_with(time, 0.0).wait_for(10_000)
    assert time.slept_s == []


@given(
    num_samples=st.integers(0, 20_000),
    rate_hz=st.sampled_from([8_000, 11_025, 16_000, 44_100]),
    chunk_ms=st.integers(1, 2_000),
)
def test_chunks_cover_everything_once_and_do_not_drift(num_samples, rate_hz, chunk_ms):
    bounds = list(chunk_bounds(num_samples, rate_hz, chunk_ms))
    ends = [end for _, end in bounds]
    assert [start for start, _ in bounds] == [0, *ends[:-1]][: len(bounds)]
    assert ends[-1:] == ([num_samples] if num_samples else [])
    assert all(end > start for start, end in bounds)
    assert all(abs(end * 1_000 / rate_hz - count * chunk_ms) < 1 for count, end in enumerate(ends[:-1], start=1))
