"""Call scripts: the TOML files that say who speaks what and when, checked and turned into frozen values.

A script is a list of `[[turns]]`. Text may hold `{pause 700}` (milliseconds of silence inside the turn) and `{slot}`,
which stands for one entry of the list `slot` under `[choices]`. `say` is what the voice reads where that differs from
what a listener writes down (`text = "555"`, `say = "five five five"`); it needs the same pauses as `text`.

Instead of text a turn may have `sound`: "music", "silence", "ringback" or "beep" with `duration_ms`, or "keys" with
`keys = "4711#"`. `speaker` says whose line carries it.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROLES = ("agent", "customer")
"""In the order of their channels: channel 1 is the agent's."""
ENCODINGS = ("ULAW", "PCM_16")
SOUND_KINDS = ("music", "silence", "ringback", "beep", "keys")
MAX_PAUSE_MS = 10_000
MAX_SOUND_MS = 60_000
MAX_OVERLAP_MS = 5_000
LEVEL_RANGE_DB = (-15.0, 6.0)
SHIFT_RANGE = (0.8, 1.4)
SCRIPT_KEYS = {"title", "channels", "encoding", "customer_shift", "speed", "lead_in_ms", "lead_out_ms", "choices"}
TURN_KEYS = {"speaker", "text", "say", "gap_ms", "level_db", "shift", "sound", "duration_ms", "keys"}
KEYS = "0123456789*#ABCD"

_PAUSE = re.compile(r"\s*\{pause (\d+)\}\s*")
_SLOT = re.compile(r"\{(\w+)\}")


class ScriptError(ValueError):
    """A call script says something that cannot be spoken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Words spoken without an intended pause."""

    text: str
    """As a listener writes it down."""
    say: str
    """As the voice reads it."""
    pause_before_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One party speaks."""

    speaker: str
    pieces: tuple[Piece, ...]
    gap_ms: int
    """After the latest end of all turns before; negative: this turn starts before that end, though never before the
    speaker's own last words are out."""
    level_db: float
    """Against the usual speech level."""
    shift: float | None = None
    """Pitch and formants of this turn's voice; None: the speaker's own. A voice menu is a third voice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sound:
    """A line carries something that is no speech, or nothing."""

    kind: str
    speaker: str
    """Whose line."""
    gap_ms: int
    duration_ms: int
    keys: str = ""
    """Of kind "keys": those pressed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallScript:
    """A whole call, ready to be spoken."""

    name: str
    title: str
    steps: tuple[Turn | Sound, ...]
    num_channels: int
    encoding: str
    customer_shift: float
    """Pitch and formants of the customer's voice against the agent's; 1 is the same voice."""
    speed: float
    lead_in_ms: int
    lead_out_ms: int


def load_script(path: Path, rng: np.random.Generator | None = None) -> CallScript:
    """Reads and checks one call script.

    Args:
        path: A TOML file; its stem names the call.
        rng: Picks the entries of `[choices]`; without it the first entry of each is taken.

    Raises:
        ScriptError: The file holds something that cannot be spoken; the message says where and why.
    """
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        return _parse_script(path.stem, table, rng)
    except (tomllib.TOMLDecodeError, ScriptError) as error:
        raise ScriptError(f"{path.name}: {error}") from error


def _parse_script(name: str, table: dict[str, Any], rng: np.random.Generator | None) -> CallScript:
    turns = table.pop("turns", [])
    _require_known(table, SCRIPT_KEYS, "the script")
    if not turns:
        raise ScriptError("no [[turns]]; a call needs at least one")
    num_channels = table.get("channels", 2)
    encoding = table.get("encoding", "ULAW")
    if num_channels not in (1, 2):
        raise ScriptError(f"channels = {num_channels}; use 1 or 2")
    if encoding not in ENCODINGS:
        raise ScriptError(f"encoding = {encoding!r}; use one of {', '.join(ENCODINGS)}")
    slots = _choose(table.get("choices", {}), rng)
    return CallScript(
        name=name,
        title=table.get("title", name),
        steps=tuple(_parse_step(turn, f"turn {k}", slots, num_channels) for k, turn in enumerate(turns, start=1)),
        num_channels=num_channels,
        encoding=encoding,
        customer_shift=_number(table, "customer_shift", 1.18, SHIFT_RANGE),
        speed=_number(table, "speed", 1.0, (0.7, 1.4)),
        lead_in_ms=int(_number(table, "lead_in_ms", 400, (0, MAX_PAUSE_MS))),
        lead_out_ms=int(_number(table, "lead_out_ms", 600, (0, MAX_PAUSE_MS))),
    )


def _choose(choices: dict[str, list[str]], rng: np.random.Generator | None) -> dict[str, str]:
    # Lists of one length vary together, so that `{amount}` and `{amount_said}` stay a pair.
    lengths = sorted({len(entries) for entries in choices.values()})
    picks = {n: int(rng.integers(n)) if rng is not None else 0 for n in lengths if n > 0}
    empty = [slot for slot, entries in choices.items() if not entries]
    if empty:
        raise ScriptError(f"choices.{empty[0]} is empty; give at least one entry")
    return {slot: entries[picks[len(entries)]] for slot, entries in choices.items()}


def _parse_step(turn: dict[str, Any], where: str, slots: dict[str, str], num_channels: int) -> Turn | Sound:
    _require_known(turn, TURN_KEYS, where)
    gap_ms = int(_number(turn, "gap_ms", 400, (-MAX_OVERLAP_MS, MAX_PAUSE_MS), where))
    speaker = turn.get("speaker", "agent")
    if speaker not in ROLES[:num_channels]:
        raise ScriptError(f"{where}: speaker = {speaker!r}; use one of {', '.join(ROLES[:num_channels])}")
    if "sound" in turn:
        return _parse_sound(turn, where, speaker, gap_ms)
    return Turn(
        speaker=speaker,
        pieces=_parse_pieces(turn, where, slots),
        gap_ms=gap_ms,
        level_db=_number(turn, "level_db", 0.0, LEVEL_RANGE_DB, where),
        shift=_number(turn, "shift", 1.0, SHIFT_RANGE, where) if "shift" in turn else None,
    )


def _parse_sound(turn: dict[str, Any], where: str, speaker: str, gap_ms: int) -> Sound:
    kind, keys = turn["sound"], turn.get("keys", "")
    if kind not in SOUND_KINDS:
        raise ScriptError(f"{where}: sound = {kind!r}; use one of {', '.join(SOUND_KINDS)}")
    if gap_ms < 0:
        raise ScriptError(f"{where}: gap_ms = {gap_ms}; a sound needs 0 or more")
    if (kind == "keys") != bool(keys) or set(keys) - set(KEYS):
        raise ScriptError(f'{where}: keys = {keys!r}; give sound = "keys" some of {KEYS}, and no other sound any')
    duration_ms = int(_number(turn, "duration_ms", 5_000, (0, MAX_SOUND_MS), where))
    return Sound(kind=kind, speaker=speaker, gap_ms=gap_ms, duration_ms=duration_ms, keys=keys)


def _parse_pieces(turn: dict[str, Any], where: str, slots: dict[str, str]) -> tuple[Piece, ...]:
    texts, pauses = _split(turn.get("text", ""), slots, where)
    says, say_pauses = _split(turn.get("say", turn.get("text", "")), slots, where)
    if len(says) != len(texts):
        raise ScriptError(f"{where}: {len(say_pauses)} pauses in say, {len(pauses)} in text; give both the same")
    if not all(texts) or not all(says):
        raise ScriptError(f"{where}: no words before, between or after its pauses; write some or drop the pause")
    if any(pause_ms > MAX_PAUSE_MS for pause_ms in pauses):
        raise ScriptError(f"{where}: a pause of {max(pauses)} ms is longer than {MAX_PAUSE_MS} ms; use silence")
    return tuple(
        Piece(text=text, say=say, pause_before_ms=pause_ms)
        for text, say, pause_ms in zip(texts, says, [0, *pauses], strict=True)
    )


def _split(text: str, slots: dict[str, str], where: str) -> tuple[list[str], list[int]]:
    parts = _PAUSE.split(text)
    return [_fill(part, slots, where) for part in parts[::2]], [int(pause_ms) for pause_ms in parts[1::2]]


def _fill(text: str, slots: dict[str, str], where: str) -> str:
    unknown = [slot for slot in _SLOT.findall(text) if slot not in slots]
    if unknown:
        raise ScriptError(f"{where}: {{{unknown[0]}}} is not in [choices]; add it there")
    filled = _SLOT.sub(lambda match: slots[match.group(1)], text).strip()
    if "{" in filled:
        raise ScriptError(f"{where}: unknown mark in braces; use {{pause 700}} or a {{slot}} of [choices]")
    return filled


def _require_known(table: Mapping[str, Any], known: set[str], where: str) -> None:
    unknown = sorted(set(table) - known)
    if unknown:
        raise ScriptError(f"{where}: unknown key {unknown[0]!r}; known are {', '.join(sorted(known))}")


def _number(
    table: Mapping[str, Any], key: str, default: float, limits: tuple[float, float], where: str = "the script"
) -> float:
    value = table.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not limits[0] <= value <= limits[1]:
        raise ScriptError(f"{where}: {key} = {value!r}; use a number from {limits[0]} to {limits[1]}")
    return float(value)
