"""Two channels through a real server: told what they are, words on their own side, roles as given."""

import asyncio
import urllib.request

import numpy as np
import pytest

from talkpath.speech.v1 import speech_pb2 as pb
from tests.support.audio import bursts, linear16, split
from tests.support.server import audio, config, converse, finals_of, local_server, running_server, speech_stub, start

STEREO = config(audio_channel_count=2)


def call_of(first: np.ndarray, second: np.ndarray, **fields: object) -> list[pb.StreamingRecognizeRequest]:
    chunks = split(linear16(np.stack([first, second])), [3_200])
    return [start(STEREO, enable_scene_events=True, **fields), *(audio(chunk) for chunk in chunks)]


def scenes_of(responses: list[pb.StreamingRecognizeResponse]) -> list[tuple[int, int, bool]]:
    return [(r.scene.kind, r.scene.channel_tag, r.scene.is_over) for r in responses if r.WhichOneof("event") == "scene"]


async def test_a_mono_call_on_both_channels_is_recognised_once() -> None:
    mono = bursts([(500, 0), (1_200, 0.2), (900, 0), (1_500, 0.2), (900, 0)])
    async with running_server() as address, speech_stub(address) as stub:
        responses = await converse(stub, call_of(mono, mono * np.float32(0.9)))
    assert [final.channel_tag for final in finals_of(responses)] == [1, 1]
    copies = [(pb.Scene.DUPLICATE_CHANNEL, 2, is_over) for is_over in (False, True)]
    assert scenes_of(responses) == copies


async def test_an_echo_gives_no_words_on_the_other_side() -> None:
    # Like syllables: what a level detector takes for speech, with a level that changes.
    levels = np.random.default_rng(4).uniform(0.02, 0.4, 40)
    agent = bursts([(500, 0), *((80, level) for level in levels), (3_000, 0)])
    customer = bursts([(5_000, 0), (900, 0.2), (800, 0)], seed=2)[: len(agent)]
    echo = np.concatenate([np.zeros(480, np.float32), agent])[: len(agent)] * np.float32(0.05)
    async with running_server() as address, speech_stub(address) as stub:
        responses = await converse(stub, call_of(agent, customer + echo, interim_results=True))
    worded = [(final.channel_tag, len(final.alternatives) > 0) for final in finals_of(responses)]
    assert [tag for tag, has_words in worded if has_words] == [1, 2]
    assert (pb.Scene.CROSSTALK, 2, False) in scenes_of(responses)
    own = [final for final in finals_of(responses) if final.channel_tag == 2 and final.alternatives]
    assert 4_500 < own[0].result_start_offset.ToMilliseconds() < 5_100


@pytest.mark.parametrize("roles", [("AGENT", "CUSTOMER"), ("CUSTOMER", "AGENT")])
async def test_roles_stay_with_their_channels(roles: tuple[str, str]) -> None:
    """The caller names the roles, whatever the direction of the call; channel 1 is no agent by itself."""
    named = {tag: pb.CallInfo.ChannelRole.Value(role) for tag, role in enumerate(roles, start=1)}
    first = bursts([(300, 0), (900, 0.2), (2_500, 0)])
    second = bursts([(2_000, 0), (900, 0.2), (800, 0)], seed=2)
    async with running_server() as address, speech_stub(address) as stub:
        responses = await converse(stub, call_of(first, second, call=pb.CallInfo(channel_roles=named)))
    confirmed = responses[0].call_started.config.call.channel_roles
    assert dict(confirmed) == named
    spoken = [confirmed[final.channel_tag] for final in finals_of(responses)]
    assert spoken == [named[1], named[2]]


async def test_metrics_count_what_was_withheld_and_why() -> None:
    only_second = bursts([(600, 0.2), (2_000, 0)], seed=5)
    both = bursts([(800, 0.2), (900, 0)], seed=6)
    call = call_of(np.concatenate([only_second * 0, both]), np.concatenate([only_second, both]))
    async with (
        local_server(telemetry__prometheus_listen="127.0.0.1:0") as server,
        speech_stub(server.address) as stub,
    ):
        finals = finals_of(await converse(stub, call))
        url = f"http://127.0.0.1:{server.lifecycle.telemetry.prometheus_port}/metrics"
        metrics = await asyncio.to_thread(lambda: urllib.request.urlopen(url, timeout=5).read().decode())
    got = sorted((final.channel_tag, bool(final.alternatives)) for final in finals)
    assert got == [(1, True), (2, False), (2, True)]
    counted = [line for line in metrics.splitlines() if line.startswith("talkpath_final_withheld_total")]
    assert len(counted) == 1
    assert 'reason="duplicate"' in counted[0]
    assert counted[0].endswith(" 1.0")
