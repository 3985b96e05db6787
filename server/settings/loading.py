"""Where settings come from: defaults, then a TOML file, then the environment, then the command line.

`TALKPATH_SERVER__LISTEN=...` in the environment is `server.listen`; unknown keys are errors everywhere.
"""

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, TomlConfigSettingsSource

from server.errors import StartupError
from server.settings.sections import (
    ModelSettings,
    RecognitionSettings,
    SchedulingSettings,
    ServerSettings,
    TelemetrySettings,
)

_ENV_PREFIX = "TALKPATH_"
_ENV_DELIMITER = "__"


class Settings(BaseSettings):
    """All settings, by section."""

    model_config = SettingsConfigDict(
        env_prefix=_ENV_PREFIX,
        env_nested_delimiter=_ENV_DELIMITER,
        enable_decoding=False,
        extra="forbid",
        frozen=True,
    )

    server: ServerSettings = ServerSettings()
    models: ModelSettings = ModelSettings()
    recognition: RecognitionSettings = RecognitionSettings()
    scheduling: SchedulingSettings = SchedulingSettings()
    telemetry: TelemetrySettings = TelemetrySettings()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Command line over environment over file."""
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls)


def load_settings(config_file: Path | None = None, overrides: Iterable[str] = ()) -> Settings:
    """Reads all sources.

    Args:
        config_file: TOML.
        overrides: `section.key=value`, as on the command line; a later one wins.

    Raises:
        StartupError: a file, key or value is wrong; the message is one line that names it.
    """
    if config_file is not None and not config_file.is_file():
        raise StartupError(f"{config_file}: no such settings file")
    _check_environment(os.environ)

    class _FromFile(Settings):
        model_config = SettingsConfigDict(toml_file=config_file)

    try:
        loaded = _FromFile(**_nested(overrides))
    except ValidationError as error:
        raise StartupError(_first_complaint(error)) from None
    except ValueError as error:
        raise StartupError(f"{config_file}: {error}") from None
    return Settings.model_construct(**dict(loaded))


def render_toml(settings: Settings) -> str:
    """The settings as TOML that `load_settings` reads back."""
    lines = []
    for section, values in settings.model_dump(mode="json").items():
        lines.append(f"[{section}]")
        lines += [f"{key} = {_toml_value(value)}" for key, value in values.items()]
        lines.append("")
    return "\n".join(lines)


def _toml_value(value: Any) -> str:
    # JSON's strings, numbers, booleans and arrays are TOML's too, but for DEL, which TOML wants escaped.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _nested(overrides: Iterable[str]) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for override in overrides:
        path, equals, value = override.partition("=")
        section, dot, key = path.strip().partition(".")
        if not (equals and dot and section and key):
            raise StartupError(f"--set {override!r} is not section.key=value")
        nested.setdefault(section, {})[key] = value.strip()
    return nested


def _check_environment(environment: Mapping[str, str]) -> None:
    for name in environment:
        section, delimiter, _ = name.upper().removeprefix(_ENV_PREFIX).partition(_ENV_DELIMITER)
        if name.upper().startswith(_ENV_PREFIX) and delimiter and section.lower() not in Settings.model_fields:
            known = ", ".join(Settings.model_fields)
            raise StartupError(f"{name}: there is no section {section.lower()}; use one of {known}")


def _first_complaint(error: ValidationError) -> str:
    complaint = error.errors(include_url=False)[0]
    path = ".".join(str(part) for part in complaint["loc"])
    if complaint["type"] == "extra_forbidden":
        return f"{path}: there is no such setting"
    message = complaint["msg"].removeprefix("Value error, ")
    if complaint["type"] == "value_error":
        return message if message.startswith(path) else f"{path}: {message}"
    return f"{path}: {message} (got {complaint['input']!r})"
