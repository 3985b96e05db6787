"""From what the command line names to the calls that are played."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from clients.audio_files import (
    AudioFileError,
    Recording,
    RecordingInfo,
    encode,
    mix_channels,
    read_recording,
    recording_info,
    resample,
)
from clients.replay.manifest import ManifestEntry
from clients.types import CallSettings, ChannelRole, Denoise, Encoding, Endpointing, Limits, Profile, SpeechContext

AUDIO_SUFFIXES = (".wav", ".flac", ".ogg", ".mp3", ".au", ".aiff")
NO_LANGUAGE = "zxx"
"""ISO 639 for recordings without words."""


class PlanError(Exception):
    """A call that cannot be played as asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOptions:
    """What the command line wants of every call; None or empty leaves it to the recording or the server."""

    encoding: Encoding | None = None
    sample_rate_hz: int | None = None
    language_code: str = ""
    model: str = ""
    roles: tuple[ChannelRole, ...] = ()
    denoise: Denoise = Denoise.DEFAULT
    profile: Profile = Profile.DEFAULT
    turn_events: bool = False
    hangover_ms: int | None = None
    scene_events: bool = False
    hints: tuple[str, ...] = ()
    """Phrases that are likely in the calls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCall:
    """One recording to be played as one call."""

    index: int
    """Counts the calls from 0."""
    name: str
    path: Path
    duration_s: float
    settings: CallSettings
    is_mixed: bool
    """All channels of the file become one."""
    reference: ManifestEntry | None = None

    def role_name(self, channel_tag: int) -> str:
        """How people call who speaks on a channel."""
        role = self.settings.channel_roles.get(channel_tag, ChannelRole.UNKNOWN)
        if role is not ChannelRole.UNKNOWN:
            return str(role.value).lower()
        return "caller" if self.settings.num_channels == 1 else f"channel {channel_tag}"


def read_hints(path: Path) -> tuple[str, ...]:
    """The phrases of a text file, one a line; empty lines and those that begin with # are left out.

    Raises:
        PlanError: The file cannot be read.
    """
    try:
        lines = [line.strip() for line in path.read_text("utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise PlanError(f"{path}: {error}; name a text file in UTF-8 with one phrase a line") from error
    return tuple(line for line in lines if line and not line.startswith("#"))


def find_recordings(paths: list[Path]) -> list[Path]:
    """Files as they are, folders searched for recordings, in order of their names.

    Raises:
        PlanError: A path is missing, or a folder holds no recording.
    """
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = sorted(p for p in path.rglob("*") if p.suffix.lower() in AUDIO_SUFFIXES)
            if not inside:
                raise PlanError(
                    f"{path}: no recording in this folder; it should hold {', '.join(AUDIO_SUFFIXES)} files"
                )
            found += inside
        elif path.is_file():
            found.append(path)
        else:
            raise PlanError(f"{path}: no such file or folder; name recordings to play")
    return found


def attach_references(paths: list[Path], entries: tuple[ManifestEntry, ...]) -> list[ManifestEntry | Path]:
    """Each path's manifest entry, where the manifest has one."""
    known = {entry.path.resolve(): entry for entry in entries}
    return [known.get(path.resolve(), path) for path in paths]


def plan_calls(
    sources: list[ManifestEntry | Path], options: CallOptions, limits: Limits, repeat: int = 1
) -> list[PlannedCall]:
    """Fits every recording to what the server accepts.

    Raises:
        PlanError: A recording cannot be played as asked.
    """
    once = [_plan_call(source, options, limits) for source in sources]
    return [replace(call, index=index) for index, call in enumerate(once * repeat)]


def _plan_call(source: ManifestEntry | Path, options: CallOptions, limits: Limits) -> PlannedCall:
    entry = source if isinstance(source, ManifestEntry) else None
    path = source.path if isinstance(source, ManifestEntry) else source
    try:
        info = recording_info(path)
    except AudioFileError as error:
        raise PlanError(str(error)) from error
    if info.num_samples == 0:
        raise PlanError(f"{path}: holds no audio; leave it out")
    is_mixed = _is_mixed(entry, options)
    num_channels = 1 if is_mixed else info.num_channels
    _check_channels(path, num_channels, options, limits)
    return PlannedCall(
        index=0,
        name=entry.name if entry else path.name,
        path=path,
        duration_s=info.duration_s,
        settings=CallSettings(
            encoding=options.encoding or info.encoding,
            sample_rate_hz=options.sample_rate_hz or _accepted_rate(info, limits),
            num_channels=num_channels,
            language_code=options.language_code or _language(entry),
            model=options.model,
            denoise=options.denoise,
            turn_events=options.turn_events,
            endpointing=Endpointing(profile=options.profile, hangover_ms=options.hangover_ms),
            scene_events=options.scene_events,
            speech_contexts=(SpeechContext(phrases=options.hints),) if options.hints else (),
            channel_roles=_roles(entry, options),
        ),
        is_mixed=is_mixed,
        reference=entry,
    )


def _is_mixed(entry: ManifestEntry | None, options: CallOptions) -> bool:
    if options.roles:
        return len(options.roles) == 1
    return entry is not None and entry.is_mixed and bool(entry.texts)


def _check_channels(path: Path, num_channels: int, options: CallOptions, limits: Limits) -> None:
    if num_channels > limits.max_channel_count:
        raise PlanError(
            f"{path}: has {num_channels} channels, the server takes {limits.max_channel_count}; "
            "name one role with --channels to mix them into one"
        )
    if options.roles and len(options.roles) != num_channels:
        raise PlanError(f"{path}: has {num_channels} channels, --channels names {len(options.roles)}; name one each")


def _accepted_rate(info: RecordingInfo, limits: Limits) -> int:
    """The file's own rate, or the nearest accepted one that loses nothing."""
    accepted = sorted(limits.sample_rates_hz) or [info.sample_rate_hz]
    return next((rate for rate in accepted if rate >= info.sample_rate_hz), accepted[-1])


def _language(entry: ManifestEntry | None) -> str:
    return entry.language_code if entry and entry.language_code != NO_LANGUAGE else ""


def _roles(entry: ManifestEntry | None, options: CallOptions) -> Mapping[int, ChannelRole]:
    if options.roles:
        return dict(enumerate(options.roles, start=1))
    return entry.roles if entry else {}


def load_audio(call: PlannedCall) -> bytes:
    """Reads and encodes the whole recording; takes a while, so not for the event loop's thread.

    Raises:
        AudioFileError: The file has become unreadable.
    """
    recording: Recording = read_recording(call.path)
    if call.is_mixed:
        recording = mix_channels(recording)
    return encode(resample(recording, call.settings.sample_rate_hz), call.settings.encoding)
