"""The small parts of a call: inbox, arrival log, idle watch, text guard, flicker, admission, scripted engine."""

import asyncio
import base64
import json
import logging
from unittest.mock import patch

import numpy as np
import pytest

from pipeline.engines.scripted import ScriptedEngine, counting_script
from pipeline.errors import EngineError, InvalidAudioError
from pipeline.types import AudioEncoding, AudioFormat, Batch, DecodeHints, DecodeRequest
from server.admission import Admission
from server.arrivals import ArrivalLog
from server.errors import CapacityError, DrainingError
from server.flicker import FlickerCounter
from server.idle import IdleWatch
from server.inbox import Inbox
from server.logs import JsonFormatter, TextFormatter
from server.textguard import TextGuard
from tests.support.audio import bursts, linear16, split

MULAW_8K = AudioFormat(encoding=AudioEncoding.MULAW, sample_rate_hz=8_000)


async def test_inbox_keeps_order_and_lets_urgent_items_pass() -> None:
    inbox: Inbox[str] = Inbox(1_000)
    await inbox.put("a", 10)
    await inbox.put("b", 10)
    inbox.put_urgent("now")
    assert not inbox.is_empty
    assert [await inbox.get() for _ in range(3)] == ["now", "a", "b"]
    assert inbox.is_empty


async def test_full_inbox_makes_the_reader_wait_but_not_answers() -> None:
    inbox: Inbox[str] = Inbox(100)
    await inbox.put("a", 500)
    waiting = asyncio.create_task(inbox.put("b", 10))
    await asyncio.sleep(0)
    assert not waiting.done()
    inbox.put_urgent("answer")
    assert await inbox.get(urgent_only=True) == "answer"
    assert not waiting.done()
    assert await inbox.get() == "a"
    await waiting
    assert await inbox.get() == "b"


async def test_inbox_counts_items_without_audio() -> None:
    inbox: Inbox[str] = Inbox(256)
    for _ in range(4):
        await inbox.put("keep alive")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(inbox.put("one more"), 0)


async def test_urgent_only_waits_for_urgent_items() -> None:
    inbox: Inbox[str] = Inbox(256)
    inbox.put_now("a")
    getting = asyncio.create_task(inbox.get(urgent_only=True))
    await asyncio.sleep(0)
    assert not getting.done()
    inbox.put_urgent("now")
    assert await getting == "now"


async def test_discarded_inbox_frees_whoever_waits_and_takes_nothing_more() -> None:
    inbox: Inbox[str] = Inbox(10)
    await inbox.put("a", 10)
    waiting = asyncio.create_task(inbox.put("b", 10))
    await asyncio.sleep(0)
    inbox.discard()
    await waiting
    assert inbox.is_empty


def test_arrival_log() -> None:
    log = ArrivalLog(MULAW_8K, 1_000, now_s=50.0)
    assert log.arrived_s(1_500) == 50.0
    assert log.lag_ms(99.0) == 0
    log.add_audio(800, 60.0)
    log.add_audio(800, 60.1)
    assert log.offset_ms == 1_200
    assert [log.arrived_s(offset_ms) for offset_ms in (0, 1_100, 1_101, 1_200, 9_999)] == [60.0, 60.0, 60.1, 60.1, 60.1]
    assert log.lag_ms(60.2) == 0
    assert log.lag_ms(62.2) == 2_000
    log.add_gap(1_500, 62.2)
    assert (log.offset_ms, log.lag_ms(62.2)) == (2_700, 500)
    assert log.last_audio_s == 60.1


def test_arrival_log_is_bounded() -> None:
    log = ArrivalLog(MULAW_8K, 0, now_s=0.0)
    for index in range(1, 20_001):
        log.add_audio(160, index / 50)
    assert len(log._entries) <= 4_096
    assert log.arrived_s(400_000) == 400.0
    assert log.arrived_s(340_000) == 340.0


class _Clock:
    """Stands in for time.monotonic."""

    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


async def test_idle_watch_fills_only_live_callers_that_fell_silent() -> None:
    clock, filled = _Clock(), []
    log = ArrivalLog(MULAW_8K, 0, now_s=clock.now_s)

    def fill(duration_ms: int) -> bool:
        filled.append(duration_ms)
        return True

    with patch("server.idle.time.monotonic", clock):
        watch = IdleWatch(1_000, log, fill)
        watch.start()
        clock.now_s += 5
        watch._check()
        assert filled == []  # nothing was sent yet: the call clock has not begun
        log.add_audio(8_000, clock.now_s)
        clock.now_s += 0.5
        watch._check()
        clock.now_s += 1.0
        watch._check()
        assert filled == []  # half a second behind: might just be late
        clock.now_s += 0.504
        watch._check()
        assert filled == [1_000]
        clock.now_s += 1.0
        watch._check()
        assert filled == [1_000, 1_000]
        log.add_audio(80_000, clock.now_s)
        clock.now_s += 5.0
        watch._check()
        assert filled == [1_000, 1_000]  # a recording sent ahead is never touched
        watch.stop()
        watch.stop()


async def test_idle_watch_is_off_by_default() -> None:
    watch = IdleWatch(0, ArrivalLog(MULAW_8K, 0, now_s=0.0), lambda _: True)
    watch.start()
    assert watch._timer is None


TEXTS = {
    "json": json.dumps({"audioContent": "".join(chr(97 + i % 26) for i in range(300))}).encode(),
    "base64": base64.b64encode(bytes(range(256))),
    "prose": b"the quick brown fox jumps over the lazy dog, again and again\r\n" * 6,
}


def _guard(encoding: AudioEncoding, data: bytes, size: int) -> TextGuard:
    guard = TextGuard(encoding)
    for chunk in split(data, [size]):
        guard.feed(chunk)
    return guard


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
@pytest.mark.parametrize("encoding", AudioEncoding)
@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_text_is_not_audio(text: bytes, encoding: AudioEncoding, size: int) -> None:
    with pytest.raises(InvalidAudioError, match=r"audio_content.*text.*raw bytes.*base64"):
        _guard(encoding, text, size)


def test_short_text_is_found_at_the_end() -> None:
    guard = TextGuard(AudioEncoding.MULAW)
    guard.feed(TEXTS["json"][:100])
    with pytest.raises(InvalidAudioError, match="first 100 bytes"):
        guard.end()


def test_text_behind_audio_is_nobodys_business() -> None:
    guard = TextGuard(AudioEncoding.LINEAR16)
    guard.feed(b"\0\0")
    guard.feed(TEXTS["prose"])
    guard.end()


SOUNDS = {
    "silence": (AudioEncoding.LINEAR16, bytes(1_000)),
    "noise": (AudioEncoding.LINEAR16, linear16(bursts([(100, 0.5)]))),
    "idle A-law, negative zero": (AudioEncoding.ALAW, b"\x55" * 1_000),
    "idle mu-law with an offset": (AudioEncoding.MULAW, b"\x7e\x7d\x7c\x7b" * 250),
    "half a wave of hum": (AudioEncoding.MULAW, bytes(range(0x20, 0x7F)) + bytes(range(0xA0, 0xFF)) * 3),
    "WAV header": (AudioEncoding.LINEAR16, b"RIFF\x24\x08\0\0WAVEfmt " + b"\x10\0\0\0" + b"A" * 100),
    "nothing": (AudioEncoding.MULAW, b""),
}


@pytest.mark.parametrize(("encoding", "data"), SOUNDS.values(), ids=SOUNDS.keys())
def test_sounds_are_not_text(encoding: AudioEncoding, data: bytes) -> None:
    for size in (1, 33, 10_000):
        _guard(encoding, data, size).end()


def test_flicker_counts_words_taken_back() -> None:
    flicker = FlickerCounter()
    steps = [("one two", 0), ("one to three", 1), ("one to three four", 0), ("one", 3), ("one two", 0)]
    assert [flicker.update("1-1", text, is_final=False) for text, _ in steps] == [count for _, count in steps]
    assert flicker.update("2-1", "else", is_final=False) == 0
    assert flicker.update("1-1", "", is_final=True) == 2
    assert flicker.update("1-1", "x", is_final=True) == 0


async def test_admission() -> None:
    admission = Admission(2, retry_after_s=3.0)
    with admission.admit():
        with admission.admit():
            with pytest.raises(CapacityError, match=r"all 2 calls.*max_concurrent_calls") as caught, admission.admit():
                pass
            assert caught.value.retry_after_s == 3.0
        with pytest.raises(ZeroDivisionError), admission.admit():
            _ = 1 / 0
        assert admission.num_active == 1
        waiting = asyncio.create_task(admission.wait_until_idle())
        await asyncio.sleep(0)
        assert not waiting.done()
        admission.refuse_new_calls()
        with pytest.raises(DrainingError), admission.admit():
            pass
    await waiting
    assert admission.num_active == 0


def _request(number: int, audio_ms: int, *, is_final: bool = True, num_alternatives: int = 1) -> DecodeRequest:
    return DecodeRequest(
        request_id=f"s/1-1/{number}",
        session_id="s",
        segment_id="1-1",
        channel_tag=1,
        revision=number,
        audio=np.zeros(audio_ms * 16, dtype=np.float32),
        is_final=is_final,
        hints=DecodeHints(language_code="auto", word_details=True, num_alternatives=num_alternatives),
    )


def _batch(*requests: DecodeRequest) -> Batch:
    return Batch(requests=requests, padded_audio_s=1.0)


def test_scripted_engine_grows_with_the_audio() -> None:
    engine = ScriptedEngine()
    engine.warm_up()
    interim, final = engine.transcribe(_batch(_request(1, 301, is_final=False), _request(2, 900, num_alternatives=3)))
    assert interim.alternatives[0].transcript == "word1 word2"
    assert interim.alternatives[0].words == ()
    assert [a.transcript for a in final.alternatives] == ["word1 word2 word3" + "?" * rank for rank in range(3)]
    assert [(w.start_ms, w.end_ms) for w in final.alternatives[0].words] == [(0, 300), (300, 600), (600, 900)]
    assert final.alternatives[0].language_code == "en"
    engine.release([("s", "1-1")])
    engine.close()
    assert engine.is_closed


def test_scripted_engine_fails_as_told() -> None:
    def script(request: DecodeRequest) -> str:
        if request.revision == 9:
            raise EngineError("nine")
        return counting_script(request)

    engine = ScriptedEngine("scripted:bad", script=script, fail_on={2}, raise_on={2})
    results = engine.transcribe(_batch(_request(1, 300), _request(2, 300), _request(9, 300)))
    assert [result.error for result in results] == [None, "request 2 fails, as the script says", "nine"]
    with pytest.raises(EngineError, match="batch 2"):
        engine.transcribe(_batch(_request(1, 300)))
    assert engine.transcribe(_batch(_request(1, 0)))[0].alternatives == ()


def test_log_lines_carry_their_fields() -> None:
    record = logging.makeLogRecord({"name": "server", "levelno": 20, "levelname": "INFO", "msg": "ended %d"})
    record.args = (7,)
    record.call_id = "c1"
    line = json.loads(JsonFormatter().format(record))
    assert {key: line[key] for key in ("level", "logger", "message", "call_id")} == {
        "level": "info",
        "logger": "server",
        "message": "ended 7",
        "call_id": "c1",
    }
    assert TextFormatter().format(record).endswith("server: ended 7 call_id=c1")
    try:
        raise ValueError("x")
    except ValueError as error:
        record.exc_info = (type(error), error, error.__traceback__)
    assert "ValueError: x" in json.loads(JsonFormatter().format(record))["exception"]
    assert "call_id=c1\nTraceback" in TextFormatter().format(record)
