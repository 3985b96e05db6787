"""grpcurl and `buf curl` drive a call through reflection from JSON lines."""

import asyncio
import base64
import json
import subprocess
import sys
from pathlib import Path

import pytest
from google.protobuf import json_format

from server.servicer import SERVICE_NAME
from talkpath.speech.v1 import speech_pb2 as pb
from tests.support.audio import bursts, linear16, split
from tests.support.server import finals_of, running_server

SPEECH = linear16(bursts([(300, 0), (1_200, 0.3), (800, 0)]))
METHOD = f"{SERVICE_NAME}/StreamingRecognize"
TOOLS = Path(sys.executable).parent


def _lines() -> bytes:
    config = {"encoding": "LINEAR16", "sampleRateHertz": 8000, "languageCode": "en-US"}
    messages = [{"streamingConfig": {"config": config, "interimResults": True}}]
    messages += [{"audioContent": base64.b64encode(chunk).decode()} for chunk in split(SPEECH, [1_600])]
    messages.append({"control": {"keepAlive": {}}})
    return "\n".join(json.dumps(message) for message in messages).encode()


def _commands(address: str) -> dict[str, list[str]]:
    return {
        "grpcurl": ["grpcurl", "-plaintext", "-H", "x-call-id: g1", "-d", "@", address, METHOD],
        "buf": [
            *("buf", "curl", "--protocol", "grpc", "--http2-prior-knowledge"),
            *("-H", "x-call-id: g1", "-d", "@-", f"http://{address}/{METHOD}"),
        ],
    }


async def _run(command: list[str], stdin: bytes) -> tuple[int, str, str]:
    process = await asyncio.create_subprocess_exec(
        str(TOOLS / command[0]),
        *command[1:],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    stdout, stderr = await asyncio.wait_for(process.communicate(stdin), 30)
    return process.returncode, stdout.decode(), stderr.decode()


def _messages(text: str) -> list[pb.StreamingRecognizeResponse]:
    """Parses JSON objects in a row; one tool writes camelCase names, the other those of the contract."""
    decoder, messages, position = json.JSONDecoder(), [], 0
    while (position := len(text) - len(text[position:].lstrip())) < len(text):
        message, position = decoder.raw_decode(text, position)
        messages.append(json_format.ParseDict(message, pb.StreamingRecognizeResponse()))
    return messages


@pytest.mark.parametrize("tool", ["grpcurl", "buf"])
async def test_a_call_from_a_pipe(tool: str) -> None:
    async with running_server() as address:
        code, stdout, stderr = await _run(_commands(address)[tool], _lines())
    assert code == 0, stderr
    messages = _messages(stdout)
    assert messages[0].call_started.call_id == "g1"
    (final,) = finals_of(messages)
    assert final.alternatives[0].transcript.startswith("word1 word2")
    assert final.end_reason == pb.RecognitionResult.SILENCE


@pytest.mark.parametrize("tool", ["grpcurl", "buf"])
async def test_tools_show_what_is_wrong(tool: str) -> None:
    wrong = json.dumps({"streamingConfig": {"config": {"encoding": "MULAW", "sampleRateHertz": 1}}}).encode()
    async with running_server() as address:
        code, _, stderr = await _run(_commands(address)[tool], wrong)
    assert code != 0
    assert "config.sample_rate_hertz: 1 is not supported" in stderr.replace("\\n", "\n")


async def test_grpcurl_lists_and_describes() -> None:
    async with running_server() as address:
        _, services, _ = await _run(["grpcurl", "-plaintext", address, "list"], b"")
        _, service, _ = await _run(["grpcurl", "-plaintext", address, "describe", SERVICE_NAME], b"")
        health = ["grpcurl", "-plaintext", address, "grpc.health.v1.Health/Check"]
        _, status, _ = await _run(health, b"")
    assert SERVICE_NAME in services.split()
    assert "rpc Recognize ( .talkpath.speech.v1.RecognizeRequest )" in service
    assert json.loads(status) == {"status": "SERVING"}
