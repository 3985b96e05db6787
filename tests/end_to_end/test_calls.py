"""Whole calls through a real server with real weights."""

import asyncio
import statistics
import time
from dataclasses import replace
from itertools import groupby

import pytest

from clients.recognizer import Recognizer
from clients.types import Ack, CallSettings, Encoding, Result, SpeechActivity
from tests.support.audio import SAMPLE_CALLS, manifest, split

CROSSTALK = SAMPLE_CALLS / "crosstalk.wav"
BILLING = SAMPLE_CALLS / "billing.wav"
MULAW_STEREO = CallSettings(
    encoding=Encoding.MULAW,
    sample_rate_hz=8_000,
    num_channels=2,
    language_code="en-US",
    word_time_offsets=True,
    word_confidence=True,
)
BYTES_PER_MS = 16


def audio_of(path):
    """The mu-law bytes of a sample call, without its header."""
    file = path.read_bytes()
    return file[file.index(b"data") + 8 :]


def truth_of(path):
    return next(row for row in manifest(SAMPLE_CALLS) if row["path"] == path.name)


async def play(recognizer, chunks, settings=MULAW_STEREO):
    return [event async for event in recognizer.stream(chunks, settings)]


def finals(events):
    """Everything that finals say, but for the wall time that they took."""
    return [replace(e, latency_ms=None) for e in events if isinstance(e, Result) and e.is_final]


def by_channel(results):
    """Channels are independent of each other: only the order within one is fixed."""
    ordered = sorted(results, key=lambda r: r.channel_tag)
    return {tag: list(group) for tag, group in groupby(ordered, key=lambda r: r.channel_tag)}


@pytest.fixture(scope="module")
def reference(server_address):
    """Finals of the call sent in one piece, alone."""

    async def run():
        async with Recognizer(server_address) as recognizer:
            return by_channel(finals(await play(recognizer, [audio_of(CROSSTALK)])))

    return asyncio.run(run())


def test_the_reference_has_words_on_both_channels(reference):
    assert set(reference) == {1, 2}
    for results in reference.values():
        assert all(r.alternatives and r.alternatives[0].words for r in results)


@pytest.mark.parametrize("sizes", [[16], [20 * 16], [100 * 16], [1_000 * 16], [37, 1, 4_001]], ids=str)
async def test_finals_are_equal_for_every_chunking(server_address, reference, sizes):
    async with Recognizer(server_address) as recognizer:
        events = await play(recognizer, split(audio_of(CROSSTALK), sizes))
    assert by_channel(finals(events)) == reference


@pytest.mark.parametrize("num_calls", [4, 8])
async def test_finals_are_equal_for_many_calls_at_once(server_address, reference, num_calls):
    audio = audio_of(CROSSTALK)
    async with Recognizer(server_address) as recognizer:
        calls = await asyncio.gather(*(play(recognizer, split(audio, [1_600])) for _ in range(num_calls)))
    for events in calls:
        assert by_channel(finals(events)) == reference


async def test_interims_come_soon_and_often_and_finals_follow(server_address):
    """A call in real time: first interim within 1 s of speech, at least one a second, no stable text taken back."""
    audio, truth = audio_of(BILLING), truth_of(BILLING)
    speech = [(u["channel_tag"], u["start_s"], u["end_s"]) for u in truth["utterances"] if u["end_s"] < 21]
    events = []
    async with Recognizer(server_address) as recognizer, recognizer.call(MULAW_STEREO) as call:

        async def listen():
            async for event in call:
                events.append((time.monotonic() - started_s, event))

        async def speak():
            for index, chunk in enumerate(split(audio[: 22_000 * BYTES_PER_MS], [100 * BYTES_PER_MS])):
                await asyncio.sleep(max(0.0, started_s + (index + 1) * 0.1 - time.monotonic()))
                await call.send_audio(chunk)
            await call.half_close()

        started_s = time.monotonic()
        await asyncio.gather(speak(), listen())
    first_s = [first_interim_s(events, *utterance) for utterance in speech]
    # 0.35 s and 0.6 s on a quiet machine.
    assert statistics.median(first_s) <= 0.8
    assert max(first_s) <= 1.5
    for tag, start_s, end_s in speech:
        shown = [t for t, e in events if is_interim_of(e, tag, start_s) and start_s < t < end_s + 0.5]
        assert len(shown) >= int(end_s - start_s)


def is_interim_of(event, tag, start_s):
    of_channel = isinstance(event, Result) and event.channel_tag == tag
    return of_channel and not event.is_final and event.end_ms > start_s * 1_000


def first_interim_s(events, tag, start_s, end_s):
    shown = [t for t, e in events if is_interim_of(e, tag, start_s) and start_s < t < end_s + 1.0]
    assert shown, f"nothing was shown for the speech on channel {tag} at {start_s} s"
    return shown[0] - start_s


async def test_flush_makes_words_final_while_the_call_goes_on(server_address):
    audio = audio_of(CROSSTALK)
    half = len(audio) // 2 // BYTES_PER_MS * BYTES_PER_MS
    async with Recognizer(server_address) as recognizer, recognizer.call(MULAW_STEREO) as call:
        await call.send_audio(audio[:half])
        await call.flush()
        seen = []
        async for event in call:
            seen.append(event)
            if isinstance(event, Ack) and event.offset_ms >= half / BYTES_PER_MS - 1_000:
                break
        assert finals(seen)
        await call.send_audio(audio[half:])
        await call.half_close()
        rest = [event async for event in call]
    assert finals(rest)
    acks = [e.offset_ms for e in seen + rest if isinstance(e, Ack)]
    assert acks == sorted(acks)
    assert acks[-1] == pytest.approx(len(audio) / BYTES_PER_MS, abs=10)


async def test_a_resumed_call_keeps_its_clock(server_address):
    audio, offset_ms = audio_of(CROSSTALK), 60_000
    async with Recognizer(server_address) as recognizer:
        events = await play(recognizer, [audio], replace(MULAW_STEREO, resume_offset_ms=offset_ms))
        plain = await play(recognizer, [audio])
    assert [r.start_ms for r in finals(events)] == [r.start_ms + offset_ms for r in finals(plain)]
    starts = [e.offset_ms for e in events if isinstance(e, SpeechActivity)]
    assert min(starts) >= offset_ms


async def test_recognize_gives_what_a_stream_gives(server_address, reference):
    async with Recognizer(server_address) as recognizer:
        recognition = await recognizer.recognize(audio_of(CROSSTALK), MULAW_STEREO)
    found = by_channel(recognition.results)
    assert {t: [r.alternatives for r in rs] for t, rs in found.items()} == {
        t: [r.alternatives for r in rs] for t, rs in reference.items()
    }
