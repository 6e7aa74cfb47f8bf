"""The fetch session of a follower: what it names, and when it begins anew."""

from __future__ import annotations

from ixion.broker.replica.fetch_requests import FetchLimits, FetchRequests
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k01_fetch import FetchPartition, FetchRequest

ONE, TWO = bytes(16), bytes(range(16))
LIMITS = FetchLimits(max_wait_ms=500, min_bytes=1, max_bytes=1 << 20)


def wish(number: int, offset: int = 0) -> FetchPartition:
    return FetchPartition(partition=number, fetch_offset=offset, partition_max_bytes=1 << 20)


def named(request: FetchRequest) -> tuple[int, int, list[tuple[bytes, int]], list[tuple[bytes, int]]]:
    return (
        request.session_id,
        request.session_epoch,
        [(topic.topic_id, each.partition) for topic in request.topics for each in topic.partitions],
        [(topic.topic_id, number) for topic in request.forgotten_topics_data for number in topic.partitions],
    )


def test_after_the_first_request_only_changes_are_named() -> None:
    requests = FetchRequests(7)
    wishes = {(ONE, 0): wish(0), (ONE, 1): wish(1), (TWO, 0): wish(0)}
    first = requests.next(wishes, LIMITS, 55, 17)
    assert named(first) == (0, 0, [(ONE, 0), (ONE, 1), (TWO, 0)], [])
    assert (first.replica_state.replica_id, first.replica_state.replica_epoch, first.replica_id) == (7, 55, -1)
    requests.answered(9, 0)
    assert named(requests.next(wishes, LIMITS, 55, 17)) == (9, 1, [], [])
    requests.answered(9, 0)
    moved = {(ONE, 1): wish(1, offset=5), (TWO, 0): wishes[TWO, 0], (TWO, 1): wish(1)}
    assert named(requests.next(moved, LIMITS, 55, 17)) == (9, 2, [(ONE, 1), (TWO, 1)], [(ONE, 0)])


def test_any_doubt_begins_a_new_session() -> None:
    wishes = {(ONE, 0): wish(0)}
    for session_id, code in [
        (9, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
        (0, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
        (0, ErrorCode.NONE),  # the leader has no room for it any more
        (8, ErrorCode.NONE),  # of another session
    ]:
        requests = FetchRequests(7)
        requests.next(wishes, LIMITS, 55, 17)
        requests.answered(9, 0)
        requests.next(wishes, LIMITS, 55, 17)
        requests.answered(session_id, code)
        assert named(requests.next(wishes, LIMITS, 55, 17)) == (0, 0, [(ONE, 0)], [])


def test_an_older_leader_gets_the_replica_id_where_it_looks_for_it() -> None:
    request = FetchRequests(7).next({(ONE, 0): wish(0)}, LIMITS, 55, 14)
    assert (request.replica_id, request.replica_state.replica_id) == (7, -1)
