"""What an operator can set."""

from server.settings.loading import Settings, load_settings, render_toml
from server.settings.sections import (
    ModelSettings,
    RecognitionSettings,
    SchedulingSettings,
    ServerSettings,
    TelemetrySettings,
)

__all__ = [
    "ModelSettings",
    "RecognitionSettings",
    "SchedulingSettings",
    "ServerSettings",
    "Settings",
    "TelemetrySettings",
    "load_settings",
    "render_toml",
]
