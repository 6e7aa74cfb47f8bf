"""A11: delayed records in a cluster. The sibling is copied before its partition, whatever is killed and cut off."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from ixion.broker.replica.results import AppendResult
from ixion.language.model.delay_names import sibling_id, sibling_of
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k01_fetch import FetchableTopicResponse, FetchResponse, PartitionData
from ixion.language.protocol.notation import Struct
from tests.delay.nodes import DelayNodes
from tests.delay.world import Sent, after
from tests.replica.nodes import KEY, SETTINGS, TOPIC_ID, Node, codes

SEEDS = int(os.environ.get("IXION_DELAY_SEEDS", "15"))


def run(path: Path, work: Callable[[DelayNodes], Awaitable[None]], count: int = 3) -> None:
    async def bounded() -> None:
        nodes = DelayNodes(path, count)
        try:
            await asyncio.wait_for(work(nodes), 120)
        finally:
            for schedules in nodes.schedules.values():
                schedules._stopped = True
            await nodes.close()

    asyncio.run(bounded())


def test_a_delayed_record_is_copied_and_delivered_by_the_next_leader(tmp_path: Path) -> None:
    async def work(nodes: DelayNodes) -> None:
        await nodes.lead(1)
        await nodes.settle()
        over: list[AppendResult] = []
        nodes.send(after(b"later", 1_000), (b"now", []), done=over.extend)
        await nodes.settle()
        assert codes(over) == [ErrorCode.NONE]
        assert [nodes.notes(number) for number in (1, 2, 3)] == [nodes.notes(1)] * 3
        nodes.cut_off.add(1)
        await nodes.lead(2, told=(2, 3), isr=(2, 3))
        await nodes.settle()
        assert nodes.waiting(2) == 1
        assert nodes.visible(2) == [(1, b"now")]
        nodes.clock.advance(1_000)
        await nodes.settle()
        assert nodes.visible(2) == [(1, b"now"), (2, b"later")]
        assert nodes.waiting(2) == 0
        nodes.cut_off.clear()
        await nodes.tell(1)
        await nodes.settle()
        assert nodes.nodes[1].values() == nodes.nodes[2].values()
        assert nodes.notes(1) == nodes.notes(2)

    run(tmp_path, work)


def test_a_delivery_that_no_other_replica_has_is_truncated_and_repeated(tmp_path: Path) -> None:
    async def work(nodes: DelayNodes) -> None:
        await nodes.lead(1)
        await nodes.settle()
        over: list[AppendResult] = []
        nodes.send(after(b"later", 1_000), done=over.extend)
        await nodes.settle()
        nodes.cut_off.add(1)
        nodes.clock.advance(1_000)
        await nodes.settle()
        assert nodes.nodes[1].values() == [(1, 0, b"later")], "delivered, but nobody else has it"
        assert nodes.visible(1) == []
        await nodes.lead(3, told=(2, 3), isr=(2, 3))
        await nodes.settle()
        assert nodes.visible(3) == [(1, b"later")]
        nodes.cut_off.clear()
        await nodes.tell(1)
        await nodes.settle()
        assert nodes.nodes[1].values() == nodes.nodes[3].values() == [(1, 1, b"later")]
        assert nodes.notes(1) == nodes.notes(3)
        await nodes.lead(1, isr=(1, 2, 3))
        await nodes.settle()
        assert nodes.waiting(1) == 0

    run(tmp_path, work)


def test_a_replica_that_lost_delayed_records_reports_a_shorter_log_to_an_election(tmp_path: Path) -> None:
    """The power fails on the last replica in sync, and its sibling loses more than its partition: the controller must
    elect another replica, which has them."""

    async def work(nodes: DelayNodes) -> None:
        await nodes.lead(1)
        await nodes.settle()
        over: list[AppendResult] = []
        nodes.send((b"now", []), done=over.extend)
        nodes.send(after(b"kept", 60_000), done=over.extend)
        nodes.send((b"now", []), (b"now", []), done=over.extend)
        await nodes.settle()
        whole = nodes.nodes[1].replicas.end_of_log(*KEY)
        assert whole == (nodes.nodes[1].partition.leader_epoch, 4), "records that do not wait need no notes"
        await nodes.lead(2, isr=(1, 2, 3))
        await nodes.settle()
        nodes.send(after(b"a", 60_000), (b"now", []), after(b"b", 60_000), (b"now", []), done=over.extend)
        await nodes.settle()
        assert codes(over) == [ErrorCode.NONE] * 4
        further = nodes.nodes[2].replicas.end_of_log(*KEY)
        assert further == (nodes.nodes[2].partition.leader_epoch, 8)
        sibling = nodes.nodes[1].logs.get(sibling_of(KEY[0]), KEY[1])
        assert sibling is not None
        for end in (6, 2):  # of the two delayed records of a batch, one or both are missing
            sibling.truncate_to(end)
            assert nodes.nodes[1].partition.log.end_offset == 8
            assert nodes.nodes[1].replicas.end_of_log(*KEY) == whole
        sibling.truncate_to(1)
        assert nodes.nodes[1].replicas.end_of_log(*KEY) == (whole[0], 1)

    run(tmp_path, work)


def test_a_follower_appends_nothing_that_its_sibling_does_not_cover(tmp_path: Path) -> None:
    async def work(nodes: DelayNodes) -> None:
        await nodes.lead(1)
        await nodes.settle()
        hold_siblings(nodes.nodes[1])
        over: list[AppendResult] = []
        nodes.send(after(b"later", 1_000), (b"now", []), done=over.extend)
        await nodes.settle()
        assert not over, "no follower has the note, so none has what it is about"
        assert nodes.nodes[2].partition.log.end_offset == 0
        del nodes.nodes[1].serve
        await nodes.settle()
        assert codes(over) == [ErrorCode.NONE]

    run(tmp_path, work)


def test_a_sibling_that_ends_without_a_note_there_holds_up_no_follower(tmp_path: Path) -> None:
    """Its last note was cut off: it ends at that offset until the broker restarts, but there is nothing to fetch."""

    async def work(nodes: DelayNodes) -> None:
        await nodes.lead(1)
        await nodes.settle()
        nodes.send((b"first", []), done=list[AppendResult]().extend)
        await nodes.settle()
        nodes.cut_off.add(2)
        answer_for(nodes.nodes[1], lambda topic_id: topic_id != TOPIC_ID)
        nodes.send(after(b"only its note is copied", 100_000), done=list[AppendResult]().extend)
        await nodes.settle()
        assert len(nodes.notes(3)) == 1
        nodes.cut_off = {1}
        await nodes.lead(3, told=(2, 3), isr=(2, 3))
        await nodes.settle()
        sibling = nodes.nodes[3].logs.get("__delay.t", 0)
        assert sibling is not None
        assert (nodes.notes(3), sibling.end_offset) == ([], 1)
        over: list[AppendResult] = []
        nodes.send((b"second", []), done=over.extend)
        await nodes.settle()
        assert codes(over) == [ErrorCode.NONE]
        assert nodes.nodes[2].values() == nodes.nodes[3].values()

    run(tmp_path, work)


def hold_siblings(node: Node) -> None:
    """This leader says nothing about its sibling from now on, as if its answers were full."""
    answer_for(node, lambda topic_id: topic_id == TOPIC_ID)


def answer_for(node: Node, wanted: Callable[[bytes], bool]) -> None:
    """This leader answers fetches for topics with some ids only."""
    serve = node.serve

    def without(request: Struct) -> Struct:
        answer = serve(request)
        if not isinstance(answer, FetchResponse):
            return answer
        kept = tuple(each for each in answer.responses if wanted(each.topic_id))
        return FetchResponse(throttle_time_ms=0, session_id=0, responses=kept)

    node.serve = without  # type: ignore[method-assign]


def test_a_follower_that_does_not_copy_them_keeps_delayed_records_out_and_stays_out_of_sync(tmp_path: Path) -> None:
    async def work(nodes: DelayNodes) -> None:
        nodes.cut_off.add(3)
        await nodes.lead(1)
        await nodes.settle()
        over: list[AppendResult] = []
        nodes.send((b"now", []), done=over.extend)
        nodes.send(after(b"later", 1_000), done=over.extend)
        assert codes(over) == [ErrorCode.NOT_ENOUGH_REPLICAS]
        assert "broker 3 is in sync and does not copy them" in str(over[0].message)
        await nodes.lead(1, isr=(1, 2))
        await nodes.settle()
        nodes.send(after(b"later", 1_000), done=over.extend)
        await nodes.settle()
        assert over[-1].code == ErrorCode.NONE
        # Broker 3 comes back as one that knows no siblings, such as an Apache Kafka broker.
        nodes.cut_off.clear()
        nodes.wanted.clear()
        partition = nodes.nodes[1].partition
        partition.follower_fetched(3, partition.log.end_offset, 0)
        assert nodes.wanted == []
        await nodes.settle()
        assert [isr for _, isr in nodes.wanted] == [(1, 2, 3)], "it copies them after all"

    run(tmp_path, work)


def test_under_a_leader_of_another_kind_the_partition_is_copied_alone(tmp_path: Path) -> None:
    """As Apache Kafka 3.9 answers: the id of the sibling is unknown, that of the topic is not."""

    async def work(nodes: DelayNodes) -> None:
        leader = nodes.nodes[1]
        serve = leader.serve

        def as_kafka(request: Struct) -> Struct:
            answer = serve(request)
            if not isinstance(answer, FetchResponse):
                return answer
            unknown = PartitionData(
                partition_index=0,
                error_code=int(ErrorCode.UNKNOWN_TOPIC_ID),
                high_watermark=-1,
                aborted_transactions=None,
                records=b"",
            )
            other = sibling_id(TOPIC_ID)
            return FetchResponse(
                throttle_time_ms=0,
                session_id=0,
                responses=tuple(
                    FetchableTopicResponse(topic_id=other, partitions=(unknown,)) if each.topic_id == other else each
                    for each in answer.responses
                ),
            )

        leader.serve = as_kafka  # type: ignore[method-assign]
        await nodes.lead(1)
        await nodes.settle()
        over: list[AppendResult] = []
        nodes.send((b"now", []), done=over.extend)
        await nodes.settle()
        assert codes(over) == [ErrorCode.NONE]
        assert nodes.nodes[2].values() == [(0, 0, b"now")]

    run(tmp_path, work)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a11_whatever_fails_each_acknowledged_record_is_delivered_once_and_none_early(
    tmp_path: Path, seed: int
) -> None:
    run(tmp_path, History(random.Random(seed)).work)


class History:
    """A random history: produces, deliveries, leaders that die, brokers that are cut off, and the power going off."""

    def __init__(self, chance: random.Random) -> None:
        self.random = chance
        self.due: dict[bytes, int] = {}  # when each record may be seen first
        self.acknowledged: set[bytes] = set()
        self.number = 0

    async def work(self, nodes: DelayNodes) -> None:
        self.nodes = nodes
        nodes.chance = self.random
        # Answers are full after a few batches, so partition and sibling get on at different speeds.
        limits = SETTINGS.limits._replace(max_bytes=self.random.choice((150, 400, 1 << 20)))
        nodes.settings = SETTINGS._replace(limits=limits)
        await nodes.lead(1)
        for _ in range(60):
            await self.step()
            self.look()
        await self.heal()
        nodes.clock.advance(100_000)
        for number in range(500):  # a turn of the loop delivers a few records, and a fetch copies a few batches
            nodes.clock.advance(20)  # a leader looks again at what is not on all replicas yet
            await nodes.settle()
            if number >= 20 and nodes.waiting(nodes.leader) == 0 and self.is_copied():
                break
        found = [value for _, value in nodes.visible(nodes.leader)]
        assert len(set(found)) == len(found), "delivered twice"
        assert self.acknowledged <= set(found), "lost"
        assert nodes.waiting(nodes.leader) == 0
        logs = [node.values() for node in nodes.nodes.values()]
        assert logs == [logs[0]] * len(logs)
        last = [nodes.notes(number)[-20:] for number in nodes.nodes]
        assert last == [last[0]] * len(last)

    def is_copied(self) -> bool:
        ends = [
            (node.partition.log.end_offset, len(self.nodes.notes(number))) for number, node in self.nodes.nodes.items()
        ]
        return ends == [ends[0]] * len(ends)

    async def step(self) -> None:
        chance, nodes = self.random, self.nodes
        what = chance.choices(
            ["send", "settle", "time", "cut", "join", "elect", "kill", "grant"], [30, 20, 15, 6, 6, 8, 5, 10]
        )[0]
        if what == "send":
            self.send()
        elif what == "settle":
            await nodes.settle(chance.randrange(1, 40))
        elif what == "time":
            nodes.clock.advance(chance.randrange(1, 400))
            await nodes.settle(chance.randrange(1, 10))
        elif what == "cut":
            nodes.cut_off.add(chance.choice(list(nodes.nodes)))
        elif what == "join":
            nodes.cut_off.clear()
            await self.tell_all()
        elif what == "elect":
            await self.elect()
        elif what == "kill":
            number = chance.choice([each for each in nodes.nodes if each != nodes.leader])
            await nodes.nodes[number].restart(clean=False)
            if number not in nodes.cut_off:
                await nodes.tell(number)
        else:
            nodes.grant()

    def send(self) -> None:
        sent: list[Sent] = []
        for _ in range(self.random.randrange(1, 4)):
            self.number += 1
            value = b"%d" % self.number
            if self.random.random() < 0.7:
                delay_ms = self.random.randrange(1, 600)
                self.due[value] = self.nodes.now_ms() + delay_ms
                sent.append(after(value, delay_ms))
            else:
                self.due[value] = 0
                sent.append((value, []))

        def done(results: list[AppendResult]) -> None:
            if results[0].code == ErrorCode.NONE:
                self.acknowledged |= {value for value, _ in sent}

        self.nodes.send(*sent, done=done)

    async def elect(self) -> None:
        """The leader dies, or only the controller thinks so: it does not learn of its successor."""
        nodes = self.nodes
        live = [each for each in nodes.isr if each != nodes.leader and each not in nodes.cut_off]
        if not live:
            return
        old = nodes.leader
        if self.random.random() < 0.7:
            nodes.cut_off.add(old)
            isr = tuple(each for each in nodes.isr if each != old)
            await nodes.lead(live[0], told=tuple(each for each in nodes.nodes if each not in nodes.cut_off), isr=isr)
            if self.random.random() < 0.5:
                await nodes.nodes[old].restart(clean=False)
        else:
            await nodes.lead(live[0], told=tuple(each for each in nodes.nodes if each not in nodes.cut_off))

    async def tell_all(self) -> None:
        nodes = self.nodes
        for number, node in nodes.nodes.items():
            partition = node.replicas.partitions.get(("t", 0))
            if partition is None or partition.leader_epoch < nodes.epoch:
                await nodes.tell(number)

    async def heal(self) -> None:
        nodes = self.nodes
        nodes.cut_off.clear()
        await self.tell_all()
        for _ in range(10):
            await nodes.settle()
            nodes.grant()
        self.look()

    def look(self) -> None:
        """Nothing that a consumer can see is early."""
        nodes = self.nodes
        if ("t", 0) in nodes.nodes[nodes.leader].replicas.partitions:
            for _, value in nodes.visible(nodes.leader):
                assert self.due[value] <= nodes.now_ms()
