import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.scheduling.scheduler import Scheduler, SchedulingPolicy
from pipeline.types import DecodeHints, DecodeRequest


def request(session="a", *, seconds=1.0, is_final=False, channel_tag=1, revision=1, segment=1):
    return DecodeRequest(
        request_id=f"{session}/{channel_tag}-{segment}/{revision}",
        session_id=session,
        segment_id=f"{channel_tag}-{segment}",
        channel_tag=channel_tag,
        revision=revision,
        audio=np.zeros(int(16_000 * seconds), np.float32),
        is_final=is_final,
        hints=DecodeHints(),
    )


def scheduler(**policy):
    return Scheduler(SchedulingPolicy(**{"max_batch_size": 4} | policy))


def ids(batch):
    return [r.request_id for r in batch.requests]


def test_finals_go_first_and_alone():
    queue = scheduler()
    queue.add(request("a"), 0.0)
    queue.add(request("b", is_final=True), 0.1)
    assert ids(queue.next_batch(0.2)) == ["b/1-1/1"]
    assert ids(queue.next_batch(0.2)) == ["a/1-1/1"]


def test_only_the_newest_interim_of_a_channel_is_kept():
    queue = scheduler()
    queue.add(request(revision=1), 0.0)
    queue.add(request(channel_tag=2), 0.0)
    displaced = queue.add(request(revision=2), 0.1)
    assert [r.revision for r in displaced] == [1]
    assert sorted(ids(queue.next_batch(0.2))) == ["a/1-1/2", "a/2-1/1"]


def test_a_final_displaces_the_interim_of_its_channel_but_no_final():
    queue = scheduler()
    queue.add(request(revision=1), 0.0)
    queue.add(request(revision=2, is_final=True), 0.0)
    queue.add(request(segment=2, is_final=True), 0.0)
    assert len(queue) == 2


def test_finals_have_batches_of_their_own_size():
    queue = scheduler(max_batch_size=8, max_final_batch_size=2)
    for session in "abc":
        queue.add(request(session, is_final=True), 0.0)
    assert ids(queue.next_batch(0.0)) == ["a/1-1/1", "b/1-1/1"]
    assert ids(queue.next_batch(0.0)) == ["c/1-1/1"]


def test_the_first_interim_of_an_utterance_goes_before_the_others():
    queue = scheduler(max_batch_size=1)
    queue.add(request("a", revision=2), 0.0)
    queue.add(request("b", revision=1), 0.1)
    assert ids(queue.next_batch(0.2)) == ["b/1-1/1"]


def test_a_channel_that_asks_again_keeps_its_place():
    queue = scheduler(max_batch_size=1)
    queue.add(request("a", revision=2), 0.0)
    queue.add(request("b", revision=2), 0.2)
    assert queue.cancel_request("a/1-1/2")
    queue.add(request("a", revision=3), 0.5)
    assert ids(queue.next_batch(0.6)) == ["a/1-1/3"]
    queue.add(request("a", revision=4), 0.6)
    assert ids(queue.next_batch(0.7)) == ["b/1-1/2"]


def test_free_lanes_share_what_waits():
    queue = scheduler(max_batch_size=8)
    for session in "abcde":
        queue.add(request(session), 0.0)
    assert len(queue.next_batch(0.0, 2).requests) == 3
    assert len(queue.next_batch(0.0, 1).requests) == 2


def test_two_interims_of_a_channel_are_never_decoded_at_once():
    queue = scheduler()
    queue.add(request("a", revision=1), 0.0)
    first = queue.next_batch(0.0)
    queue.add(request("a", revision=2), 0.1)
    assert queue.wait_s(0.2) is None
    assert queue.next_batch(0.2) is None
    queue.add(request("a", revision=3, is_final=True), 0.2)
    assert ids(queue.next_batch(0.2)) == ["a/1-1/3"]
    queue.complete(first)
    queue.add(request("a", revision=4), 0.3)
    assert ids(queue.next_batch(0.3)) == ["a/1-1/4"]


@settings(deadline=None, max_examples=40)
@given(st.integers(2, 30), st.floats(0.01, 0.2))
def test_under_load_every_channel_gets_its_share(num_channels, cost_s):
    queue = scheduler(max_batch_size=4)
    served = dict.fromkeys((f"call {n}" for n in range(num_channels)), 0)
    now_s, revision = 0.0, 1
    while now_s < 60:
        revision += 1
        for session in served:
            queue.add(request(session, revision=revision, seconds=0.1), now_s)
        batch = queue.next_batch(now_s)
        if batch is None:
            now_s += max(0.001, queue.wait_s(now_s))
            continue
        for r in batch.requests:
            served[r.session_id] += 1
        now_s += cost_s * len(batch.requests)
        queue.complete(batch, cost_s * len(batch.requests))
    assert max(served.values()) - min(served.values()) <= max(2, 0.3 * max(served.values()))
    assert min(served.values()) >= 60 / max(3.5, 1.5 * num_channels * cost_s)


def test_padded_audio_is_limited():
    queue = scheduler(max_batch_audio_s=50.0)
    for session in "abc":
        queue.add(request(session, seconds=20.0), 0.0)
    batch = queue.next_batch(0.0)
    assert len(batch.requests) == 2
    assert batch.padded_audio_s == 40.0


def test_a_batch_waits_for_company_but_not_longer_than_allowed():
    queue = scheduler(max_wait_ms=50, max_batch_size=2)
    assert queue.wait_s(0.0) is None
    queue.add(request("a"), 1.0)
    assert queue.next_batch(1.02) is None
    assert abs(queue.wait_s(1.02) - 0.03) < 1e-9
    assert queue.next_batch(1.06) is not None
    queue.add(request("c"), 2.0)
    queue.add(request("d"), 2.0)
    assert queue.wait_s(2.0) == 0.0


def test_cancelling():
    queue = scheduler()
    queue.add(request("a"), 0.0)
    queue.add(request("b"), 0.0)
    queue.add(request("b", is_final=True, segment=2), 0.0)
    assert queue.cancel_request("a/1-1/1")
    assert not queue.cancel_request("a/1-1/1")
    assert [r.segment_id for r in queue.cancel("b")] == ["1-2"]
    assert queue.next_batch(9.0) is None


def test_waits_are_reported_when_a_batch_is_complete():
    queue = scheduler()
    queue.add(request("a"), 1.0)
    queue.add(request("b"), 2.0)
    batch = queue.next_batch(2.5)
    assert sorted(queue.complete(batch)) == [0.5, 1.5]


REQUESTS = st.lists(
    st.tuples(st.sampled_from("abcdef"), st.booleans(), st.floats(0.1, 25.0), st.integers(1, 3)), max_size=40
)


@given(REQUESTS, st.integers(1, 8))
def test_every_final_comes_out_exactly_once(rows, max_batch_size):
    queue = scheduler(max_batch_size=max_batch_size, max_batch_audio_s=60.0)
    finals = []
    for number, (session, is_final, seconds, tag) in enumerate(rows):
        added = request(session, seconds=seconds, is_final=is_final, channel_tag=tag, segment=number)
        queue.add(added, float(number))
        finals += [added.request_id] if is_final else []
    taken = []
    while (batch := queue.next_batch(1_000.0)) is not None:
        assert len(batch.requests) <= max_batch_size
        assert len({r.is_final for r in batch.requests}) == 1
        assert len(batch.requests) == 1 or batch.padded_audio_s <= 60.0
        taken += [r.request_id for r in batch.requests if r.is_final]
    assert sorted(taken) == sorted(finals)


def two_memories(**policy):
    return Scheduler(SchedulingPolicy(**{"max_batch_size": 4} | policy), num_lanes=2, num_memories=2)


def interim_taken(queue, session, now_s, memory):
    """The first interim of an utterance, decoded on this lane."""
    queue.add(request(session), now_s)
    batch = queue.next_batch(now_s, memory=memory)
    queue.complete(batch)
    return batch


def test_an_utterance_stays_on_its_lane():
    queue = two_memories()
    assert interim_taken(queue, "a", 0.0, memory=1)
    queue.add(request("a", revision=2), 0.1)
    assert queue.home_of(request("a", revision=2)) == 1
    assert queue.next_batch(0.2, memory=0) is None
    assert queue.wait_s(0.2, memory=0) > 0.5
    assert queue.wait_s(0.2, memory=1) == 0.0
    assert ids(queue.next_batch(0.2, memory=1)) == ["a/1-1/2"]


def test_a_lane_takes_over_what_another_has_let_wait():
    queue = two_memories(interim_deadline_ms=500)
    interim_taken(queue, "a", 0.0, memory=1)
    queue.add(request("a", revision=2), 1.0)
    assert queue.next_batch(2.4, memory=0) is None
    assert ids(queue.next_batch(2.6, memory=0)) == ["a/1-1/2"]
    assert queue.home_of(request("a", revision=3)) == 0


def test_finals_and_new_utterances_go_anywhere():
    queue = two_memories()
    interim_taken(queue, "a", 0.0, memory=1)
    queue.add(request("a", revision=2, is_final=True), 0.1)
    assert ids(queue.next_batch(0.1, memory=0)) == ["a/1-1/2"]
    assert queue.home_of(request("a", revision=3)) is None
    queue.add(request("a", segment=2), 0.3)
    assert ids(queue.next_batch(0.3, memory=0)) == ["a/1-2/1"]


def test_a_lane_leaves_to_a_free_one_what_both_may_take():
    queue = two_memories()
    interim_taken(queue, "a", 0.0, memory=0)
    queue.add(request("a", revision=2), 0.1)
    for session in "bc":
        queue.add(request(session), 0.1)
    assert len(queue.next_batch(0.2, free_lanes=2, memory=0).requests) == 2
    assert len(queue.next_batch(0.2, free_lanes=1, memory=1).requests) == 1


def test_a_session_that_leaves_has_no_home():
    queue = two_memories()
    interim_taken(queue, "a", 0.0, memory=1)
    queue.cancel("a")
    assert queue.home_of(request("a", revision=2)) is None
