"""Audio for tests: made signals, committed clips, and the recordings beside the project where they are there."""

import io
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
import soundfile
import soxr

from pipeline.types import Samples

ROOT = Path(__file__).parents[2]
SAMPLE_CALLS = ROOT / "tests" / "data"


def data_dir() -> Path | None:
    """The recordings beside the project, or None."""
    folder = Path(os.environ.get("TALKPATH_TEST_DATA", ROOT.parent / "shared" / "data"))
    return folder if (folder / "manifest.jsonl").exists() else None


def require_data() -> Path:
    """The recordings beside the project; skips the test where they are absent."""
    folder = data_dir()
    if folder is None:
        pytest.skip("no recordings: neither ../shared/data nor the folder named by TALKPATH_TEST_DATA is there")
    return folder


def manifest(folder: Path) -> Iterator[dict[str, object]]:
    """Rows of a manifest."""
    with (folder / "manifest.jsonl").open() as lines:
        for line in lines:
            yield json.loads(line)


def load(path: Path, rate_hz: int) -> Samples:
    """Reads a recording as float32, shape `(num_channels, num_samples)`, at this rate."""
    samples, source_hz = soundfile.read(path, dtype="float32", always_2d=True)
    if source_hz != rate_hz:
        samples = soxr.resample(samples, source_hz, rate_hz)
    return np.ascontiguousarray(samples.T, dtype=np.float32)


def linear16(samples: Samples) -> bytes:
    """Bytes of interleaved LINEAR16 of audio of shape `(num_samples,)` or `(num_channels, num_samples)`."""
    interleaved = np.atleast_2d(samples).T
    return np.clip(np.rint(interleaved * 32768), -32768, 32767).astype("<i2").tobytes()


def encode_mulaw(samples: Samples) -> bytes:
    """G.711 mu-law of mono audio of shape `(num_samples,)`."""
    file = io.BytesIO()
    soundfile.write(file, samples, 8_000, format="RAW", subtype="ULAW")
    return file.getvalue()


def bursts(pattern: Sequence[tuple[int, float]], rate_hz: int = 8_000, seed: int = 1) -> Samples:
    """Noise bursts: pairs of duration in ms and amplitude (0: faint noise), shape `(num_samples,)`."""
    generator = np.random.default_rng(seed)
    parts = []
    for duration_ms, amplitude in pattern:
        noise = generator.standard_normal(duration_ms * rate_hz // 1000)
        parts.append(noise * max(amplitude, 1e-4))
    return np.clip(np.concatenate(parts), -0.99, 0.99).astype(np.float32)


def split(data: bytes, sizes: Sequence[int]) -> Iterator[bytes]:
    """Cuts bytes into chunks of these sizes, again and again."""
    position = index = 0
    while position < len(data):
        size = sizes[index % len(sizes)]
        yield data[position : position + size]
        position += size
        index += 1
