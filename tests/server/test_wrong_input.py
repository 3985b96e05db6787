"""What callers do wrong, and the status that tells them."""

import grpc
import pytest
from google.rpc import error_details_pb2

from talkpath.speech.v1 import speech_pb2 as pb
from tests.support.audio import bursts, linear16
from tests.support.server import (
    audio,
    config,
    control,
    converse,
    details_of,
    local_server,
    rest_of,
    running_server,
    speech_stub,
    start,
)

MIB = 1024 * 1024
SPEECH = linear16(bursts([(300, 0), (600, 0.3)]))
TEXT = b'{"audioContent": "UklGRiQIAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAIAAA="}'

STREAMS = {
    "nothing": ([], "streaming_config", ["nothing"]),
    "no config": ([audio(SPEECH)], "streaming_config", ["audio_content", "first"]),
    "config twice": ([start(), audio(SPEECH), start()], "streaming_config", ["twice"]),
    "no encoding": ([start(pb.RecognitionConfig(sample_rate_hertz=8000))], "config.encoding", ["LINEAR16"]),
    "unknown encoding": ([start(config(encoding=42))], "config.encoding", ["42", "LINEAR16, MULAW, ALAW"]),
    "0 Hz": ([start(config(sample_rate_hertz=0))], "config.sample_rate_hertz", ["0 is not supported", "8000"]),
    "7 channels": ([start(config(audio_channel_count=7))], "config.audio_channel_count", ["7", "1 to 2"]),
    "unknown model": ([start(config(model="gpt"))], "config.model", ["'gpt'", "scripted:demo"]),
    "unknown language": ([start(config(language_code="tlh"))], "config.language_code", ["'tlh'", "en, de, fr"]),
    "alternatives": ([start(config(max_alternatives=30))], "config.max_alternatives", ["30", "0 to 3"]),
    "hangover": (
        [start(endpointing=pb.EndpointingConfig(hangover_ms=1))],
        "endpointing.hangover_ms",
        ["1 is outside 100 to 5000"],
    ),
    "negative gap": (
        [start(), control(gap=pb.Control.Gap(duration_ms=-1))],
        "control.gap.duration_ms",
        ["-1 is outside 0 to 3600000"],
    ),
    "empty request": ([start(), pb.StreamingRecognizeRequest()], "request", ["empty"]),
    "5 MB message": ([start(), audio(bytes(5 * MIB))], "audio_content", ["52428", "4194304 bytes"]),
    "text in audio": ([start(), audio(TEXT)], "audio_content", ["text, not LINEAR16", "raw bytes"]),
    "text in mulaw": ([start(config(encoding="MULAW")), audio(TEXT)], "audio_content", ["text, not MULAW"]),
    "other rate in WAV": (
        [
            start(),
            audio(
                b"RIFF\x24\x08\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x44\xac\0\0\x88\x58\x01\0\x02\0\x10\0data\0\x08\0\0"
            ),
        ],
        "audio_content",
        ["44100", "8000"],
    ),
}


@pytest.mark.parametrize(("requests", "field", "parts"), STREAMS.values(), ids=STREAMS.keys())
async def test_wrong_streams(requests: list, field: str, parts: list[str]) -> None:
    async with local_server() as server, speech_stub(server.address) as stub:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await converse(stub, requests, metadata=(("x-call-id", "wrong-1"),))
        error = caught.value
        # The server is as good as before.
        assert (await converse(stub, [start()]))[0].HasField("call_started")
        assert server.lifecycle.admission.num_active == 0
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT, error.details()
    assert dict(error.trailing_metadata())["x-call-id"] == "wrong-1"
    (detail,) = details_of(error)
    assert isinstance(detail, error_details_pb2.BadRequest)
    assert [violation.field for violation in detail.field_violations] == [field]
    assert all(part in error.details() for part in parts), error.details()
    assert all(part in detail.field_violations[0].description for part in parts)


async def test_far_too_large_messages_meet_the_transports_limit() -> None:
    async with running_server() as address, speech_stub(address) as stub:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await converse(stub, [start(), audio(bytes(17 * MIB))])
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert str(17 * MIB)[:5] in caught.value.details()
    assert str(16 * MIB) in caught.value.details()


async def test_any_chunk_up_to_the_limit_is_taken() -> None:
    data = bytes(4 * MIB - 16)
    async with running_server() as address, speech_stub(address) as stub:
        responses = await converse(stub, [start(config(sample_rate_hertz=48_000)), audio(data)])
    assert responses[0].HasField("call_started")


RECOGNIZES = {
    "no config": (pb.RecognizeRequest(audio_content=SPEECH), "config.encoding", ["not set"]),
    "too long": (
        pb.RecognizeRequest(config=config(), audio_content=bytes(8_000 * 2 * 11)),
        "audio_content",
        ["11.0 s", "limit of 10 s", "StreamingRecognize"],
    ),
    "too large": (pb.RecognizeRequest(config=config(), audio_content=bytes(5 * MIB)), "audio_content", ["4194304"]),
    "text": (pb.RecognizeRequest(config=config(), audio_content=TEXT), "audio_content", ["text"]),
}


@pytest.mark.parametrize(("request_", "field", "parts"), RECOGNIZES.values(), ids=RECOGNIZES.keys())
async def test_wrong_recordings(request_: pb.RecognizeRequest, field: str, parts: list[str]) -> None:
    async with running_server(server__max_recognize_s=10) as address, speech_stub(address) as stub:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.Recognize(request_)
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    (detail,) = details_of(caught.value)
    assert [violation.field for violation in detail.field_violations] == [field]
    assert all(part in caught.value.details() for part in parts), caught.value.details()


async def test_settings_that_never_come() -> None:
    async with running_server(server__config_timeout_s=0.05) as address, speech_stub(address) as stub:
        call = stub.StreamingRecognize()
        assert await call.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert "0.05 s (server.config_timeout_s)" in await call.details()


async def test_one_call_too_many() -> None:
    async with running_server(server__max_concurrent_calls=1) as address, speech_stub(address) as stub:
        live = stub.StreamingRecognize()
        await live.write(start())
        await live.read()
        for attempt in (
            converse(stub, [start()]),
            _recognize(stub),
        ):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await attempt
            assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            assert "all 1 calls" in caught.value.details()
            (detail,) = details_of(caught.value)
            assert isinstance(detail, error_details_pb2.RetryInfo)
            assert detail.retry_delay.ToMilliseconds() == 500
        await live.done_writing()
        assert await rest_of(live) == []
        assert (await converse(stub, [start()]))[0].HasField("call_started")


async def _recognize(stub: object) -> object:
    return await stub.Recognize(pb.RecognizeRequest(config=config(), audio_content=SPEECH))
