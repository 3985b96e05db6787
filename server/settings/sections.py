"""The sections: what can be set, its defaults and its limits."""

import json
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from pipeline.config import DenoisingMode, EndpointingConfig, EndpointingProfile, InterimConfig, VadMode
from pipeline.errors import InvalidConfigError
from pipeline.profiles import with_profile
from pipeline.scheduling.scheduler import SchedulingPolicy
from pipeline.types import DEFAULT_BOOST, MAX_BOOST
from server.addresses import is_loopback, split_address
from server.messages import CallDefaults, Limits

_MIB = 1024 * 1024


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class ServerSettings(_Section):
    """The process and its port."""

    listen: str = "127.0.0.1:50051"
    """HOST:PORT; port 0 picks a free one."""
    insecure: bool = False
    """Allows to listen beyond this machine without TLS."""
    max_concurrent_calls: int = Field(default=100, ge=1)
    max_message_bytes: int = Field(default=4 * _MIB, ge=1024, le=64 * _MIB)
    """Largest request message."""
    max_recognize_s: float = Field(default=300.0, gt=0)
    """Longest recording for Recognize."""
    inbox_bytes: int = Field(default=256 * 1024, ge=4096)
    """Audio of one call that may wait; more stops reading from the caller."""
    max_pending_finals: int = Field(default=8, ge=1)
    """Finals of one call that may be with the engine; more lets its audio wait, so that nobody fills the queue."""
    config_timeout_s: float = Field(default=30.0, gt=0)
    """How long a new stream may take to send its settings."""
    decode_timeout_s: float = Field(default=120.0, gt=0)
    """How long a call waits for an answer of the engine before it fails."""
    idle_gap_ms: int = Field(default=0, ge=0)
    """A live caller that sends no audio for this long is taken to have none: the call clock moves on. 0: off."""
    behind_notice_s: float = Field(default=3.0, ge=0)
    """A live caller is told when its results are further behind its audio than this. 0: never."""
    drain_grace_s: float = Field(default=30.0, ge=0)
    """After the first signal, live calls may go on for this long."""
    drain_flush_s: float = Field(default=10.0, gt=0)
    """Then they get their finals within this long."""
    retry_after_s: float = Field(default=2.0, ge=0)
    """What refused callers are told to wait."""
    keepalive_interval_s: float = Field(default=20.0, gt=0)
    """How often a silent connection is asked whether it still lives."""
    keepalive_timeout_s: float = Field(default=10.0, gt=0)
    min_client_ping_interval_s: float = Field(default=1.0, ge=0)
    """Clients that ping more often than this are sent away."""

    @model_validator(mode="after")
    def _listen_is_safe(self) -> "ServerSettings":
        host, _ = split_address("server.listen", self.listen)
        if not self.insecure and not is_loopback(host):
            raise ValueError(
                f"server.listen {self.listen} is reachable from other machines without encryption; "
                "listen on 127.0.0.1 or set server.insecure=true"
            )
        return self

    def limits(self) -> Limits:
        """What a call may not exceed."""
        return Limits(
            max_message_bytes=self.max_message_bytes,
            max_recognize_s=self.max_recognize_s,
            max_concurrent_calls=self.max_concurrent_calls,
        )


class ModelSettings(_Section):
    """Which models are loaded and how they run."""

    names: tuple[str, ...] = ("tiny.en",)
    """The first is the default. Embedded names, hub ids or folders; "scripted:NAME" answers from a script."""
    device: str = "auto"
    precision: str = "auto"
    beam_size: int = Field(default=1, ge=1, le=10)
    final_padding_ms: int = Field(default=2_000, ge=0, le=30_000)
    """Silence encoded behind a final; 30000 is the stock window, at several times the cost."""
    look_ahead_ms: int = Field(default=1_000, ge=500, le=30_000)
    """Interims do not encode audio again that lies this far back; 30000 encodes everything each time."""
    num_lanes: int = Field(default=0, ge=0, le=64)
    """Batches that go through a model at the same time; 0: on a CPU one a core, at most eight, on CUDA one."""
    num_threads: int = Field(default=0, ge=0)
    """CPU threads of each lane; 0: the cores divided by the lanes."""
    in_process: bool = False
    """Runs models in the server's own process, their lanes as threads, instead of a process for each lane. Slower with
    more than a few calls; for systems that cannot fork."""

    @field_validator("names", mode="before")
    @classmethod
    def _split(cls, value: Any) -> Any:
        """Environment and command line: `a,b`, or a JSON array."""
        if isinstance(value, str) and value.lstrip().startswith("["):
            return json.loads(value)
        return [name.strip() for name in value.split(",")] if isinstance(value, str) else value

    @field_validator("names")
    @classmethod
    def _named_once(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        if not names or not all(names) or len(set(names)) < len(names):
            raise ValueError("name at least one model, each once")
        return names


class RecognitionSettings(_Section):
    """What holds for a call that does not say otherwise. Durations are milliseconds of audio."""

    language_code: str = ""
    """Empty: the default of the call's model."""
    denoising: DenoisingMode = DenoisingMode.VAD_ONLY
    vad: VadMode = VadMode.COMBINED
    onset_ms: int = 60
    profile: EndpointingProfile = EndpointingProfile.CONVERSATION
    """Sets the durations below that are 0."""
    hangover_ms: int = 0
    """0: the profile's, as for `number_hangover_ms` and `max_segment_ms`."""
    number_hangover_ms: int = 0
    """Pause within a number that does not end it."""
    pre_roll_ms: int = 300
    max_segment_ms: int = 0
    cut_search_ms: int = 2_000
    sensitivity: float = 0.5
    first_interim_after_ms: int = 300
    interim_interval_ms: int = 500
    stable_after_ms: int = 3_000
    silence_after_ms: int = Field(default=10_000, ge=1_000, le=3_600_000)
    """Nobody has spoken on a channel for this long: told as a scene event."""
    default_boost: float = Field(default=DEFAULT_BOOST, gt=0, le=MAX_BOOST)
    """Of a call's speech contexts that have none of their own: how much less likely than what was found, as a natural
    logarithm, a phrase may be and still be written."""

    @model_validator(mode="after")
    def _within_limits(self) -> "RecognitionSettings":
        try:
            self.call_defaults()
        except InvalidConfigError as error:
            raise ValueError(str(error)) from None
        return self

    def call_defaults(self) -> CallDefaults:
        """The same in the pipeline's terms."""
        return CallDefaults(
            language_code=self.language_code,
            denoising=self.denoising,
            vad=self.vad,
            endpointing=self._endpointing(),
            interim=InterimConfig(
                first_after_ms=self.first_interim_after_ms,
                interval_ms=self.interim_interval_ms,
                stable_after_ms=self.stable_after_ms,
            ),
            silence_after_ms=self.silence_after_ms,
            boost=self.default_boost,
        )

    def _endpointing(self) -> EndpointingConfig:
        base = EndpointingConfig(
            onset_ms=self.onset_ms,
            pre_roll_ms=self.pre_roll_ms,
            cut_search_ms=self.cut_search_ms,
            sensitivity=self.sensitivity,
        )
        durations = {
            "hangover_ms": self.hangover_ms,
            "number_hangover_ms": self.number_hangover_ms,
            "max_segment_ms": self.max_segment_ms,
        }
        return with_profile(base, self.profile, {name: ms for name, ms in durations.items() if ms})


class SchedulingSettings(_Section):
    """Limits of a batch and how urgent its kinds are."""

    max_batch_size: int = Field(default=0, ge=0)
    """Interims of one batch. More cost less each and hold finals up longer. 0: two on a CPU, 16 on CUDA."""
    max_final_batch_size: int = Field(default=0, ge=0)
    """A batch of finals is as late as its last one. 0: one on a CPU, eight on CUDA."""
    max_batch_audio_s: float = Field(default=240.0, gt=0)
    max_wait_ms: int = Field(default=0, ge=0)
    """How long a batch that is not full waits for company."""
    final_deadline_ms: int = Field(default=300, ge=0)
    interim_deadline_ms: int = Field(default=500, ge=0)

    def policy(self, device: str) -> SchedulingPolicy:
        """The same in the scheduler's terms, for an engine on this device."""
        # A CPU gains little from rows decoded together; a GPU has nothing to lose.
        interims, finals = (2, 1) if device == "cpu" else (16, 8)
        chosen = {
            "max_batch_size": self.max_batch_size or interims,
            "max_final_batch_size": self.max_final_batch_size or finals,
        }
        return SchedulingPolicy(**self.model_dump() | chosen)


class TelemetrySettings(_Section):
    """What the server tells about itself; never what is said in calls."""

    prometheus_listen: str = ""
    """HOST:PORT of the metrics endpoint; empty: off."""
    otlp_endpoint: str = ""
    """Collector for traces and metrics ("http://localhost:4317"); empty: off."""
    log_format: Literal["json", "text"] = "json"
    log_level: Literal["debug", "info", "warning", "error"] = "info"

    @field_validator("prometheus_listen")
    @classmethod
    def _is_address(cls, value: str) -> str:
        if value:
            split_address("telemetry.prometheus_listen", value)
        return value
