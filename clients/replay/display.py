"""What a run shows while it goes on: the words of one call live, the progress of many, or plain lines."""

from types import TracebackType
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.progress_bar import ProgressBar
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from clients.replay.pacing import MS_PER_S
from clients.replay.plan import PlannedCall
from clients.replay.player import CallTrace, TimedEvent
from clients.replay.scene_text import scene_text
from clients.types import Notice, Result, Scene

REFRESHES_PER_S = 12
SECONDS_PER_MINUTE = 60
CLOCK_WIDTH = 7
ROLE_WIDTH = 10
BAR_WIDTH = 32
ROLE_STYLES = {"agent": "cyan", "customer": "green", "ivr": "magenta"}
CHANNEL_STYLES = ("cyan", "green")
"""For channels without a role."""


def clock_text(offset_ms: float) -> str:
    """Minutes, seconds and tenths: "01:23.4"."""
    tenths = round(offset_ms / (MS_PER_S / 10))
    minutes, rest = divmod(tenths, SECONDS_PER_MINUTE * 10)
    return f"{minutes:02d}:{rest // 10:02d}.{rest % 10}"


def _role_style(call: PlannedCall, channel_tag: int) -> str:
    by_channel = CHANNEL_STYLES[(channel_tag - 1) % len(CHANNEL_STYLES)]
    return ROLE_STYLES.get(call.role_name(channel_tag), by_channel)


def _spoken_line(call: PlannedCall, offset_ms: float, channel_tag: int, words: Text) -> Table:
    """Clock, role and words, the words wrapping under themselves."""
    line = Table.grid(padding=(0, 2), expand=True)
    line.add_column(width=CLOCK_WIDTH, no_wrap=True)
    line.add_column(width=ROLE_WIDTH, no_wrap=True)
    line.add_column(ratio=1)
    role = Text(call.role_name(channel_tag), style=f"bold {_role_style(call, channel_tag)}")
    line.add_row(Text(clock_text(offset_ms), style="dim"), role, words)
    return line


def _interim_words(result: Result) -> Text:
    """Stable words upright, the rest as what it is: a guess."""
    words = Text(result.transcript[: result.stable_length], style="dim")
    words.append(result.transcript[result.stable_length :], style="dim italic")
    words.append(" …", style="dim")
    return words


class _LiveDisplay:
    """Shared by the displays that redraw a region at the bottom of a terminal."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(
            console=console, get_renderable=self._render, refresh_per_second=REFRESHES_PER_S, transient=True
        )

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def _render(self) -> RenderableType:
        raise NotImplementedError

    def _print_failure(self, trace: CallTrace) -> None:
        if trace.error:
            self._console.print(Text(f"{trace.call.name}: {trace.error}", style="red"))


class LiveCallDisplay(_LiveDisplay):
    """One call after the other: finals stay on the screen, interims are redrawn below them."""

    def __init__(self, console: Console, num_calls: int) -> None:
        self._num_calls = num_calls
        self._call: PlannedCall | None = None
        self._sent_ms = 0.0
        self._interims: dict[int, Result] = {}
        super().__init__(console)

    def call_began(self, call: PlannedCall) -> None:
        """Prints the call's heading."""
        self._call, self._sent_ms, self._interims = call, 0.0, {}
        settings = call.settings
        channels = "1 channel" if settings.num_channels == 1 else f"{settings.num_channels} channels"
        details = f"{settings.encoding.value} {settings.sample_rate_hz} Hz, {channels}"
        counter = f"{call.index + 1}/{self._num_calls}  " if self._num_calls > 1 else ""
        title = Text.assemble((f"{counter}{call.name}", "bold"), ("  " + details, "dim"))
        self._console.print(Rule(title, align="left", style="dim"))

    def audio_sent(self, call: PlannedCall, sent_ms: float) -> None:
        """Moves the bar."""
        self._sent_ms = sent_ms

    def event_received(self, call: PlannedCall, event: TimedEvent) -> None:
        """Prints finals, keeps interims for the next redraw."""
        match event.event:
            case Result(is_final=True) as result:
                self._interims.pop(result.channel_tag, None)
                if result.transcript:
                    words = Text(result.transcript.strip())
                    self._console.print(_spoken_line(call, result.start_ms, result.channel_tag, words))
            case Result() as result:
                self._interims[result.channel_tag] = result
            case Scene() as scene:
                words = Text(scene_text(scene), style="magenta")
                self._console.print(_spoken_line(call, scene.offset_ms, scene.channel_tag, words))
            case Notice() as notice:
                self._console.print(Text(f"{notice.code.value}: {notice.message}", style="yellow"))
            case _:
                pass

    def call_ended(self, trace: CallTrace) -> None:
        """Says what went wrong, if something did."""
        self._call = None
        self._print_failure(trace)

    def _render(self) -> RenderableType:
        call = self._call
        if call is None:
            return Text()
        lines: list[RenderableType] = [
            _spoken_line(call, result.start_ms, tag, _interim_words(result))
            for tag, result in sorted(list(self._interims.items()))
        ]
        total_ms = call.duration_s * MS_PER_S
        bar = Table.grid(padding=(0, 2))
        bar.add_row(
            Text(clock_text(self._sent_ms), style="dim"),
            ProgressBar(total=total_ms, completed=self._sent_ms, width=BAR_WIDTH),
            Text(clock_text(total_ms), style="dim"),
        )
        return Group(*lines, Text(), bar)


class ProgressDisplay(_LiveDisplay):
    """Many calls at once: how far they are."""

    def __init__(self, console: Console, calls: list[PlannedCall]) -> None:
        self._progress = Progress(
            TextColumn("calls"),
            MofNCompleteColumn(),
            BarColumn(bar_width=BAR_WIDTH),
            TextColumn("{task.fields[note]}", style="dim"),
            TimeElapsedColumn(),
            console=console,
        )
        self._task = self._progress.add_task("calls", total=len(calls), note="")
        self._num_live = 0
        self._num_failed = 0
        self._num_scenes = 0
        self._audio_ms: dict[int, float] = {}
        super().__init__(console)

    def call_began(self, call: PlannedCall) -> None:
        """Counts it."""
        self._num_live += 1
        self._update()

    def audio_sent(self, call: PlannedCall, sent_ms: float) -> None:
        """Counts it."""
        self._audio_ms[call.index] = sent_ms
        self._update()

    def event_received(self, call: PlannedCall, event: TimedEvent) -> None:
        """Counts scenes; words of many calls at once would be unreadable."""
        if isinstance(event.event, Scene) and event.event.is_over:
            self._num_scenes += 1
            self._update()

    def call_ended(self, trace: CallTrace) -> None:
        """Counts it, and says what went wrong."""
        self._num_live = max(0, self._num_live - 1)
        self._num_failed += trace.error is not None
        self._progress.advance(self._task)
        self._update()
        self._print_failure(trace)

    def _update(self) -> None:
        failed = f", {self._num_failed} failed" if self._num_failed else ""
        scenes = f", {self._num_scenes} scenes" if self._num_scenes else ""
        note = f"{self._num_live} live{failed}, {sum(self._audio_ms.values()) / MS_PER_S:.0f} s of audio sent{scenes}"
        self._progress.update(self._task, note=note)

    def _render(self) -> RenderableType:
        return self._progress


class LineDisplay:
    """Where no terminal is: one line a final, and one an interim if asked."""

    def __init__(self, console: Console, *, num_calls: int, has_interims: bool) -> None:
        self._console = console
        self._num_calls = num_calls
        self._has_interims = has_interims

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return

    def call_began(self, call: PlannedCall) -> None:
        """Lines name their call; nothing else to say."""

    def audio_sent(self, call: PlannedCall, sent_ms: float) -> None:
        """Nothing to say."""

    def event_received(self, call: PlannedCall, event: TimedEvent) -> None:
        """Prints results."""
        match event.event:
            case Result(is_final=True, transcript=words) as result if words:
                self._print(call, result.start_ms, f"{call.role_name(result.channel_tag):<{ROLE_WIDTH}} {words}")
            case Result(is_final=False) as result if self._has_interims:
                role = f"({call.role_name(result.channel_tag)})"
                self._print(call, result.start_ms, f"{role:<{ROLE_WIDTH}} {result.transcript} …")
            case Scene() as scene:
                role = call.role_name(scene.channel_tag)
                self._print(call, scene.offset_ms, f"{role:<{ROLE_WIDTH}} {scene_text(scene)}")
            case Notice() as notice:
                self._print(call, event.t_s * MS_PER_S, f"{notice.code.value}: {notice.message}")
            case _:
                pass

    def call_ended(self, trace: CallTrace) -> None:
        """Says what went wrong, if something did."""
        if trace.error:
            self._print(trace.call, trace.wall_s * MS_PER_S, f"error: {trace.error}")

    def _print(self, call: PlannedCall, offset_ms: float, words: str) -> None:
        name = f"{call.name}  " if self._num_calls > 1 else ""
        self._console.print(Text(f"{name}{clock_text(offset_ms)}  {words}"), soft_wrap=True)


Display = LiveCallDisplay | ProgressDisplay | LineDisplay


def make_display(
    console: Console, calls: list[PlannedCall], *, concurrency: int, speed: float, has_interims: bool
) -> Display:
    """The display that suits where the output goes and how much happens at once."""
    if not console.is_terminal:
        return LineDisplay(console, num_calls=len(calls), has_interims=has_interims)
    if len(calls) == 1 or (concurrency == 1 and speed > 0):
        return LiveCallDisplay(console, len(calls))
    return ProgressDisplay(console, calls)
