"""The async client SDK: calls, short recordings and server facts over gRPC."""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Sequence
from types import TracebackType
from typing import Any, Self

import grpc

from clients.call import Call, OpenStream, sending
from clients.errors import recognition_error
from clients.types import CallEvent, CallSettings, Recognition, ServerInfo
from clients.wire import WIRE_FORMAT, config_to_wire, endpointing_to_wire, read_result, read_server_info
from talkpath.speech.v1 import speech_pb2 as pb
from talkpath.speech.v1.speech_pb2_grpc import SpeechStub

KEEPALIVE_TIME_MS = 30_000
"""Between two pings of a live call; servers send away who pings more often than they allow."""
KEEPALIVE_TIMEOUT_MS = 10_000
"""A ping unanswered for this long ends the connection, so that a dead peer is noticed within 40 s."""
CHANNEL_OPTIONS = (
    ("grpc.keepalive_time_ms", KEEPALIVE_TIME_MS),
    ("grpc.keepalive_timeout_ms", KEEPALIVE_TIMEOUT_MS),
    ("grpc.keepalive_permit_without_calls", 0),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.max_receive_message_length", -1),
    # Channels of a pool need connections of their own: servers and proxies limit the streams of one connection.
    ("grpc.use_local_subchannel_pool", 1),
)
MESSAGE_OVERHEAD_BYTES = 64
"""Room for the fields around the audio of a message."""


class Recognizer:
    """Connections to one server, as an async context manager; serves any number of calls at once."""

    def __init__(
        self,
        address: str,
        *,
        credentials: grpc.ChannelCredentials | None = None,
        metadata: Sequence[tuple[str, str]] = (),
        num_connections: int = 1,
        max_message_bytes: int | None = None,
    ) -> None:
        """Connects with the first request. Make it inside a running event loop.

        Args:
            address: "HOST:PORT" of the server.
            credentials: TLS; None speaks plain text.
            metadata: Sent with every request, such as ("authorization", "Bearer ...").
            num_connections: Calls take turns on this many connections; take one for about 50 calls.
            max_message_bytes: Largest message to send; None asks the server once, before the first call.
        """
        self.address = address
        self._metadata = tuple(metadata)
        self._max_message_bytes = max_message_bytes
        self._channels = [_open_channel(address, credentials) for _ in range(num_connections)]
        self._stubs: list[Any] = [SpeechStub(channel) for channel in self._channels]
        self._num_calls = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends all connections, and with them all live calls."""
        await asyncio.gather(*(channel.close(None) for channel in self._channels))

    def call(self, settings: CallSettings) -> Call:
        """A call, to be entered with `async with`; `Call` describes its verbs."""
        return Call(settings, self._open_stream, WIRE_FORMAT)

    async def stream(
        self, audio: Iterable[bytes] | AsyncIterable[bytes], settings: CallSettings
    ) -> AsyncIterator[CallEvent]:
        """Plays `audio` as one call, as fast as it comes and the server takes it; yields the events to the end.

        Raises:
            RecognitionError: The server refused or broke the call. What `audio` raises is raised as it is.
        """
        async with self.call(settings) as call, sending(call, audio):
            async for event in call:
                yield event

    async def recognize(self, audio: bytes, settings: CallSettings) -> Recognition:
        """Recognises one short recording at once; `server_info` tells the longest that is accepted.

        Raises:
            RecognitionError: The server refused it.
        """
        request = pb.RecognizeRequest(
            config=config_to_wire(settings),
            audio_content=audio,
            endpointing=endpointing_to_wire(settings.endpointing),
        )
        try:
            response = await self._stubs[0].Recognize(request, metadata=self._metadata)
        except grpc.aio.AioRpcError as error:
            raise recognition_error(error) from error
        return Recognition(
            results=tuple(read_result(result) for result in response.results),
            audio_duration_ms=response.audio_duration.ToMilliseconds(),
        )

    async def server_info(self, *, timeout_s: float | None = None) -> ServerInfo:
        """What the server is and can do.

        Raises:
            RecognitionError: It could not be reached, or did not answer within `timeout_s`.
        """
        request = pb.GetServerInfoRequest()
        try:
            response = await self._stubs[0].GetServerInfo(request, metadata=self._metadata, timeout=timeout_s)
        except grpc.aio.AioRpcError as error:
            raise recognition_error(error) from error
        return read_server_info(response)

    async def _open_stream(self) -> OpenStream:
        if self._max_message_bytes is None:
            self._max_message_bytes = (await self.server_info()).limits.max_message_bytes
        stub = self._stubs[self._num_calls % len(self._stubs)]
        self._num_calls += 1
        return OpenStream(
            stream=stub.StreamingRecognize(metadata=self._metadata),
            max_audio_bytes=max(1, self._max_message_bytes - MESSAGE_OVERHEAD_BYTES),
        )


def _open_channel(address: str, credentials: grpc.ChannelCredentials | None) -> grpc.aio.Channel:
    if credentials is None:
        return grpc.aio.insecure_channel(address, options=CHANNEL_OPTIONS)
    return grpc.aio.secure_channel(address, credentials, options=CHANNEL_OPTIONS)
