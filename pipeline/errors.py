"""Errors of the pipeline. Messages name the value, the limit and the remedy, and never hold words of a call."""

from typing import Any


class TalkpathError(Exception):
    """Base of all errors raised here."""


class InvalidConfigError(TalkpathError):
    """A setting of a call is out of its limits."""

    def __init__(self, field: str, message: str) -> None:
        """`field` is the public name of the setting ("sample_rate_hertz"); `message` says value, limit, remedy."""
        super().__init__(f"{field}: {message}")
        self.field = field
        self.message = message

    def __reduce__(self) -> tuple[type["InvalidConfigError"], tuple[str, str], dict[str, Any]]:
        """For pickle, which would pass the text alone."""
        return type(self), (self.field, self.message), self.__dict__


class InvalidAudioError(TalkpathError):
    """The audio contradicts what was declared."""


class EngineError(TalkpathError):
    """An engine cannot do what was asked."""


class ModelNotFoundError(EngineError):
    """A model name, folder or package cannot be resolved."""


class ModelIntegrityError(EngineError):
    """A model file is not what its name promises."""


class ComponentMissingError(TalkpathError):
    """A denoiser, VAD or model that the settings ask for is not there."""
