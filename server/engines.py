"""Which engine a model's name means, and where it runs."""

from collections.abc import Sequence
from functools import partial
from urllib.parse import parse_qsl

from pipeline.engines.base import Engine
from pipeline.engines.hosting.hosted import EngineHost
from server.errors import StartupError
from server.settings import ModelSettings

_SCRIPTED_PREFIX = "scripted:"


def load_lanes(name: str, settings: ModelSettings) -> Sequence[Engine]:
    """Loads a model: one engine for each batch that it is worth to run at the same time.

    Raises:
        StartupError: a setting does not fit.
        TalkpathError: the model cannot be loaded.
    """
    if settings.in_process or name.startswith(_SCRIPTED_PREFIX):
        engine = create_engine(name, settings)
        return [engine] * engine.info.num_lanes
    return EngineHost(partial(create_engine, name, settings)).lanes()


def create_engine(name: str, settings: ModelSettings) -> Engine:
    """Loads a model here. "scripted:NAME" and "scripted:NAME?delay_ms=50" need none."""
    if name.startswith(_SCRIPTED_PREFIX):
        return _create_scripted(name)
    # Imported when a model is asked for: it brings torch.
    from pipeline.engines.whisper.engine import WhisperEngine
    from pipeline.engines.whisper.settings import WhisperSettings

    return WhisperEngine(
        WhisperSettings(
            model=name,
            device=settings.device,
            precision=settings.precision,
            beam_size=settings.beam_size,
            final_padding_ms=settings.final_padding_ms,
            look_ahead_ms=settings.look_ahead_ms,
            num_lanes=settings.num_lanes or None,
            num_threads=settings.num_threads or None,
        )
    )


def _create_scripted(name: str) -> Engine:
    from pipeline.engines.scripted import ScriptedEngine

    model, _, query = name.partition("?")
    options = dict(parse_qsl(query))
    delay_ms = options.pop("delay_ms", "0")
    if options or not delay_ms.isdecimal():
        raise StartupError(f"model {name!r}: the only option is delay_ms, whole milliseconds")
    return ScriptedEngine(model, delay_s=int(delay_ms) / 1000)
