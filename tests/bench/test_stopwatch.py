"""Parts of a model, timed while it works."""

import torch
from torch import nn

from pipeline.benchmarks.engine_profile import weight_bytes
from pipeline.benchmarks.stopwatch import Stopwatch


def model() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))


def test_parts_belong_to_the_pass_they_ran_in():
    whole, stopwatch = model(), Stopwatch()
    with stopwatch.running():
        stopwatch.watch_whole(whole, "forward", lambda x: f"{len(x)} rows")
        for layer in (whole[0], whole[2]):
            stopwatch.watch_part(layer, "forward", "linear")
        whole(torch.zeros(1, 4))
        whole(torch.zeros(3, 4))
    assert [taken.label for taken in stopwatch.passes] == ["1 rows", "3 rows"]
    for taken in stopwatch.passes:
        assert 0 < taken.part_us("linear") <= taken.whole_us
        assert taken.part_us("attention") == 0


def test_nothing_is_watched_behind_the_block():
    whole, stopwatch = model(), Stopwatch()
    with stopwatch.running():
        stopwatch.watch_whole(whole, "forward", lambda x: "any")
    whole(torch.zeros(1, 4))
    assert not stopwatch.passes
    assert "forward" not in vars(whole)


def test_weights_are_counted_in_bytes():
    assert weight_bytes([model()]) == 4 * (4 * 8 + 8 + 8 * 2 + 2)
