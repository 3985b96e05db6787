"""The report's pictures, as SVG text that stands inside a page."""

import io
from collections.abc import Mapping, Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from clients.replay.measures import SegmentHistory, segments_of
from clients.replay.pacing import MS_PER_S
from clients.replay.player import CallTrace
from clients.replay.scoring import Score

INK = "#1f2933"
QUIET = "#7b8794"
GRID = "#e4e7eb"
BLUE = "#2563a6"
LIGHT_BLUE = "#a9c6e6"
ORANGE = "#d9772b"
GREEN = "#3a8a5f"
FIGURE_WIDTH_IN = 9.2
MAX_BARS = 120
"""More files than this and only the worst are drawn."""
MAX_NAMED_BARS = 30
"""More files than this and their names would overlap."""
LANE_IN = 1.15
"""Height of one channel in the timeline."""
PERCENT = 100


def _axes(height_in: float, title: str) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(FIGURE_WIDTH_IN, height_in), layout="constrained")
    axes = figure.add_subplot()
    axes.set_title(title, loc="left", fontsize=11, fontweight="bold", color=INK)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(QUIET)
    axes.tick_params(colors=QUIET, labelcolor=INK, labelsize=9)
    axes.set_axisbelow(True)
    return figure, axes


def to_svg(figure: Figure) -> str:
    """The figure as one `<svg>` element, the same bytes for the same figure."""
    buffer = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "path", "svg.hashsalt": "talkpath"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]


def latency_figure(series: Mapping[str, Sequence[float]]) -> Figure:
    """How much of each series is at most so late: cumulative shares, with median and p95 marked.

    Args:
        series: Label to latencies in seconds; empty ones are left out.
    """
    figure, axes = _axes(3.6, "Latency: share of results that came within this time")
    for (label, values), colour in zip(series.items(), (BLUE, ORANGE, GREEN), strict=False):
        if not values:
            continue
        ordered = np.sort(np.asarray(values, dtype=float))
        shares = PERCENT * np.arange(1, len(ordered) + 1) / len(ordered)
        median, p95 = np.percentile(ordered, (50, 95))
        label = f"{label}: {median:.2f} s median, {p95:.2f} s p95 ({len(ordered)} measured)"
        axes.step(ordered, shares, where="post", color=colour, linewidth=1.8, label=label)
        axes.plot((median, p95), (50, 95), "o", color=colour, markersize=5)
    for share in (50, 95):
        axes.axhline(share, color=GRID, linewidth=1)
    axes.set_ylim(0, 103)
    axes.set_xlim(left=min(0.0, axes.get_xlim()[0]))
    axes.set_yticks((0, 50, 95), ("0 %", "median", "95 %"))
    axes.set_xlabel("seconds", fontsize=9, color=INK)
    _legend_below(figure, num_columns=1)
    return figure


def _legend_below(figure: Figure, num_columns: int) -> None:
    figure.legend(frameon=False, fontsize=9, ncols=num_columns, loc="outside lower left", labelcolor=INK)


def wer_figure(scores: Sequence[Score]) -> Figure:
    """Errors per word of each recording, worst first."""
    ordered = sorted(scores, key=lambda score: -score.wer)[:MAX_BARS]
    num_perfect = sum(1 for score in scores if not score.num_errors)
    title = f"Word error rate per recording ({num_perfect} of {len(scores)} without an error)"
    figure, axes = _axes(3.0, title)
    axes.bar(range(len(ordered)), [PERCENT * score.wer for score in ordered], color=BLUE, width=0.8)
    axes.set_ylabel("WER, %", fontsize=9, color=INK)
    axes.yaxis.grid(True, color=GRID)
    axes.set_ylim(bottom=0, top=None if ordered and ordered[0].num_errors else 1)
    axes.set_xlim(-0.7, max(len(ordered), 5) - 0.3)
    if len(ordered) <= MAX_NAMED_BARS:
        names = [score.name.rsplit("/", 1)[-1].rsplit(".", 1)[0] for score in ordered]
        axes.set_xticks(range(len(ordered)), names, rotation=60, ha="right", rotation_mode="anchor", fontsize=8)
    else:
        axes.set_xticks(())
        axes.set_xlabel(f"{len(ordered)} recordings, worst first", fontsize=9, color=INK)
    return figure


def timeline_figure(trace: CallTrace) -> Figure:
    """One call over time: what was said where, and when its interims and finals came.

    A segment is a bar on the audio's clock; above it a tick for each interim and a diamond for the final, both where
    they were received on the same clock.
    """
    segments = segments_of(trace.events)
    tags = sorted({segment.last.channel_tag for segment in segments}) or [1]
    figure, axes = _axes(1.4 + LANE_IN * len(tags), f"Segments, interims and finals of {trace.call.name}")
    for segment in segments:
        _draw_segment(axes, segment, tags.index(segment.last.channel_tag), trace)
    reference = trace.call.reference
    for utterance in reference.utterances if reference else ():
        if utterance.channel_tag in tags:
            lane = tags.index(utterance.channel_tag)
            start_s, length_s = utterance.start_ms / MS_PER_S, (utterance.end_ms - utterance.start_ms) / MS_PER_S
            axes.broken_barh([(start_s, length_s)], (lane + 0.06, 0.12), facecolor=QUIET, edgecolor="white")
    _draw_legend(axes, bool(reference and reference.utterances))
    _legend_below(figure, num_columns=4)
    axes.set_ylim(len(tags), -0.02)
    axes.set_xlim(0, max([trace.call.duration_s, *(timed.t_s * trace.speed for timed in trace.events)]) * 1.01)
    axes.set_yticks([lane + 0.4 for lane in range(len(tags))], [trace.call.role_name(tag) for tag in tags])
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("seconds of the call", fontsize=9, color=INK)
    axes.xaxis.grid(True, color=GRID)
    return figure


def _draw_segment(axes: Axes, segment: SegmentHistory, lane: int, trace: CallTrace) -> None:
    last = segment.last
    bar = (last.start_ms / MS_PER_S, (last.end_ms - last.start_ms) / MS_PER_S)
    axes.broken_barh([bar], (lane + 0.22, 0.26), facecolor=LIGHT_BLUE, edgecolor="white")
    if trace.speed == 0:
        return
    interims_s = [timed.t_s * trace.speed for timed in segment.interims]
    axes.plot(interims_s, [lane + 0.60] * len(interims_s), "|", color=BLUE, markersize=11, markeredgewidth=1.3)
    if segment.final:
        axes.plot([segment.final.t_s * trace.speed], [lane + 0.60], "D", color=ORANGE, markersize=5)


def _draw_legend(axes: Axes, has_reference: bool) -> None:
    if has_reference:
        axes.plot([], [], "s", color=QUIET, label="said (reference)")
    axes.plot([], [], "s", color=LIGHT_BLUE, label="segment")
    axes.plot([], [], "|", color=BLUE, markersize=10, label="interim received")
    axes.plot([], [], "D", color=ORANGE, markersize=5, label="final received")
