"""What each stage of the audio front end costs a call: CPU time of 10 ms of audio, for speech and for a silent line."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass

import numpy as np

from pipeline.audio.codecs import decode
from pipeline.audio.resampling import Resampler
from pipeline.config import SessionConfig
from pipeline.denoising import Denoiser
from pipeline.engines.scripted import ScriptedEngine
from pipeline.frontend import ChannelFrontEnd
from pipeline.session import NEED_AUDIO, RecognitionSession
from pipeline.types import (
    CORE_SAMPLE_RATE_HZ,
    FRAME_MS,
    AudioEncoding,
    AudioFormat,
    Batch,
    DecodeRequest,
    Samples,
)
from pipeline.vad import SileroVad, WebRtcVad

LINE_RATE_HZ = 8_000
_FRAME_BYTES = LINE_RATE_HZ * FRAME_MS // 1000
_CHUNK_FRAMES = 10
_FORMAT = AudioFormat(encoding=AudioEncoding.MULAW, sample_rate_hz=LINE_RATE_HZ)
_US_PER_S = 1e6
_US_PER_FRAME = FRAME_MS * 1000
_REPEATS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class StageFigures:
    """One stage on one kind of audio."""

    stage: str
    us_per_frame: float

    @property
    def core_share(self) -> float:
        """Of one core, while the call lasts."""
        return self.us_per_frame / _US_PER_FRAME


Stage = Callable[[ExitStack], Callable[[int], object]]
"""Makes a fresh stage; what it gives takes the number of the next frame."""


def profile_front_end(mulaw: bytes) -> list[StageFigures]:
    """Takes each stage through the audio (8 kHz mu-law, a whole number of chunks of 100 ms)."""
    num_frames = len(mulaw) // _FRAME_BYTES
    return [
        StageFigures(stage=name, us_per_frame=min(_us_per_frame(stage, num_frames) for _ in range(_REPEATS)))
        for name, stage in _stages(mulaw, num_frames).items()
    ]


def _us_per_frame(stage: Stage, num_frames: int) -> float:
    with ExitStack() as stack:
        take = stage(stack)
        began_s = time.process_time()
        for number in range(num_frames):
            take(number)
        return (time.process_time() - began_s) / num_frames * _US_PER_S


def _stages(mulaw: bytes, num_frames: int) -> dict[str, Stage]:
    coded = [mulaw[start : start + _FRAME_BYTES] for start in range(0, num_frames * _FRAME_BYTES, _FRAME_BYTES)]
    narrow = [decode(frame, AudioEncoding.MULAW, 1)[0] for frame in coded]
    resampler = Resampler(LINE_RATE_HZ, CORE_SAMPLE_RATE_HZ)
    wide = [resampler.process(frame).copy() for frame in narrow]
    config = SessionConfig(audio_format=_FORMAT)
    return {
        "codec": lambda _: lambda n: decode(coded[n], AudioEncoding.MULAW, 1),
        "resampling": lambda _: _over(Resampler(LINE_RATE_HZ, CORE_SAMPLE_RATE_HZ).process, narrow),
        "RNNoise": lambda stack: _over(stack.enter_context(closing(Denoiser())).process, wide),
        "WebRTC VAD": lambda _: _over(WebRtcVad().process, wide),
        "Silero": lambda _: _over(SileroVad().process, wide),
        "whole front end of a channel": lambda stack: _over(
            stack.enter_context(closing(ChannelFrontEnd(1, config))).advance, narrow
        ),
        "whole session, scripted answers": lambda stack: _session(stack, config, coded),
    }


def _over(process: Callable[[Samples], object], frames: list[Samples]) -> Callable[[int], object]:
    return lambda number: process(frames[number])


def _session(stack: ExitStack, config: SessionConfig, coded: list[bytes]) -> Callable[[int], object]:
    """A session that is given 100 ms at a time, as most callers send it."""
    session = stack.enter_context(closing(RecognitionSession("profile", config)))
    engine = ScriptedEngine()

    def take(number: int) -> None:
        if number % _CHUNK_FRAMES == 0:
            session.receive_audio(b"".join(coded[number : number + _CHUNK_FRAMES]))
            for request in _requests(session):
                batch = Batch(requests=(request,), padded_audio_s=len(request.audio) / CORE_SAMPLE_RATE_HZ)
                session.receive_decode(engine.transcribe(batch)[0])

    return take


def _requests(session: RecognitionSession) -> Iterator[DecodeRequest]:
    while (effect := session.next_effect()) is not NEED_AUDIO:
        if isinstance(effect, DecodeRequest):
            yield effect


def line_noise(num_samples: int, level_dbfs: float, seed: int = 1) -> Samples:
    """What a silent line carries."""
    noise = np.random.default_rng(seed).standard_normal(num_samples) * 10 ** (level_dbfs / 20)
    return np.asarray(np.clip(noise, -1, 1), dtype=np.float32)
