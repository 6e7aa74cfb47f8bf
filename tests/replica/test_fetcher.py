"""Followers: they copy, take the high watermark, cut what has diverged, and ignore answers of the past."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ixion.broker.log.view import Bound
from ixion.broker.replica.delayed_delete_records import DeletionResult
from ixion.broker.replica.fetch import FetchTerms
from ixion.broker.replica.followed import Followed
from ixion.broker.replica.results import FetchResult, FetchWish
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k01_fetch import FetchRequest, FetchResponse
from tests.replica.nodes import KEY, SETTINGS, TOPIC_ID, DirectPeer, Nodes, codes


def run(path: Path, work: Callable[[Nodes], Awaitable[None]], count: int = 3, min_isr: int = 1) -> None:
    async def bounded() -> None:
        nodes = Nodes(path, count, min_isr)
        try:
            await asyncio.wait_for(work(nodes), 30)
        finally:
            await nodes.close()

    asyncio.run(bounded())


def test_followers_copy_and_acks_all_waits_for_them(tmp_path: Path) -> None:
    async def work(nodes: Nodes) -> None:
        await nodes.lead(1)
        over = nodes.nodes[1].produce(b"a", b"b")
        assert not over, "no follower has it yet"
        await nodes.settle()
        assert codes(over) == [ErrorCode.NONE]
        assert [node.values() for node in nodes.nodes.values()] == [[(0, 0, b"a"), (1, 0, b"b")]] * 3
        assert [node.partition.log.high_watermark for node in nodes.nodes.values()] == [2, 2, 2]

    run(tmp_path, work)


def test_a_follower_that_is_cut_off_holds_the_high_watermark_until_it_leaves_the_isr(tmp_path: Path) -> None:
    async def work(nodes: Nodes) -> None:
        await nodes.lead(1)
        await nodes.settle()
        nodes.cut_off.add(3)
        over = nodes.nodes[1].produce(b"a")
        await nodes.settle()
        assert not over
        nodes.clock.advance(10_001)
        nodes.nodes[1].replicas.shrink_isr()
        assert [isr for _, isr in nodes.wanted] == [(1, 2)]
        await nodes.settle()
        assert not over, "a smaller ISR counts when the controller has written it"
        nodes.grant()
        await nodes.settle(5)
        assert codes(over) == [ErrorCode.NONE]
        nodes.cut_off.clear()
        await nodes.settle()
        assert [isr for _, isr in nodes.wanted] == [(1, 2, 3)]

    run(tmp_path, work)


def test_a_broker_that_is_not_alive_does_not_join_the_isr(tmp_path: Path) -> None:
    async def work(nodes: Nodes) -> None:
        for node in nodes.nodes.values():
            node.replicas.is_alive = lambda broker: broker != 3
        await nodes.lead(1, isr=(1, 2))
        nodes.nodes[1].produce(b"a")
        await nodes.settle()
        assert nodes.nodes[3].values() == [(0, 0, b"a")]
        assert not nodes.wanted

    run(tmp_path, work)


def test_the_leader_learns_the_epochs_of_its_followers(tmp_path: Path) -> None:
    async def work(nodes: Nodes) -> None:
        await nodes.lead(1)
        await nodes.settle()
        assert {each.broker_id: each.broker_epoch for each in nodes.nodes[1].partition.followers.values()} == {
            2: 102,
            3: 103,
        }

    run(tmp_path, work)


def test_records_that_only_the_old_leader_had_are_truncated(tmp_path: Path) -> None:
    async def work(nodes: Nodes) -> None:
        await nodes.lead(1)
        nodes.nodes[1].produce(b"kept")
        await nodes.settle()
        nodes.cut_off.add(1)
        lost = nodes.nodes[1].produce(b"lost", b"lost too")
        await nodes.lead(2, told=(2, 3), isr=(2, 3))
        over = nodes.nodes[2].produce(b"new")
        await nodes.settle()
        assert codes(over) == [ErrorCode.NONE]
        nodes.cut_off.clear()
        await nodes.tell(1)
        await nodes.settle()
        assert codes(lost) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
        assert [node.values() for node in nodes.nodes.values()] == [[(0, 0, b"kept"), (1, 1, b"new")]] * 3

    run(tmp_path, work)


def test_two_fast_fail_overs_with_a_record_each_do_not_diverge(tmp_path: Path) -> None:
    """KIP-279: epochs 1, 2 and 3, each leader alone with what it wrote."""

    async def work(nodes: Nodes) -> None:
        await nodes.lead(1)
        nodes.nodes[1].produce(b"base")
        await nodes.settle()
        nodes.cut_off.update((1, 2, 3))
        nodes.nodes[1].produce(b"one", acks=1)
        await nodes.lead(2, told=(2,), isr=(2,))
        nodes.nodes[2].produce(b"two", acks=1)
        nodes.nodes[2].produce(b"two more", acks=1)
        await nodes.lead(3, told=(3,), isr=(3,))
        nodes.nodes[3].produce(b"three", acks=1)
        await nodes.lead(1, told=(1,), isr=(1,))
        nodes.nodes[1].produce(b"four", acks=1)
        nodes.cut_off.clear()
        for number in (2, 3):
            await nodes.tell(number)
        await nodes.settle()
        expected = [(0, 0, b"base"), (1, 0, b"one"), (2, 3, b"four")]
        assert [node.values() for node in nodes.nodes.values()] == [expected] * 3

    run(tmp_path, work)


def test_a_follower_that_restarts_does_not_cut_to_its_high_watermark(tmp_path: Path) -> None:
    """KAFKA-1211: it is one fetch behind, and the leader dies before it has fetched again."""

    async def work(nodes: Nodes) -> None:
        await nodes.lead(1)
        over = nodes.nodes[1].produce(b"a")
        while not over:
            await nodes.settle(1)
        # Both followers have the record; cut off before the next answer tells them the high watermark.
        nodes.cut_off.update((1, 2, 3))
        assert codes(over) == [ErrorCode.NONE]
        await nodes.nodes[2].restart()
        await nodes.lead(2, told=(2,), isr=(2, 3))
        assert nodes.nodes[2].values() == [(0, 0, b"a")]

    run(tmp_path, work)


def test_an_epoch_without_records_leaves_no_trace(tmp_path: Path) -> None:
    """KAFKA-7415: leaders that wrote nothing, with a follower ahead."""

    async def work(nodes: Nodes) -> None:
        await nodes.lead(1)
        nodes.nodes[1].produce(b"a")
        await nodes.settle()
        nodes.cut_off.add(3)
        nodes.nodes[1].produce(b"b", acks=1)
        await nodes.settle()
        await nodes.lead(3, told=(3,), isr=(3,))
        await nodes.lead(2, told=(2, 1), isr=(2, 1))
        await nodes.settle()
        nodes.cut_off.clear()
        await nodes.tell(3)
        over = nodes.nodes[2].produce(b"c")
        await nodes.settle()
        assert codes(over) == [ErrorCode.NONE]
        expected = [(0, 0, b"a"), (1, 0, b"b"), (2, 2, b"c")]
        assert [node.values() for node in nodes.nodes.values()] == [expected] * 3

    run(tmp_path, work)


def test_a_fetch_that_diverges_does_not_move_the_high_watermark(tmp_path: Path) -> None:
    """KAFKA-13141: with min.insync.replicas 2 nothing is acknowledged before the follower has cut and fetched again."""

    async def work(nodes: Nodes) -> None:
        await nodes.lead(1)
        nodes.nodes[1].produce(b"a")
        await nodes.settle()
        nodes.cut_off.add(2)
        nodes.nodes[1].produce(b"x", b"y", b"z", acks=1)
        await nodes.lead(2, told=(2,), isr=(2, 1))
        over = nodes.nodes[2].produce(b"b")
        nodes.cut_off.clear()
        nodes.asked.clear()
        await nodes.tell(1)
        await nodes.settle()
        assert codes(over) == [ErrorCode.NONE]
        first, second = [request for source, request, _ in nodes.asked if source == 1][:2]
        assert isinstance(first, FetchRequest)
        assert isinstance(second, FetchRequest)
        offsets = [request.topics[0].partitions[0].fetch_offset for request in (first, second)]
        assert offsets == [4, 1], "it asked from its own end, and cut to where the logs part"

    run(tmp_path, work, count=2, min_isr=2)


def test_a_follower_far_behind_starts_again_at_the_leaders_log_start(tmp_path: Path) -> None:
    async def work(nodes: Nodes) -> None:
        await nodes.lead(1, told=(1,), isr=(1,))
        for value in (b"a", b"b", b"c"):
            nodes.nodes[1].produce(value)
        nodes.nodes[1].partition.log.raise_log_start(2)
        await nodes.tell(2)
        await nodes.settle()
        assert nodes.nodes[2].values() == [(2, 0, b"c")]
        log = nodes.nodes[2].partition.log
        assert (log.log_start, log.high_watermark, log.end_offset) == (2, 3, 3)

    run(tmp_path, work, count=2)


def test_a_follower_takes_the_leaders_log_start(tmp_path: Path) -> None:
    async def work(nodes: Nodes) -> None:
        await nodes.lead(1)
        nodes.nodes[1].produce(b"a", b"b")
        await nodes.settle()
        nodes.nodes[1].partition.log.raise_log_start(1)
        await nodes.settle()
        assert nodes.nodes[2].partition.log.log_start == 1
        await nodes.settle()
        assert nodes.nodes[1].partition.low_watermark == 1

    run(tmp_path, work, count=2)


def test_a_fenced_follower_waits_for_its_next_role(tmp_path: Path) -> None:
    async def work(nodes: Nodes) -> None:
        await nodes.lead(1)
        await nodes.settle()
        await nodes.lead(1, told=(1,))
        await nodes.settle()
        fetcher = nodes.nodes[2].fetcher
        assert fetcher is not None
        assert KEY not in fetcher.followed
        await nodes.tell(2)
        over = nodes.nodes[1].produce(b"a")
        await nodes.settle()
        assert codes(over) == [ErrorCode.NONE]

    run(tmp_path, work, count=2)


def test_a_failed_append_is_tried_again_and_the_fetcher_lives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(nodes: Nodes) -> None:
        await nodes.lead(1)
        await nodes.settle()
        log = nodes.nodes[2].partition.log
        log.broken = "a write failed"
        over = nodes.nodes[1].produce(b"a")
        await nodes.settle()
        assert not over
        log.broken = ""
        await nodes.settle()
        assert codes(over) == [ErrorCode.NONE]

    run(tmp_path, work, count=2)


def test_min_insync_replicas_is_checked_before_and_after_the_append(tmp_path: Path) -> None:
    async def work(nodes: Nodes) -> None:
        await nodes.lead(1, isr=(1,))
        over = nodes.nodes[1].produce(b"a")
        assert codes(over) == [ErrorCode.NOT_ENOUGH_REPLICAS]
        assert nodes.nodes[1].values() == []
        await nodes.lead(1, isr=(1, 2))
        await nodes.settle()
        over = nodes.nodes[1].produce(b"a")
        await nodes.settle()
        assert codes(over) == [ErrorCode.NONE]

    run(tmp_path, work, count=2, min_isr=2)


def test_a_follower_on_a_dead_broker_does_not_hold_the_high_watermark(tmp_path: Path) -> None:
    """It was caught up when it left, and nothing is appended that would look at it again."""

    async def work(nodes: Nodes) -> None:
        live = {1, 2}
        for node in nodes.nodes.values():
            node.replicas.is_alive = lambda broker: broker in live
        await nodes.lead(1, isr=(1,))
        await nodes.settle()
        nodes.cut_off.add(2)
        await nodes.settle(5)
        nodes.refuse()
        over = nodes.nodes[1].produce(b"a")
        await nodes.settle()
        assert not over, "it is caught up and may join any moment"
        live.remove(2)
        nodes.nodes[1].replicas.look_at_followers()
        await nodes.settle(5)
        assert codes(over) == [ErrorCode.NONE]

    run(tmp_path, work, count=2)


def test_a_follower_that_fell_behind_lets_go_of_the_high_watermark_without_an_append(tmp_path: Path) -> None:
    async def work(nodes: Nodes) -> None:
        await nodes.lead(1, isr=(1,))
        await nodes.settle()
        nodes.cut_off.add(2)
        await nodes.settle(5)
        nodes.refuse()
        over = nodes.nodes[1].produce(b"a")
        nodes.clock.advance(10_001)
        nodes.nodes[1].replicas.shrink_isr()
        await nodes.settle(5)
        assert codes(over) == [ErrorCode.NONE]

    run(tmp_path, work, count=2)


def test_a_tool_that_compares_replicas_reads_from_a_follower(tmp_path: Path) -> None:
    async def work(nodes: Nodes) -> None:
        await nodes.lead(1)
        nodes.nodes[1].produce(b"a")
        await nodes.settle()
        for replica_id, code in ((-2, ErrorCode.NONE), (-1, ErrorCode.NOT_LEADER_OR_FOLLOWER)):
            terms = FetchTerms(replica_id=replica_id, max_wait_ms=0, min_bytes=1, max_bytes=1 << 20, bound=Bound.END)
            over: list[FetchResult] = []
            wish = FetchWish("t", TOPIC_ID, 0, 0, 1 << 20, -1, -1, -1)
            nodes.nodes[2].replicas.fetch(terms, [wish], over.extend)
            assert [result.code for result in over] == [code]
            assert bool(over[0].records) == (code == ErrorCode.NONE)

    run(tmp_path, work, count=2)


def test_a_new_epoch_does_not_cut_a_follower_to_its_high_watermark(tmp_path: Path) -> None:
    """KIP-101: the follower has an acknowledged record and an old high watermark, is cut off, and then must lead."""

    async def work(nodes: Nodes) -> None:
        await nodes.lead(1)
        over = nodes.nodes[1].produce(b"a")
        while not over:
            await nodes.settle(1)
        nodes.cut_off.update((1, 2))
        assert nodes.nodes[2].partition.log.high_watermark == 0, "one fetch behind"
        await nodes.lead(1, told=(2,))
        await nodes.settle()
        await nodes.lead(2, told=(2,), isr=(2,))
        assert nodes.nodes[2].values() == [(0, 0, b"a")]

    run(tmp_path, work, count=2)


def test_a_follower_joins_the_isr_at_the_start_of_the_leaders_epoch(tmp_path: Path) -> None:
    """KAFKA-7128: the high watermark of a new leader is old; records above it may be committed."""

    async def work(nodes: Nodes) -> None:
        await nodes.lead(1, isr=(1, 2))
        nodes.cut_off.add(3)
        over = nodes.nodes[1].produce(b"a", b"b")
        while not over:
            await nodes.settle(1)
        nodes.cut_off.update((1, 2))
        await nodes.lead(2, told=(2,), isr=(2,))
        partition = nodes.nodes[2].partition
        assert (partition.log.high_watermark, partition.epoch_start) == (2, 2)
        partition.log.high_watermark = 0  # as after a restart with an old checkpoint
        partition.follower_fetched(3, 0, 0)
        assert not nodes.wanted
        partition.follower_fetched(3, 2, 0)
        assert [isr for _, isr in nodes.wanted] == [(2, 3)]

    run(tmp_path, work)


def test_what_is_asked_for_is_the_same_object_until_it_changes(tmp_path: Path) -> None:
    async def work(nodes: Nodes) -> None:
        await nodes.lead(1)
        await nodes.settle()
        followed = Followed(nodes.nodes[2].partition)
        wish = followed.wish(100)
        assert followed.wish(100) is wish
        nodes.nodes[1].produce(b"a")
        await nodes.settle()
        followed.offset = nodes.nodes[2].partition.log.end_offset
        assert followed.wish(100).fetch_offset == 1
        assert followed.wish(200).partition_max_bytes == 200

    run(tmp_path, work, count=2)


def test_a_follower_on_a_dead_broker_does_not_hold_up_a_deletion_of_records(tmp_path: Path) -> None:
    async def work(nodes: Nodes) -> None:
        await nodes.lead(1)
        nodes.nodes[1].produce(b"a", b"b")
        await nodes.settle()
        nodes.cut_off.add(3)
        await nodes.settle(5)
        over: list[DeletionResult] = []
        nodes.nodes[1].replicas.delete_records(60_000, [("t", 0, 2)], over.extend)
        await nodes.settle()
        assert not over
        nodes.nodes[1].partition.is_alive = lambda broker: broker != 3
        nodes.nodes[1].replicas.look_at_followers()
        await nodes.settle(5)
        assert [result.code for result in over] == [ErrorCode.NONE]

    run(tmp_path, work)


@pytest.mark.parametrize(
    ("code", "asked"), [(ErrorCode.UNKNOWN_SERVER_ERROR, 1), (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 2)]
)
def test_a_leader_that_refuses_every_fetch_is_asked_again_after_a_pause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: ErrorCode, asked: int
) -> None:
    requests = 0

    async def refuse(*_: object) -> FetchResponse:
        nonlocal requests
        requests += 1
        await asyncio.sleep(0)
        return FetchResponse(throttle_time_ms=0, error_code=code, session_id=0, responses=())

    async def work(nodes: Nodes) -> None:
        await nodes.lead(1)
        fetcher = nodes.nodes[2].fetcher
        assert fetcher is not None
        monkeypatch.setattr(fetcher, "_settings", lambda: SETTINGS._replace(backoff_s=3_600.0))
        monkeypatch.setattr(DirectPeer, "ask", refuse)
        for _ in range(200):
            await asyncio.sleep(0)
        assert requests == asked, "a session that ended is replaced at once, but only once"

    run(tmp_path, work, count=2)


def seen_at(nodes: Nodes, number: int) -> tuple[int, int]:
    """How many bytes a consumer with a rack reads at a broker, and the high watermark that it gets."""
    terms = FetchTerms(replica_id=-1, max_wait_ms=0, min_bytes=1, max_bytes=1 << 20, bound=Bound.VISIBLE, rack="r")
    results: list[FetchResult] = []
    nodes.nodes[number].replicas.fetch(terms, [FetchWish("t", b"", 0, 0, 1 << 20, -1, -1, 0)], results.extend)
    assert results[0].code == ErrorCode.NONE
    return len(results[0].records), results[0].high_watermark


def test_followers_know_by_themselves_what_is_due(tmp_path: Path) -> None:
    async def work(nodes: Nodes) -> None:
        nodes.config = replace(nodes.config, delivery_delay_ms=500, message_timestamp_type="LogAppendTime")
        for node in nodes.nodes.values():
            node.logs.reconfigure("t")
        await nodes.lead(1)
        nodes.nodes[1].produce(b"a", b"b")
        await nodes.settle()
        nodes.clock.advance(300)
        nodes.nodes[1].produce(b"c")
        await nodes.settle()
        assert [seen_at(nodes, number) for number in (1, 2, 3)] == [(0, 0)] * 3
        nodes.clock.advance(200)
        await nodes.settle()
        assert [high for _, high in (seen_at(nodes, number) for number in (1, 2, 3))] == [2, 2, 2]
        assert len({size for size, _ in (seen_at(nodes, number) for number in (1, 2, 3))}) == 1
        await nodes.lead(2)  # the new leader keeps what it has shown
        assert nodes.nodes[2].partition.log.visible_end == 2
        assert nodes.nodes[1].partition.log.visible_end == 2
        nodes.clock.advance(300)
        await nodes.settle()
        assert [high for _, high in (seen_at(nodes, number) for number in (1, 2, 3))] == [3, 3, 3]

    run(tmp_path, work)


def test_records_that_replace_truncated_ones_are_not_due_at_once(tmp_path: Path) -> None:
    async def work(nodes: Nodes) -> None:
        nodes.config = replace(nodes.config, delivery_delay_ms=500, message_timestamp_type="LogAppendTime")
        await nodes.lead(1)
        nodes.nodes[1].produce(b"a")
        await nodes.settle()
        nodes.cut_off.add(1)
        nodes.nodes[1].produce(b"lost", b"lost", acks=1)
        nodes.clock.advance(500)
        await nodes.settle()
        assert nodes.nodes[1].partition.log.visible_end == 3
        await nodes.lead(2)
        nodes.cut_off.clear()
        nodes.nodes[2].produce(b"new", b"new")
        await nodes.settle()
        assert nodes.nodes[1].partition.log.end_offset == 3
        assert seen_at(nodes, 1)[1] == 1

    run(tmp_path, work)
