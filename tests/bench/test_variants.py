"""Ideas switched on one after the other."""

from pipeline.benchmarks.variants import IDEAS, Setup, variants
from pipeline.engines.whisper.settings import WHOLE_WINDOW_MS


def test_first_variant_is_stock_like():
    first = variants(Setup(model="tiny.en"), 8)[0]
    assert first.settings.interim_padding_ms == first.settings.final_padding_ms == WHOLE_WINDOW_MS
    assert first.settings.precision == "float32"
    assert not first.with_drafts
    assert not first.with_batches


def test_each_variant_keeps_the_ideas_before():
    found = variants(Setup(model="tiny.en", num_threads=2), 8)
    assert len(found) == 1 + sum("cpu" in idea.devices for idea in IDEAS)
    for before, after in zip(found, found[1:], strict=False):
        assert after.with_drafts >= before.with_drafts
        assert after.with_batches >= before.with_batches
        assert after.settings.interim_padding_ms <= before.settings.interim_padding_ms
        assert after.settings.num_threads == 2
    assert found[-1].with_drafts
    assert found[-1].with_batches


def test_one_at_a_time_has_no_batches():
    assert not any(variant.with_batches for variant in variants(Setup(model="tiny.en"), 1))


def test_a_gpu_has_a_precision_of_its_own():
    found = variants(Setup(model="tiny.en", device="cuda"), 8)
    assert {v.settings.precision for v in found} == {"float32", "float16"}
    assert {v.settings.device for v in found} == {"cuda"}
