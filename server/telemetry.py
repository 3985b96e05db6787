"""Metrics and traces: what calls cost and how quick they are, never what is said in them.

Labels are few-valued on purpose (model, method, status); call ids are in spans only.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from threading import Thread
from wsgiref.simple_server import WSGIServer

from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.metrics import CallbackOptions, Meter, Observation
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricReader, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, DEFAULT_ON
from opentelemetry.trace import Span, SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from opentelemetry.util.types import AttributeValue
from prometheus_client import CollectorRegistry, start_http_server

from pipeline.events import RecognitionResult, SceneEvent, SessionEvent, SessionNotice
from pipeline.types import CORE_SAMPLE_RATE_HZ, BatchReport, DecodeRequest, DecodeResult
from server.addresses import split_address
from server.errors import StartupError
from server.flicker import FlickerCounter
from server.settings import TelemetrySettings

_SCOPE = "talkpath"
_LATENCY_BUCKETS_S = (0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0)
_WAIT_BUCKETS_S = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
_RTF_BUCKETS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
_BATCH_BUCKETS = (1, 2, 4, 8, 16, 32, 64, 128)
_MS_PER_S = 1000


class _Instruments:
    """Every metric, once."""

    def __init__(self, meter: Meter) -> None:
        self.calls_active = meter.create_up_down_counter("talkpath.calls.active", description="Live calls")
        self.calls = meter.create_counter("talkpath.calls", description="Calls that ended, by status")
        self.notices = meter.create_counter("talkpath.notices", description="What callers were told, by code")
        self.scenes = meter.create_counter(
            "talkpath.scenes", description="What else than speech was heard, by kind, once it was over"
        )
        self.audio = meter.create_counter("talkpath.audio", unit="s", description="Audio taken in")
        self.decode_rtf = meter.create_histogram(
            "talkpath.decode.rtf",
            description="Compute time of a batch by its audio",
            explicit_bucket_boundaries_advisory=_RTF_BUCKETS,
        )
        self.decode_failures = meter.create_counter("talkpath.decode.failures", description="Requests that failed")
        self.queue_wait = meter.create_histogram(
            "talkpath.decode.queue_wait",
            unit="s",
            description="Submitted to taken by the engine",
            explicit_bucket_boundaries_advisory=_WAIT_BUCKETS_S,
        )
        self.batch_size = meter.create_histogram(
            "talkpath.decode.batch_size",
            description="Requests in a batch",
            explicit_bucket_boundaries_advisory=_BATCH_BUCKETS,
        )
        self.first_interim = meter.create_histogram(
            "talkpath.first_interim.latency",
            unit="s",
            description="First speech received to first interim sent",
            explicit_bucket_boundaries_advisory=_LATENCY_BUCKETS_S,
        )
        self.finalization = meter.create_histogram(
            "talkpath.finalization.latency",
            unit="s",
            description="End of speech received to final sent",
            explicit_bucket_boundaries_advisory=_LATENCY_BUCKETS_S,
        )
        self.dropped = meter.create_counter(
            "talkpath.finals.without_words", description="Finals in which nothing is believed, by reason"
        )
        self.words_taken_back = meter.create_counter(
            "talkpath.interim.words_taken_back", description="Interim words that did not last; by final words: flicker"
        )
        self.withheld = meter.create_counter(
            "talkpath.final.withheld", description="Finals without words since the speech is not the channel's own"
        )
        self.final_words = meter.create_counter("talkpath.final.words", description="Words of finals")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultLatency:
    """What the servicer measured for one result, in seconds; None where it does not apply."""

    first_interim_s: float | None = None
    finalization_s: float | None = None


class CallTelemetry:
    """One call's span and its share of the metrics."""

    def __init__(self, instruments: _Instruments, span: Span, method: str) -> None:
        self._instruments = instruments
        self._span = span
        self._method = method
        self._model = ""
        self._flicker = FlickerCounter()
        instruments.calls_active.add(1, {"method": method})

    def started(self, call_id: str, model: str) -> None:
        """The settings of the call are known."""
        self._model = model
        self._span.set_attributes({"talkpath.call_id": call_id, "talkpath.model": model})

    def requested(self, request: DecodeRequest) -> None:
        """A decode was asked for."""
        attributes: dict[str, AttributeValue] = {
            "request_id": request.request_id,
            "is_final": request.is_final,
            "audio_s": len(request.audio) / CORE_SAMPLE_RATE_HZ,
        }
        self._span.add_event("decode requested", attributes)

    def answered(self, result: DecodeResult) -> None:
        """The engine answered."""
        failed = result.error is not None
        self._span.add_event("decode answered", {"request_id": result.request_id, "failed": failed})
        if result.dropped is not None:
            self._instruments.dropped.add(1, {"model": self._model, "reason": result.dropped.value})

    def sent(self, event: SessionEvent, latency: ResultLatency) -> None:
        """An event went out to the caller."""
        if isinstance(event, SessionNotice):
            self._instruments.notices.add(1, {"model": self._model, "code": event.code.value})
        if isinstance(event, SceneEvent) and event.is_over:
            self._instruments.scenes.add(1, {"model": self._model, "kind": event.kind.value})
        if not isinstance(event, RecognitionResult):
            return
        labels = {"model": self._model}
        transcript = event.alternatives[0].transcript if event.alternatives else ""
        taken_back = self._flicker.update(event.result_id, transcript, is_final=event.is_final)
        self._instruments.words_taken_back.add(taken_back, labels)
        if event.is_final:
            self._instruments.final_words.add(len(transcript.split()), labels)
            if event.withheld is not None:
                reason = event.withheld.value.lower()
                self._instruments.withheld.add(1, {**labels, "reason": reason})
            self._span.add_event("final sent", {"result_id": event.result_id})
        if latency.first_interim_s is not None:
            self._instruments.first_interim.record(latency.first_interim_s, labels)
        if latency.finalization_s is not None:
            self._instruments.finalization.record(latency.finalization_s, labels)

    def finished(self, status: str, audio_ms: int) -> None:
        """The call ended with a gRPC status ("OK", "CANCELLED", ...)."""
        self._instruments.calls_active.add(-1, {"method": self._method})
        self._instruments.calls.add(1, {"method": self._method, "status": status})
        self._instruments.audio.add(audio_ms / _MS_PER_S, {"model": self._model})
        self._span.set_attributes({"rpc.grpc.status": status, "talkpath.audio_ms": audio_ms})
        if status not in ("OK", "CANCELLED"):
            self._span.set_status(Status(StatusCode.ERROR))
        self._span.end()


class Telemetry:
    """This process's metrics and traces. Raises StartupError when the Prometheus port is taken."""

    def __init__(self, settings: TelemetrySettings, span_exporter: SpanExporter | None = None) -> None:
        """`span_exporter` replaces the OTLP exporter, for tests."""
        self._registry = CollectorRegistry()
        resource = Resource.create({"service.name": "talkpath-server"})
        self._meters = MeterProvider(self._readers(settings), resource=resource, shutdown_on_exit=False)
        self._meter = self._meters.get_meter(_SCOPE)
        self._instruments = _Instruments(self._meter)
        exporter = span_exporter or _otlp_span_exporter(settings)
        sampler = ALWAYS_OFF if exporter is None else DEFAULT_ON
        self._tracers = TracerProvider(sampler, resource=resource, shutdown_on_exit=False)
        if exporter is not None:
            self._tracers.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._tracers.get_tracer(_SCOPE)
        self._endpoint = self._serve(settings)

    @property
    def prometheus_port(self) -> int | None:
        """Where the metrics endpoint listens."""
        return None if self._endpoint is None else self._endpoint[0].server_port

    def begin_call(self, method: str, headers: Mapping[str, str]) -> CallTelemetry:
        """A call began; the record must be told when it is finished. `headers` may hold a W3C `traceparent`."""
        parent = TraceContextTextMapPropagator().extract(headers)
        span = self._tracer.start_span(f"Speech/{method}", context=parent, kind=SpanKind.SERVER)
        return CallTelemetry(self._instruments, span, method)

    def batch_done(self, report: BatchReport) -> None:
        """Takes what a batch cost; called on workers' threads."""
        labels = {"model": report.model}
        if report.audio_s > 0:
            self._instruments.decode_rtf.record(report.compute_s / report.audio_s, labels)
        self._instruments.batch_size.record(report.num_requests, labels)
        self._instruments.decode_failures.add(report.num_failed, labels)
        for wait_s in report.queue_wait_s:
            self._instruments.queue_wait.record(wait_s, labels)

    def watch_queue(self, model: str, queue_length: Callable[[], int]) -> None:
        """Shows how many requests wait for an engine."""

        def observe(_: CallbackOptions) -> Iterable[Observation]:
            yield Observation(queue_length(), {"model": model})

        self._meter.create_observable_gauge("talkpath.decode.queue_length", [observe], description="Requests that wait")

    def shutdown(self) -> None:
        """Sends what is pending and stops."""
        self._tracers.shutdown()
        self._meters.shutdown()
        if self._endpoint is not None:
            server, thread = self._endpoint
            server.shutdown()
            server.server_close()
            thread.join()

    def _readers(self, settings: TelemetrySettings) -> list[MetricReader]:
        readers: list[MetricReader] = []
        if settings.prometheus_listen:
            readers.append(PrometheusMetricReader(registry=self._registry, scope_info_enabled=False))
        if settings.otlp_endpoint:
            exporter = OTLPMetricExporter(endpoint=settings.otlp_endpoint, insecure=_is_plain(settings.otlp_endpoint))
            readers.append(PeriodicExportingMetricReader(exporter))
        return readers

    def _serve(self, settings: TelemetrySettings) -> tuple[WSGIServer, Thread] | None:
        if not settings.prometheus_listen:
            return None
        host, port = split_address("telemetry.prometheus_listen", settings.prometheus_listen)
        try:
            return start_http_server(port, host, self._registry)
        except OSError as error:
            reason = error.strerror or str(error)
            raise StartupError(
                f"telemetry.prometheus_listen {settings.prometheus_listen} cannot be listened on: {reason}"
            ) from None


def _otlp_span_exporter(settings: TelemetrySettings) -> SpanExporter | None:
    if not settings.otlp_endpoint:
        return None
    return OTLPSpanExporter(endpoint=settings.otlp_endpoint, insecure=_is_plain(settings.otlp_endpoint))


def _is_plain(endpoint: str) -> bool:
    return not endpoint.startswith("https://")
