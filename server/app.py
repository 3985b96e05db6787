"""The composition root: the only place that picks engines and puts the rooms together."""

import asyncio
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from pipeline.config import SessionConfig
from pipeline.engines.base import Engine
from pipeline.scheduling.worker import Worker
from pipeline.session import RecognitionSession
from pipeline.types import AudioEncoding, AudioFormat
from server.addresses import require_bindable, split_address
from server.admission import Admission
from server.engines import load_lanes
from server.errors import StartupError
from server.lifecycle import Lifecycle, StopSignals
from server.messages import Terms
from server.servicer import SERVICE_NAME, SpeechServicer
from server.settings import ServerSettings, Settings
from server.telemetry import Telemetry
from talkpath.speech.v1 import speech_pb2_grpc

_TRANSPORT_LIMIT_FACTOR = 4
"""Messages up to this many times our limit get our own error, which says more than the transport's."""
_SWITCH_INTERVAL_S = 0.0005
"""The engine's threads give way to the calls' audio this often, instead of every 5 ms."""
_MAX_CONCURRENT_STREAMS = 10_000
"""A connection: admission decides how many calls there are, not the transport."""


class Server:
    """A server in this process, from bound port to stop."""

    def __init__(self, settings: Settings) -> None:
        """Binds the port. Raises StartupError when it is taken."""
        self._settings = settings
        self._grpc_server = grpc.aio.server(options=_options(settings.server))
        self.address = self._bind()
        """HOST:PORT, where port 0 was replaced by the one picked."""

    async def start(self, engines: Sequence[Engine] | None = None) -> Lifecycle:
        """Loads and warms the models (or takes `engines`), then serves.

        Raises:
            StartupError: a setting does not fit the models or the machine.
            TalkpathError: a model or component is missing.
        """
        with ExitStack() as undo:
            telemetry = Telemetry(self._settings.telemetry)
            undo.callback(telemetry.shutdown)
            workers: list[Worker] = []
            for lanes in [[e] for e in engines] if engines is not None else await self._load_lanes():
                workers.append(self._create_worker(lanes, telemetry))
                for engine in dict.fromkeys(lanes):
                    undo.callback(engine.close)
            terms = self._terms(workers)
            await asyncio.to_thread(self._warm_up, workers)
            undo.pop_all()
        for worker in workers:
            worker.start()
        lifecycle = self._assemble(workers, terms, telemetry)
        await lifecycle.start()
        return lifecycle

    def _bind(self) -> str:
        listen = self._settings.server.listen
        host, wanted_port = split_address("server.listen", listen)
        try:
            # gRPC would only say that it failed, and log it in its own words.
            require_bindable(host, wanted_port)
            port = self._grpc_server.add_insecure_port(listen)
        except OSError as error:
            raise StartupError(f"server.listen {listen} cannot be listened on: {error.strerror or error}") from None
        except RuntimeError:
            raise StartupError(f"server.listen {listen} cannot be listened on") from None
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    async def _load_lanes(self) -> list[Sequence[Engine]]:
        models = self._settings.models
        return [await asyncio.to_thread(load_lanes, name, models) for name in models.names]

    def _create_worker(self, lanes: Sequence[Engine], telemetry: Telemetry) -> Worker:
        policy = self._settings.scheduling.policy(lanes[0].info.device)
        worker = Worker(lanes, policy, telemetry.batch_done)
        telemetry.watch_queue(worker.info.model, lambda: worker.queue_length)
        return worker

    def _terms(self, workers: Sequence[Worker]) -> Terms:
        models = {worker.info.model: worker.info for worker in workers}
        language = self._settings.recognition.language_code
        for info in models.values():
            known = (*info.language_codes, *(("auto",) if info.can_detect_language else ()))
            if language and language not in known:
                choices = ", ".join(known)
                raise StartupError(
                    f"recognition.language_code {language!r} is not known to {info.model}; use one of {choices}"
                )
        defaults = self._settings.recognition.call_defaults()
        return Terms(models=models, defaults=defaults, limits=self._settings.server.limits())

    def _warm_up(self, workers: Sequence[Worker]) -> None:
        """Runs what calls will need once, so that a missing component shows now and not in a call."""
        for worker in workers:
            worker.warm_up()
        defaults = self._settings.recognition.call_defaults()
        audio_format = AudioFormat(encoding=AudioEncoding.MULAW, sample_rate_hz=8_000)
        config = SessionConfig(audio_format=audio_format, denoising=defaults.denoising, vad=defaults.vad)
        session = RecognitionSession("warm-up", config)
        session.receive_audio(bytes([0xFF]) * audio_format.sample_rate_hz)
        session.next_effect()
        session.close()

    def _assemble(self, workers: Sequence[Worker], terms: Terms, telemetry: Telemetry) -> Lifecycle:
        settings = self._settings.server
        admission = Admission(settings.max_concurrent_calls, settings.retry_after_s)
        by_model = {worker.info.model: worker for worker in workers}
        servicer = SpeechServicer(by_model, terms, settings, admission, telemetry)
        lifecycle = Lifecycle(settings, self._grpc_server, servicer, admission, workers, telemetry)
        speech_pb2_grpc.add_SpeechServicer_to_server(servicer, self._grpc_server)
        health_pb2_grpc.add_HealthServicer_to_server(lifecycle.health, self._grpc_server)
        health_name = health_pb2.DESCRIPTOR.services_by_name["Health"].full_name
        reflection.enable_server_reflection((SERVICE_NAME, health_name, reflection.SERVICE_NAME), self._grpc_server)
        return lifecycle


async def run(settings: Settings, announce: Callable[[str], None]) -> int:
    """Serves until signalled; `announce` gets the address when READY. Returns the exit code."""
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    server = Server(settings)
    signals = StopSignals()
    lifecycle = await server.start()
    signals.install()
    announce(server.address)
    return await lifecycle.serve_until_signalled(signals)


def _options(settings: ServerSettings) -> list[tuple[str, int]]:
    return [
        ("grpc.max_receive_message_length", settings.max_message_bytes * _TRANSPORT_LIMIT_FACTOR),
        ("grpc.max_send_message_length", -1),
        ("grpc.max_concurrent_streams", _MAX_CONCURRENT_STREAMS),
        ("grpc.so_reuseport", 0),  # else a second server on the same port would take half of the calls
        ("grpc.keepalive_time_ms", round(settings.keepalive_interval_s * 1000)),
        ("grpc.keepalive_timeout_ms", round(settings.keepalive_timeout_s * 1000)),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.min_ping_interval_without_data_ms", round(settings.min_client_ping_interval_s * 1000)),
    ]
