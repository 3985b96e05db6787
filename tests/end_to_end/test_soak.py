"""A long call costs no more at its end than at its beginning: time and memory stay flat.

Nine minutes here; `TALKPATH_SOAK_MINUTES=60 pytest -s tests/end_to_end/test_soak.py` for an hour.
"""

import asyncio
import os
import time
from statistics import median

import grpc
import psutil
import pytest

from pipeline.engines.hosting.host import IDLE_S
from talkpath.speech.v1 import speech_pb2 as pb
from tests.support.audio import SAMPLE_CALLS, encode_mulaw, load
from tests.support.server import audio, finals_of, speech_stub

pytestmark = pytest.mark.slow

MINUTES = int(os.environ.get("TALKPATH_SOAK_MINUTES", "9"))
RATE_HZ = 8_000
CHUNK_BYTES = RATE_HZ
AUDIO_BYTES = 60 * RATE_HZ
WARM_UP_MINUTES = 3
"""Until buffers and caches have their size."""
MAX_GROWTH = 0.02
"""From the first third to the last."""
MAX_SLOWER = 1.5
"""A shared machine has slow minutes."""


def memory_of(server: psutil.Process) -> int:
    """Resident bytes of a server and its engines, what they share counted once."""
    family = [server, *server.children(recursive=True)]
    return sum(process.memory_full_info().pss for process in family)


def server_at(address: str) -> psutil.Process:
    port = int(address.rpartition(":")[2])
    for process in psutil.Process().children(recursive=True):
        if any(c.status == psutil.CONN_LISTEN and c.laddr.port == port for c in process.net_connections("tcp")):
            return process
    raise AssertionError("no server listens there")


async def test_an_hour_costs_sixty_times_a_minute(server_address: str) -> None:
    call = load(SAMPLE_CALLS / "billing.wav", RATE_HZ).sum(0)
    minute = (encode_mulaw(call) * 2)[:AUDIO_BYTES]
    settings = pb.StreamingConfig(
        config=pb.RecognitionConfig(encoding="MULAW", sample_rate_hertz=RATE_HZ, language_code="en-US"),
        interim_results=True,
    )
    server = server_at(server_address)
    seconds, resident, num_finals = [], [], []
    async with speech_stub(server_address) as stub:
        stream = stub.StreamingRecognize()
        await stream.write(pb.StreamingRecognizeRequest(streaming_config=settings))
        for _ in range(MINUTES):
            began_s = time.monotonic()
            for start in range(0, len(minute), CHUNK_BYTES):
                await stream.write(audio(minute[start : start + CHUNK_BYTES]))
            await stream.write(pb.StreamingRecognizeRequest(control=pb.Control(flush=pb.Control.Flush())))
            heard = await _until_acknowledged(stream, len(seconds) + 1)
            seconds.append(time.monotonic() - began_s)
            await asyncio.sleep(1.5 * IDLE_S)  # what is free then has been given back
            resident.append(memory_of(server))
            num_finals.append(len(finals_of(heard)))
        await stream.done_writing()
        while await stream.read() is not grpc.aio.EOF:
            pass
    resident = resident[WARM_UP_MINUTES:]
    third = len(resident) // 3
    growth = median(resident[-third:]) / median(resident[:third]) - 1
    print(
        f"{MINUTES} minutes: {seconds[0]:.1f} s for the first, {seconds[-1]:.1f} s for the last; memory {growth:+.2%}"
    )
    assert len(set(num_finals)) == 1
    assert growth < MAX_GROWTH
    assert median(seconds[-3:]) < MAX_SLOWER * median(seconds[:3])


async def _until_acknowledged(stream: grpc.aio.StreamStreamCall, minutes: int) -> list[pb.StreamingRecognizeResponse]:
    responses = []
    while True:
        response = await stream.read()
        assert response is not grpc.aio.EOF
        responses.append(response)
        if response.WhichOneof("event") == "ack" and response.ack.audio_offset.ToMilliseconds() >= minutes * 60_000:
            return responses
