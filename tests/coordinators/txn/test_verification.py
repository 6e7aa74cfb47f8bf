"""The check before the first write: which batches pass, and what the errors say."""

from __future__ import annotations

import pytest

from ixion.broker.coordinators.txn.states import State
from ixion.language.model.errors import ErrorCode
from ixion.language.model.topic_partition import TopicPartition
from tests.coordinators.txn.world import World

T0 = ("t", 0)
T1 = ("t", 1)
Heard = list[dict[TopicPartition, ErrorCode]]


def produce(world: World, version: int, *partitions: TopicPartition, producer_id: int = 0, epoch: int = 0) -> Heard:
    heard: Heard = []
    world.coordinator.verify_produce("x", producer_id, epoch, partitions, version, heard.append)
    return heard


@pytest.mark.parametrize(
    ("version", "code"), [(9, "INVALID_TXN_STATE"), (10, "INVALID_TXN_STATE"), (11, "TRANSACTION_ABORTABLE")]
)
def test_an_older_client_must_have_announced_the_partition(world: World, version: int, code: str) -> None:
    world.init("x")
    world.add("x", 0, 0, T0, version=0)
    assert produce(world, version, T0, T1) == [{T0: ErrorCode.NONE, T1: ErrorCode[code]}]
    assert world.state("x").partitions == {T0}


def test_the_write_of_a_newer_client_adds(world: World) -> None:
    world.init("x")
    assert produce(world, 12, T0, T1) == [{T0: ErrorCode.NONE, T1: ErrorCode.NONE}]
    assert world.state("x").partitions == {T0, T1}
    assert world.state("x").client_version == 2


def test_a_late_write_is_refused(world: World) -> None:
    world.init("x")
    produce(world, 12, T0)
    world.end("x", 0, 0, False)
    for version in (10, 11, 12):
        assert produce(world, version, T0) == [{T0: ErrorCode.INVALID_PRODUCER_EPOCH}]
    assert world.state("x").state is State.COMPLETE_ABORT


def test_a_write_waits_for_the_transaction_before_to_complete(world: World) -> None:
    world.init("x")
    produce(world, 12, T0)
    world.markers.holding = True
    world.end("x", 0, 0)
    heard = produce(world, 12, T1, epoch=1)
    world.advance(20)
    assert heard == []
    world.markers.let_go()
    world.advance(20)
    assert heard == [{T1: ErrorCode.NONE}]


def test_a_write_does_not_wait_for_ever(world: World) -> None:
    world.init("x")
    produce(world, 12, T0)
    world.markers.holding = True
    world.end("x", 0, 0)
    heard = produce(world, 12, T1, epoch=1)
    for _ in range(6):
        world.advance(20)
    assert heard == [{T1: ErrorCode.CONCURRENT_TRANSACTIONS}]


def test_an_older_client_is_sent_away_with_a_code_it_retries(world: World) -> None:
    world.init("x")
    world.add("x", 0, 0, T0, version=0)
    world.markers.holding = True
    world.end("x", 0, 0, version=0)
    assert produce(world, 10, T0) == [{T0: ErrorCode.NOT_ENOUGH_REPLICAS}]
    world.coordinator.on_resigned(world.log.partition_for("x"))
    assert produce(world, 12, T0) == [{T0: ErrorCode.NOT_ENOUGH_REPLICAS}]


def test_strangers_are_refused(world: World) -> None:
    world.init("x")
    assert produce(world, 12, T0, producer_id=5) == [{T0: ErrorCode.INVALID_PRODUCER_ID_MAPPING}]
    assert produce(world, 12, T0, epoch=5) == [{T0: ErrorCode.INVALID_PRODUCER_EPOCH}]
    assert world.state("x").state is State.EMPTY


def test_verification_can_be_switched_off_for_clients_that_announce_partitions() -> None:
    world = World(transaction_partition_verification_enable="false")
    world.init("x")
    assert produce(world, 11, T0) == [{T0: ErrorCode.NONE}]
    assert world.state("x").partitions == frozenset()
    produce(world, 12, T0)
    assert world.state("x").partitions == {T0}
    world.close()


@pytest.mark.parametrize(
    ("version", "code"), [(0, "INVALID_TXN_STATE"), (3, "INVALID_TXN_STATE"), (4, "TRANSACTION_ABORTABLE"), (5, "NONE")]
)
def test_offsets_of_a_group(world: World, version: int, code: str) -> None:
    world.init("x")
    heard: list[ErrorCode] = []
    offsets = ("__consumer_offsets", 3)
    world.coordinator.verify_offset_commit("x", 0, 0, offsets, version, heard.append)
    assert heard == [ErrorCode[code]]
    assert (offsets in world.state("x").partitions) == (version == 5)
    world.coordinator.verify_offset_commit("nobody", 0, 0, offsets, version, heard.append)
    assert heard[1] == ErrorCode.INVALID_PRODUCER_ID_MAPPING
