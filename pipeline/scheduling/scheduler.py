"""Decides which requests go through the engine next. Pure: time is an argument, nothing waits here.

Rules:
1. Finals before interims; inside each kind the earliest deadline first.
2. Only the newest interim of a channel is kept. Finals are never dropped.
3. A batch holds requests of similar length, since the shorter ones are padded: it grows from the most
   urgent request by those nearest in length, within the limits of size and padded audio.
4. A batch that is not full waits for company, but no request waits longer than `max_wait_ms`.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from pipeline.types import CORE_SAMPLE_RATE_HZ, Batch, DecodeRequest

_MS_PER_S = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulingPolicy:
    """Limits of a batch and how urgent its kinds are."""

    max_batch_size: int = 8
    max_batch_audio_s: float = 240.0
    """Padded: longest request times number of requests."""
    max_wait_ms: int = 0
    """How long a batch that is not full may wait for company; 0 takes what is there."""
    final_deadline_ms: int = 300
    interim_deadline_ms: int = 500


@dataclass(slots=True)
class _Queued:
    request: DecodeRequest
    added_s: float
    deadline_s: float

    @property
    def urgency(self) -> tuple[bool, float]:
        return (not self.request.is_final, self.deadline_s)

    @property
    def audio_s(self) -> float:
        return len(self.request.audio) / CORE_SAMPLE_RATE_HZ


class Scheduler:
    """The queue of one engine. Not thread-safe: its owner locks."""

    def __init__(self, policy: SchedulingPolicy) -> None:
        self._policy = policy
        self._queued: dict[str, _Queued] = {}
        self._wait_s: dict[str, float] = {}

    def __len__(self) -> int:
        """Requests that wait."""
        return len(self._queued)

    def add(self, request: DecodeRequest, now_s: float) -> list[DecodeRequest]:
        """Queues a request; returns the older interims of its channel that it displaces."""
        displaced = [
            q.request
            for q in self._queued.values()
            if not q.request.is_final and q.request.channel_key == request.channel_key
        ]
        # An interim takes the place of the one it displaces: its channel has waited since then.
        added_s = min((self._queued.pop(old.request_id).added_s for old in displaced), default=now_s)
        deadline_ms = self._policy.final_deadline_ms if request.is_final else self._policy.interim_deadline_ms
        self._queued[request.request_id] = _Queued(request, added_s, added_s + deadline_ms / _MS_PER_S)
        return displaced

    def cancel_request(self, request_id: str) -> bool:
        """Drops a request that still waits; False when it is unknown or already with the engine."""
        return self._queued.pop(request_id, None) is not None

    def cancel(self, session_id: str) -> list[DecodeRequest]:
        """Drops all waiting requests of a session and returns them."""
        dropped = [q.request for q in self._queued.values() if q.request.session_id == session_id]
        for request in dropped:
            del self._queued[request.request_id]
        return dropped

    def drain(self) -> list[DecodeRequest]:
        """Drops everything that waits and returns it."""
        dropped = [q.request for q in self._queued.values()]
        self._queued.clear()
        return dropped

    def wait_s(self, now_s: float) -> float | None:
        """Seconds until a batch is due: 0 when one is, None when nothing waits."""
        if not self._queued:
            return None
        if len(self._queued) >= self._policy.max_batch_size:
            return 0.0
        oldest_s = min(q.added_s for q in self._queued.values())
        return max(0.0, oldest_s + self._policy.max_wait_ms / _MS_PER_S - now_s)

    def next_batch(self, now_s: float) -> Batch | None:
        """Takes the batch that is due, or None."""
        wait_s = self.wait_s(now_s)
        if wait_s is None or wait_s > 0:
            return None
        chosen = self._choose()
        for queued in chosen:
            request_id = queued.request.request_id
            del self._queued[request_id]
            self._wait_s[request_id] = now_s - queued.added_s
        longest_s = max(q.audio_s for q in chosen)
        return Batch(requests=tuple(q.request for q in chosen), padded_audio_s=longest_s * len(chosen))

    def complete(self, batch: Batch) -> tuple[float, ...]:
        """The engine is done with a batch; returns how long each of its requests had waited, in seconds."""
        return tuple(self._wait_s.pop(r.request_id, 0.0) for r in batch.requests)

    def _choose(self) -> list[_Queued]:
        first = min(self._queued.values(), key=lambda q: q.urgency)
        # Interims never ride in a batch of finals: their rows would hold the finals up.
        company = [q for q in self._queued.values() if q is not first and q.request.is_final == first.request.is_final]
        company.sort(key=lambda q: (abs(q.audio_s - first.audio_s), q.deadline_s))
        return self._fill(first, company)

    def _fill(self, first: _Queued, company: Iterable[_Queued]) -> list[_Queued]:
        chosen, longest_s = [first], first.audio_s
        for queued in company:
            longer_s = max(longest_s, queued.audio_s)
            fits = longer_s * (len(chosen) + 1) <= self._policy.max_batch_audio_s
            if len(chosen) < self._policy.max_batch_size and fits:
                chosen.append(queued)
                longest_s = longer_s
        return chosen
