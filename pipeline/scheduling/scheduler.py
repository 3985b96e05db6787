"""Decides which requests go through the engine next. Pure: time is an argument, nothing waits here.

Rules:
1. Finals before the first interims of utterances, those before all other interims; inside each kind the earliest
   deadline first.
2. Only the newest interim of a channel is kept. Finals are never dropped.
3. An interim has waited since its channel was last served, whatever came of older ones: under load every channel gets
   its turn, and interims thin out evenly. A busy engine gives each channel only as many as leave room for finals.
4. A batch takes the most urgent requests within the limits of size and audio, and leaves their share to other lanes
   that have nothing to do.
5. Two interims of a channel are never decoded at the same time.
6. Interims of an utterance stay where its first one was decoded, since that lane holds what is settled of it. A lane
   with nothing else to do takes over one that has been let wait for long.
7. A batch that is not full waits for company, but no request waits longer than `max_wait_ms`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pipeline.scheduling.pacing import InterimPacer
from pipeline.types import CORE_SAMPLE_RATE_HZ, Batch, DecodeRequest

_MS_PER_S = 1000
_TAKEOVER_S = 1.0
"""Past its deadline an interim goes to any lane; it costs more there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulingPolicy:
    """Limits of a batch and how urgent its kinds are."""

    max_batch_size: int = 2
    max_final_batch_size: int = 1
    """A batch of finals is as late as its last one."""
    max_batch_audio_s: float = 240.0
    """Padded: longest request times number of requests."""
    max_wait_ms: int = 0
    """How long a batch that is not full may wait for company; 0 takes what is there."""
    final_deadline_ms: int = 300
    interim_deadline_ms: int = 500


SegmentKey = tuple[str, str]


@dataclass(slots=True)
class _Queued:
    request: DecodeRequest
    added_s: float
    deadline_s: float

    @property
    def urgency(self) -> tuple[int, float]:
        if self.request.is_final:
            return 0, self.deadline_s
        return (1 if self.request.revision == 1 else 2), self.deadline_s

    @property
    def audio_s(self) -> float:
        return len(self.request.audio) / CORE_SAMPLE_RATE_HZ


class Scheduler:
    """The queue of one engine. Not thread-safe: its owner locks."""

    def __init__(self, policy: SchedulingPolicy, num_lanes: int = 1, num_memories: int = 1) -> None:
        """`num_lanes` threads take batches, for engines that remember utterances in `num_memories` places."""
        self._policy = policy
        self._num_lanes = num_lanes
        self._num_memories = num_memories
        self._homes: dict[SegmentKey, int] = {}
        """Which memory holds an utterance, where there are several."""
        self._pacer = InterimPacer()
        self._queued: dict[str, _Queued] = {}
        self._wait_s: dict[str, float] = {}
        self._waiting_since_s: dict[tuple[str, int], float] = {}
        """By channel: when it first asked for an interim since it was last served."""
        self._decoding: set[tuple[str, int]] = set()
        """Channels of which an interim is with the engine."""

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
        for old in displaced:
            del self._queued[old.request_id]
        if request.is_final:
            self._waiting_since_s.pop(request.channel_key, None)
            since_s, deadline_ms = now_s, self._policy.final_deadline_ms
        else:
            since_s = self._waiting_since_s.setdefault(request.channel_key, now_s)
            deadline_ms = self._policy.interim_deadline_ms
        self._queued[request.request_id] = _Queued(request, now_s, since_s + deadline_ms / _MS_PER_S)
        return displaced

    def cancel_request(self, request_id: str) -> bool:
        """Drops a request that still waits; False when it is unknown or already with the engine."""
        return self._queued.pop(request_id, None) is not None

    def cancel(self, session_id: str) -> list[DecodeRequest]:
        """Drops all waiting requests of a session and returns them."""
        dropped = [q.request for q in self._queued.values() if q.request.session_id == session_id]
        for request in dropped:
            del self._queued[request.request_id]
        self._pacer.forget(session_id)
        for key in [key for key in self._waiting_since_s if key[0] == session_id]:
            del self._waiting_since_s[key]
        for segment in [segment for segment in self._homes if segment[0] == session_id]:
            del self._homes[segment]
        return dropped

    def drain(self) -> list[DecodeRequest]:
        """Drops everything that waits and returns it."""
        dropped = [q.request for q in self._queued.values()]
        self._queued.clear()
        return dropped

    def wait_s(self, now_s: float, memory: int = 0) -> float | None:
        """Seconds until a batch is due for a lane with this memory: 0 when one is, None with nothing to wait for."""
        ready = self._ready(now_s, memory)
        return self._company_wait_s(ready, now_s) if ready else self._paced_wait_s(now_s, memory)

    def next_batch(self, now_s: float, free_lanes: int = 1, memory: int = 0) -> Batch | None:
        """Takes the batch that is due, or None.

        Args:
            now_s: The time.
            free_lanes: Lanes with nothing to do, this one too.
            memory: Which of the memories this lane has.
        """
        ready = self._ready(now_s, memory)
        if not ready or self._company_wait_s(ready, now_s) > 0:
            return None
        chosen = self._choose(ready, free_lanes)
        for queued in chosen:
            self._take(queued, now_s, memory)
        longest_s = max(q.audio_s for q in chosen)
        return Batch(requests=tuple(q.request for q in chosen), padded_audio_s=longest_s * len(chosen))

    def home_of(self, request: DecodeRequest) -> int | None:
        """The memory that holds the request's utterance; None where any lane will do."""
        return None if request.is_final else self._homes.get(request.segment_key)

    def _take(self, queued: _Queued, now_s: float, memory: int) -> None:
        request = queued.request
        del self._queued[request.request_id]
        self._waiting_since_s.pop(request.channel_key, None)
        self._wait_s[request.request_id] = now_s - queued.added_s
        if request.is_final:
            self._homes.pop(request.segment_key, None)
            return
        if self._num_memories > 1:
            self._homes[request.segment_key] = memory
        self._decoding.add(request.channel_key)
        self._pacer.served(request.channel_key, now_s)

    def complete(self, batch: Batch, compute_s: float = 0.0) -> tuple[float, ...]:
        """The engine has spent `compute_s` on a batch; returns how long each request had waited, in seconds."""
        interims = [r.channel_key for r in batch.requests if not r.is_final]
        if interims:
            self._decoding.difference_update(interims)
            self._pacer.measured(len(interims), compute_s)
        return tuple(self._wait_s.pop(r.request_id, 0.0) for r in batch.requests)

    def _ready(self, now_s: float, memory: int) -> list[_Queued]:
        return [q for q in self._queued.values() if q.request.is_final or self._ready_s(q, memory) <= now_s]

    def _ready_s(self, queued: _Queued, memory: int) -> float:
        request = queued.request
        if request.channel_key in self._decoding:
            return float("inf")
        if request.revision == 1:
            return float("-inf")
        paced_s = self._pacer.ready_s(request.channel_key, self._num_lanes)
        is_elsewhere = self._homes.get(request.segment_key, memory) != memory
        return max(paced_s, queued.deadline_s + _TAKEOVER_S) if is_elsewhere else paced_s

    def _company_wait_s(self, ready: list[_Queued], now_s: float) -> float:
        if any(q.request.is_final for q in ready) or len(ready) >= self._policy.max_batch_size:
            return 0.0
        oldest_s = min(q.added_s for q in ready)
        return max(0.0, oldest_s + self._policy.max_wait_ms / _MS_PER_S - now_s)

    def _paced_wait_s(self, now_s: float, memory: int) -> float | None:
        earliest_s = min((self._ready_s(q, memory) for q in self._queued.values()), default=float("inf"))
        return None if earliest_s == float("inf") else max(0.0, earliest_s - now_s)

    def _choose(self, ready: list[_Queued], free_lanes: int) -> list[_Queued]:
        first, *others = sorted(ready, key=lambda q: q.urgency)
        # Interims never ride in a batch of finals: their rows would hold the finals up.
        company = [q for q in others if q.request.is_final == first.request.is_final]
        limit = self._policy.max_final_batch_size if first.request.is_final else self._policy.max_batch_size
        return self._fill(first, self._share(first, company, free_lanes)[: limit - 1])

    def _share(self, first: _Queued, company: Sequence[_Queued], free_lanes: int) -> list[_Queued]:
        """Of those that any lane may take, no more than leaves as many to each other free lane."""
        is_bound = {q.request.request_id: self.home_of(q.request) is not None for q in (first, *company)}
        num_unbound = sum(not bound for bound in is_bound.values())
        quota = -(-num_unbound // max(1, free_lanes)) - (not is_bound[first.request.request_id])
        shared = []
        for queued in company:
            if is_bound[queued.request.request_id]:
                shared.append(queued)
            elif quota > 0:
                shared.append(queued)
                quota -= 1
        return shared

    def _fill(self, first: _Queued, company: Iterable[_Queued]) -> list[_Queued]:
        chosen, longest_s = [first], first.audio_s
        for queued in company:
            longer_s = max(longest_s, queued.audio_s)
            fits = longer_s * (len(chosen) + 1) <= self._policy.max_batch_audio_s
            if fits:
                chosen.append(queued)
                longest_s = longer_s
        return chosen
