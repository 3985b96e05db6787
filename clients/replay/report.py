"""The report of a run: one self-contained page for people, one JSON file for programs."""

import json
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from clients.replay.player import CallTrace
from clients.replay.plots import latency_figure, timeline_figure, to_svg, wer_figure
from clients.replay.scoring import Edit, Score
from clients.replay.summary import (
    PERCENT,
    Summary,
    figure_rows,
    figures,
    latencies,
    latency_note,
    worst_scores,
)
from clients.types import Result

NUM_WORST_ROWS = 25
TEMPLATE = Path(__file__).with_name("report.html.template")


def write_report(folder: Path, summary: Summary) -> Path:
    """Writes report.html and report.json to the folder, made if it is not there.

    Returns:
        The path of report.html.
    """
    folder.mkdir(parents=True, exist_ok=True)
    content = json.dumps(report_json(summary), indent=2, ensure_ascii=False)
    (folder / "report.json").write_text(content + "\n", encoding="utf-8")
    page = folder / "report.html"
    page.write_text(report_html(summary), encoding="utf-8")
    return page


def report_json(summary: Summary) -> dict[str, Any]:
    """All figures and settings, and what each call came to. Holds no transcript."""
    scores: dict[int, list[Score]] = {}
    for score in summary.scores:
        scores.setdefault(score.call_index, []).append(score)
    return {
        "settings": summary.settings,
        "figures": figures(summary),
        "latency_note": latency_note(summary) or None,
        "calls": [
            {
                "index": trace.call.index,
                "name": trace.call.name,
                "audio_s": trace.sent_ms / 1_000,
                "wall_s": trace.wall_s,
                "finals": measures.num_finals,
                "interims": measures.num_interims,
                "languages": measures.languages,
                "audio_lost_ms": measures.lost_ms,
                "stable_violations": measures.num_stable_violations,
                "error": str(trace.error) if trace.error else None,
                "scores": [_score_json(score) for score in scores.get(trace.call.index, [])],
            }
            for trace, measures in zip(summary.traces, summary.measures, strict=True)
        ],
    }


def _score_json(score: Score) -> dict[str, Any]:
    return {
        "channel_tag": score.channel_tag,
        "wer": score.wer,
        "errors": score.num_errors,
        "words": score.num_words,
    }


def report_html(summary: Summary) -> str:
    """The page."""
    template = Template(TEMPLATE.read_text(encoding="utf-8"))
    settings = summary.settings
    pictures = "\n".join(f"<figure>{to_svg(figure)}</figure>" for figure in _figures(summary))
    return template.substitute(
        subtitle=escape(f"{settings.get('model', '')} on {settings.get('server', '')}, {_pace(summary)}"),
        cards=_cards(summary),
        sections="\n".join(_section(title, rows) for title, rows in figure_rows(summary)),
        pictures=pictures,
        worst=_worst_table(summary),
        failures=_failures(summary),
        settings="\n".join(_row(name.replace("_", " "), value) for name, value in settings.items()),
    )


def _figures(summary: Summary) -> list[Any]:
    drawn = []
    series = latencies(summary)
    labels = {
        "first interim": series["first_interim_latency_s"],
        "finalization": series["finalization_latency_s"],
        "finalization, by the server's clock": series["server_finalization_latency_s"],
    }
    if any(labels.values()):
        drawn.append(latency_figure(labels))
    if summary.traces:
        drawn.append(timeline_figure(max(summary.traces, key=_num_results)))
    if summary.scores:
        drawn.append(wer_figure(summary.scores))
    return drawn


def _num_results(trace: CallTrace) -> int:
    return sum(isinstance(timed.event, Result) for timed in trace.events)


def _pace(summary: Summary) -> str:
    calls = "1 call" if len(summary.traces) == 1 else f"{len(summary.traces)} calls"
    at_once = summary.settings.get("concurrency", 1)
    pace = "as fast as the server takes them" if summary.speed == 0 else f"at {summary.speed:g} x real time"
    return f"{calls}, {at_once} at once, {pace}"


def _cards(summary: Summary) -> str:
    values = figures(summary)
    first, final = values["first_interim_latency_s"], values["finalization_latency_s"]
    cards = [
        ("word error rate", "–" if values["wer"] is None else f"{PERCENT * values['wer']:.2f} %"),
        ("first interim, median", f"{first['median']:.2f} s" if first else "–"),
        ("finalization, median", f"{final['median']:.2f} s" if final else "–"),
        ("calls failed", f"{values['calls_failed']} of {values['calls']}"),
    ]
    return "\n".join(f"<div class='card'><b>{escape(v)}</b><span>{escape(k)}</span></div>" for k, v in cards)


def _section(title: str, rows: list[tuple[str, str]]) -> str:
    body = "\n".join(_row(label, value) for label, value in rows)
    return f"<section><h3>{escape(title)}</h3><table>{body}</table></section>"


def _row(label: str, value: object) -> str:
    return f"<tr><th>{escape(label)}</th><td>{escape('–' if value is None else str(value))}</td></tr>"


def _worst_table(summary: Summary) -> str:
    worst = worst_scores(summary, NUM_WORST_ROWS)
    if not worst:
        reason = "No recording has an error." if summary.scores else "No recording has a reference."
        return f"<p class='quiet'>{reason}</p>"
    rows = "\n".join(
        f"<tr><td class='name'>{escape(score.name)}<span>channel {score.channel_tag}</span></td>"
        f"<td class='number'>{PERCENT * score.wer:.1f} %</td>"
        f"<td class='number'>{score.num_errors} / {score.num_words}</td>"
        f"<td class='diff'>{''.join(_edit(edit) for edit in score.edits)}</td></tr>"
        for score in worst
    )
    heads = "<tr><th>recording</th><th>WER</th><th>errors / words</th><th>reference and what was heard</th></tr>"
    legend = "<p class='quiet'><del>said, not heard</del> <ins>heard, not said</ins>; both sides normalised</p>"
    return f"{legend}<table class='worst'><thead>{heads}</thead><tbody>{rows}</tbody></table>"


def _edit(edit: Edit) -> str:
    if edit.kind == "equal":
        return f"{escape(edit.reference)} "
    gone = f"<del>{escape(edit.reference)}</del> " if edit.reference and edit.kind != "insert" else ""
    new = f"<ins>{escape(edit.hypothesis)}</ins> " if edit.hypothesis and edit.kind != "delete" else ""
    return gone + new


def _failures(summary: Summary) -> str:
    if not summary.failures:
        return ""
    rows = "\n".join(_row(trace.call.name, trace.error) for trace in summary.failures)
    return f"<h2>Failed calls</h2><table class='failed'>{rows}</table>"
