"""A capacity run on a terminal: what goes on, then a line a step."""

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from clients.bench.capacity import CapacityReport, Observer, Step
from clients.bench.figures import StepFigures

_PERCENT = 100
_NONE = "–"


class CapacityDisplay(Observer):
    """Shows the phase under way, and every step as soon as it has ended."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._progress = Progress(
            TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), console=console, transient=True
        )
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def phase_began(self, title: str, expected_s: float) -> None:
        """See Observer."""
        if self._task is not None:
            self._progress.remove_task(self._task)
        about = f", {expected_s:.0f} s" if expected_s else ""
        if not self._console.is_terminal:
            self._console.print(Text(f"{title}{about} ..."))
        self._task = self._progress.add_task(f"{title}{about}", total=None)

    def step_ended(self, step: Step) -> None:
        """See Observer."""
        broken = f": {'; '.join(step.breaches)}" if step.breaches else ""
        verdict = Text("does not hold" if step.breaches else "holds", style="red" if step.breaches else "green")
        self._console.print(Text(f"{step.figures.num_calls:3d}  ") + verdict + Text(broken))


def capacity_table(report: CapacityReport) -> Table:
    """One line a step."""
    title = f"{report.facts['model']}, {report.facts['precision']}, {report.facts['machine']['cores']} cores"
    table = Table(title=title, title_justify="left", box=None, padding=(0, 1), header_style="dim")
    for name in (
        "calls", "word lag\np50 / p95 s", "finalization\np50 / p95 s", "first interim\np50 / p95 s",
        "interims/s\nleast / median", "WER %\n(alone)", "flicker\n%", "interim\n≠ final %", "lost",
        "server\ncores", "CPU s per\naudio s", "RSS\nMB", "load\ncores", "others\ncores", "sent late\ns",
    ):  # fmt: skip
        table.add_column(name, justify="right")
    for step in report.steps:
        table.add_row(*_cells(step.figures), style="" if not step.breaches else "yellow")
    return table


def verdict_text(report: CapacityReport) -> str:
    """One sentence."""
    verdict = report.verdict
    held = f"held: {verdict.calls_held} call{'' if verdict.calls_held == 1 else 's'}"
    if verdict.broken_at is None:
        return f"{held}; more were not tried"
    return f"{held}; with {verdict.broken_at}: {'; '.join(verdict.reasons)}"


def _cells(figures: StepFigures) -> tuple[str, ...]:
    usage = figures.usage
    wall_s = usage["wall_s"] or 1.0
    server_s, load_s = usage["server_cpu_s"], usage["client_cpu_s"] or 0.0
    others_s = (usage["machine_busy_cpu_s"] or 0.0) - (server_s or 0.0) - load_s
    lost = sum(count > 0 for count in figures.losses.values())
    return (
        str(figures.num_calls),
        _pair(figures.word_lag_p50_s, figures.word_lag_p95_s),
        _pair(figures.finalization_p50_s, figures.finalization_p95_s),
        _pair(figures.first_interim_p50_s, figures.first_interim_p95_s),
        _pair(figures.interims_per_s_lowest, figures.interims_per_s_median),
        f"{_percent(figures.wer)} ({_percent(figures.wer_alone)})",
        _percent(figures.flicker),
        _percent(figures.last_interim_difference),
        "yes" if lost else "no",
        _number(None if server_s is None else server_s / wall_s),
        _number(None if server_s is None else server_s / max(figures.audio_s, 1e-9), 3),
        _number(usage["server_rss_mb"], 0),
        _number(load_s / wall_s),
        _number(others_s / wall_s),
        _number(figures.max_send_late_s),
    )


def _number(value: float | None, digits: int = 2) -> str:
    return _NONE if value is None else f"{value:.{digits}f}"


def _pair(first: float | None, second: float | None) -> str:
    return f"{_number(first)} / {_number(second)}"


def _percent(share: float | None) -> str:
    return _NONE if share is None else f"{_PERCENT * share:.2f}"
