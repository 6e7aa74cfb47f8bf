"""A directory in which groups and transactional ids are kept by the rule of ixion 0.1, and what is known of them.

Names are drawn. Some groups have members, by both protocols; one transaction is open and has offsets of a group.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from ixion.broker.coordinators.misplaced import find, living, name_of
from ixion.broker.metadata.placement_node import Placement
from ixion.broker.replica.internal_topic import GROUP_OFFSETS, TRANSACTION_STATE
from ixion.broker.startup.broker import Broker as RealBroker
from ixion.broker.startup.parts import Parts
from ixion.language.model.placement import masked_partition_of, partition_of
from ixion.language.protocol.messages.k09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from ixion.language.protocol.messages.k10_find_coordinator import FindCoordinatorRequest
from ixion.language.protocol.messages.k25_add_offsets_to_txn import AddOffsetsToTxnRequest
from ixion.language.protocol.messages.k28_txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from ixion.language.protocol.messages.k68_consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ixion.language.protocol.registry import ApiKey
from ixion.testing import Broker
from tests.apis.group_kit import commit_request, lone_member
from tests.apis.raw import Raw
from tests.apis.txn_kit import end, init

OFFSETS, TRANSACTIONS = 7, 5  # partitions
SETTINGS = {
    "offsets.topic.num.partitions": OFFSETS,
    "transaction.state.log.num.partitions": TRANSACTIONS,
    "background.threads": 1,
    "num.recovery.threads.per.data.dir": 1,
    "log.cleaner.enable": False,
    "group.consumer.session.timeout.ms": 60_000,
    "group.consumer.max.session.timeout.ms": 60_000,
}
STATIC = 30_000  # classic members outlive the restarts


@dataclass(slots=True)
class Known:
    offsets: dict[str, int] = field(default_factory=dict)  # by group
    classic: dict[str, str] = field(default_factory=dict)  # group -> its member
    consumer: dict[str, int] = field(default_factory=dict)  # group -> the epoch of its member "m"
    producers: dict[str, tuple[int, int]] = field(default_factory=dict)  # transactional id -> producer id, epoch
    open: tuple[str, str, int] = ("", "", -1)  # transactional id, group, pending offset


@contextmanager
def older_rule() -> Iterator[None]:
    """Brokers that start meanwhile work as ixion 0.1 did."""

    async def choose(parts: Parts) -> None:
        parts.placement = Placement.MASKED

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ixion.broker.startup.steps_service.choose_placement", choose)
        patch.setattr("ixion.broker.startup.steps_storage.choose_placement", choose)
        patch.setattr("ixion.broker.startup.steps_storage.check_placement", choose)
        yield


def make(path: Path, drawn: random.Random, count: int) -> Known:
    known = Known()
    names = [draw(drawn) for _ in range(count)]
    names += [draw(drawn, OFFSETS) for _ in range(4)]  # four that move for certain
    ids = [draw(drawn) for _ in range(count // 4)] + [draw(drawn, TRANSACTIONS), draw(drawn, TRANSACTIONS)]
    with older_rule(), Broker(SETTINGS, data=path) as broker, Raw(broker.bootstrap) as raw:
        broker.create_topic("t", 3)
        for kind in range(2):
            raw.ask(ApiKey.FIND_COORDINATOR, 2, FindCoordinatorRequest(key="any", key_type=kind))
        for offset, name in enumerate(names, 100):
            for each in (offset - 50, offset):  # the later one counts
                answer = raw.ask(ApiKey.OFFSET_COMMIT, 7, commit_request(name, {("t", 0): each}))
                assert answer.topics[0].partitions[0].error_code == 0
            known.offsets[name] = offset
        for name in (*names[:2], names[-1]):
            known.consumer[name] = beat(raw, name, 0).member_epoch
        for name in (*names[2:4], names[-2]):
            known.classic[name] = lone_member(raw, name)
        for name in ids:
            known.producers[name] = init(raw, name)
        commit_open(raw, known, ids[-1], names[-3])
    return known


def draw(drawn: random.Random, moves_of: int = 0) -> str:
    """A name; with `moves_of` one that belongs to another of so many partitions now."""
    while True:
        name = f"{drawn.choice(['app', 'größe', ''])}{drawn.getrandbits(48):x}"
        if not moves_of or masked_partition_of(name, moves_of) != partition_of(name, moves_of):
            return name


def beat(raw: Raw, name: str, epoch: int) -> Any:
    joining: dict[str, Any] = {"topic_partitions": (), "subscribed_topic_names": ("t",), "rebalance_timeout_ms": 60_000}
    more = joining if epoch == 0 else {}
    request = ConsumerGroupHeartbeatRequest(group_id=name, member_id="m", member_epoch=epoch, **more)
    answer = raw.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, request)
    assert answer.error_code == 0, answer
    return answer


def commit_open(raw: Raw, known: Known, name: str, group: str) -> None:
    producer_id, epoch = known.producers[name]
    adding = AddOffsetsToTxnRequest(
        transactional_id=name, producer_id=producer_id, producer_epoch=epoch, group_id=group
    )
    assert raw.ask(ApiKey.ADD_OFFSETS_TO_TXN, 3, adding).error_code == 0
    pending = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=9_999, committed_metadata="")
    request = TxnOffsetCommitRequest(
        transactional_id=name,
        group_id=group,
        producer_id=producer_id,
        producer_epoch=epoch,
        topics=(TxnOffsetCommitRequestTopic(name="t", partitions=(pending,)),),
    )
    assert raw.ask(ApiKey.TXN_OFFSET_COMMIT, 3, request).topics[0].partitions[0].error_code == 0
    known.open = name, group, 9_999


def check(broker: Broker, known: Known) -> None:
    """Everything is served as before, and stored once, where Kafka has it. Commits the open transaction."""
    broker.call(check_places)
    with Raw(broker.bootstrap) as raw:
        assert {name: fetched(raw, name) for name in known.offsets} == known.offsets
        for name, epoch in known.consumer.items():
            assert beat(raw, name, epoch).member_epoch == epoch
        name, group, offset = known.open
        code, *_ = end(raw, name, *known.producers[name], True, 3)
        assert code == "NONE"
        broker.call(all_ended)
        assert fetched(raw, group) == offset
        for each, (producer_id, epoch) in known.producers.items():
            assert init(raw, each) == (producer_id, epoch + 1)
    known.offsets[group] = offset


async def all_ended(real: RealBroker) -> None:
    import asyncio

    coordinator = real.parts.transactions.get()
    while any(each.now.state.label.startswith("Prepare") for each in coordinator.list()):  # type: ignore[union-attr]
        await asyncio.sleep(0.001)


def fetched(raw: Raw, name: str) -> int:
    group = OffsetFetchRequestGroup(group_id=name, topics=(OffsetFetchRequestTopics(name="t", partition_indexes=(0,)),))
    answer = raw.ask(ApiKey.OFFSET_FETCH, 8, OffsetFetchRequest(groups=(group,), require_stable=False))
    offset: int = answer.groups[0].topics[0].partitions[0].committed_offset
    return offset


async def check_places(real: RealBroker) -> None:
    for topic in (GROUP_OFFSETS, TRANSACTION_STATE):
        logs = [log for (name, _), log in real.parts.logs.logs.items() if name == topic]
        for log in logs:
            found = find(log, lambda _: True)
            here = [living(found.decided), *(living(some) for some in found.open.values())]
            for name in {name_of(key) or "" for some in here for key in some}:
                assert partition_of(name, len(logs)) == log.partition, (topic, name)
