import io

import pytest
from rich.console import Console

from clients.errors import RecognitionError
from clients.replay.display import LineDisplay, LiveCallDisplay, ProgressDisplay, clock_text, make_display
from clients.replay.player import TimedEvent
from clients.types import Notice, NoticeCode, Scene, SceneKind
from tests.clients.traces import final, interim, trace

CALL = trace([]).call


def terminal(is_terminal: bool = True) -> Console:
    return Console(file=io.StringIO(), force_terminal=is_terminal, width=60, color_system=None, _environ={})


def shown(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def at(event) -> TimedEvent:
    return TimedEvent(t_s=1.0, event=event)


def region(display: LiveCallDisplay | ProgressDisplay) -> str:
    """What stands below the permanent lines right now."""
    console = terminal(is_terminal=False)
    console.print(display._render())
    return shown(console)


@pytest.mark.parametrize(
    ("offset_ms", "text"), [(0, "00:00.0"), (59_949, "00:59.9"), (59_951, "01:00.0"), (3_723_400, "62:03.4")]
)
def test_clock(offset_ms, text):
    assert clock_text(offset_ms) == text


@pytest.mark.parametrize(
    ("is_terminal", "num_calls", "concurrency", "speed", "expected"),
    [
        (False, 1, 1, 1.0, LineDisplay),
        (False, 9, 4, 0.0, LineDisplay),
        (True, 1, 1, 0.0, LiveCallDisplay),
        (True, 9, 1, 1.0, LiveCallDisplay),
        (True, 9, 1, 0.0, ProgressDisplay),
        (True, 9, 4, 1.0, ProgressDisplay),
    ],
)
def test_the_display_suits_the_output(is_terminal, num_calls, concurrency, speed, expected):
    display = make_display(
        terminal(is_terminal), [CALL] * num_calls, concurrency=concurrency, speed=speed, has_interims=False
    )
    assert type(display) is expected


def test_interims_are_redrawn_until_their_final_stays():
    console = terminal()
    display = LiveCallDisplay(console, num_calls=1)
    display.call_began(CALL)
    display.audio_sent(CALL, 1_500)
    display.event_received(CALL, at(interim("good mor", end_ms=900, start_ms=400)))
    display.event_received(CALL, at(interim("hi", end_ms=1_000, start_ms=700, tag=2, segment="t1")))
    lines = region(display).splitlines()
    assert [line.split() for line in lines[:2]] == [
        ["00:00.4", "agent", "good", "mor", "…"],
        ["00:00.7", "customer", "hi", "…"],
    ]
    assert "00:01.5" in lines[-1]
    assert "00:05.0" in lines[-1]
    assert "good" not in shown(console)

    display.event_received(CALL, at(final("Good morning.", end_ms=1_200, start_ms=400)))
    assert "00:00.4  agent       Good morning." in shown(console)
    assert "good mor" not in region(display)
    assert "hi …" in region(display)

    display.event_received(CALL, at(final("", end_ms=1_200, start_ms=700, tag=2, segment="t1")))
    assert "hi" not in region(display) + shown(console)


def test_long_sentences_wrap_under_themselves():
    console = terminal()
    display = LiveCallDisplay(console, num_calls=1)
    display.event_received(CALL, at(final("word " * 20, end_ms=1_200)))
    first, second, *_ = shown(console).splitlines()
    assert first.index("word") == second.index("word") == 21


def test_brackets_in_what_was_said_are_not_markup():
    console = terminal()
    LiveCallDisplay(console, num_calls=1).event_received(CALL, at(final("press [bold] now", end_ms=1_200)))
    lines = terminal(is_terminal=False)
    LineDisplay(lines, num_calls=1, has_interims=False).event_received(CALL, at(final("press [bold] now", end_ms=1)))
    assert "press [bold] now" in shown(console)
    assert "press [bold] now" in shown(lines)


def test_progress_counts_calls_and_audio():
    console = terminal()
    display = ProgressDisplay(console, [CALL] * 3)
    for _ in range(2):
        display.call_began(CALL)
    display.audio_sent(CALL, 4_000)
    assert "0/3" in region(display)
    assert "2 live, 4 s of audio sent" in " ".join(region(display).split())
    display.call_ended(trace([], error=RecognitionError("UNAVAILABLE", "gone")))
    assert "1/3" in region(display)
    assert "1 live, 1 failed" in " ".join(region(display).split())
    assert "a.wav: UNAVAILABLE: gone" in shown(console)


def test_lines_name_their_call_when_there_are_many():
    console = terminal(is_terminal=False)
    display = LineDisplay(console, num_calls=2, has_interims=True)
    with display:
        display.call_began(CALL)
        display.event_received(CALL, at(interim("hel", end_ms=900)))
        display.event_received(CALL, at(final("hello", end_ms=1_200)))
        display.event_received(CALL, at(final("", end_ms=1_200)))
        display.event_received(CALL, at(Notice(code=NoticeCode.SERVER_DRAINING, message="soon")))
        display.call_ended(trace([], error=RecognitionError("UNAVAILABLE", "gone")))
    assert shown(console).splitlines() == [
        "a.wav  00:00.0  (agent)    hel …",
        "a.wav  00:00.0  agent      hello",
        "a.wav  00:01.0  SERVER_DRAINING: soon",
        "a.wav  00:05.0  error: UNAVAILABLE: gone",
    ]


RINGING = Scene(kind=SceneKind.RINGBACK, channel_tag=1, offset_ms=500, duration_ms=300, is_over=False)
RANG = Scene(kind=SceneKind.RINGBACK, channel_tag=1, offset_ms=500, duration_ms=8_000, is_over=True)
KEY = Scene(kind=SceneKind.DTMF, channel_tag=1, offset_ms=9_000, duration_ms=100, is_over=True, digit="#")


@pytest.mark.parametrize("is_terminal", [True, False])
def test_the_scene_is_shown_among_the_words(is_terminal):
    console = terminal(is_terminal)
    with make_display(console, [CALL], concurrency=1, speed=1.0, has_interims=False) as display:
        for event in (RINGING, RANG, KEY):
            display.event_received(CALL, at(event))
    lines = shown(console)
    places = [lines.index(text) for text in ("00:00.5", "[ringback …]", "[ringback, 8.0 s]", "00:09.0", "[key #]")]
    assert places == sorted(places)


def test_scenes_of_many_calls_are_counted():
    display = ProgressDisplay(terminal(), [CALL] * 3)
    for event in (RINGING, RANG, KEY):
        display.event_received(CALL, at(event))
    assert "2 scenes" in region(display)
