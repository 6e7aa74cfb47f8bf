"""Markers for partitions on other brokers, and verification by a coordinator on another broker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ixion.broker.coordinators.txn.build import transaction_coordinator
from ixion.broker.coordinators.txn.markers import Marker, Written
from ixion.broker.coordinators.txn.remote_verification import RemoteVerification
from ixion.broker.coordinators.txn.spread_markers import SpreadMarkers
from ixion.broker.coordinators.txn.verification import offset_commit_client, produce_client
from ixion.broker.metadata.image import ClusterImage, PartitionImage, TopicImage
from ixion.broker.replica.broker_channels import BrokerChannels
from ixion.broker.replica.coordinator_log import CoordinatorLog
from ixion.broker.replica.manager import ReplicaManager
from ixion.clients.faults import DisconnectedError
from ixion.config.dynamic import DynamicConfig
from ixion.language.model.errors import ErrorCode
from ixion.language.model.topic_partition import TopicPartition
from ixion.language.protocol.messages.k24_add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)
from ixion.language.protocol.messages.k27_write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from ixion.language.protocol.notation import Struct
from ixion.language.protocol.registry import ApiKey
from ixion.timer.system_timer import SystemTimer

HERE, THERE = 1, 2
MARKER = {"producer_id": 7, "epoch": 3, "commit": True, "coordinator_epoch": 5}


def image_of(*leaders: int) -> ClusterImage:
    partitions = [
        PartitionImage(number=number, leader=leader, leader_epoch=0, isr=(leader,), replicas=(HERE, THERE))
        for number, leader in enumerate(leaders)
    ]
    image = ClusterImage(cluster_id="c")
    image.put_topic(TopicImage(name="t", topic_id=bytes(16), partitions=partitions, config={}))
    return image


@dataclass
class Brokers:
    """The other brokers: an answer or a fault for each request."""

    answer: Callable[[Struct], Struct] | Exception
    asked: list[tuple[int, Struct]] = field(default_factory=list)
    versions: list[tuple[int, int]] = field(default_factory=list)
    before_answer: Callable[[], None] = lambda: None

    async def ask(self, broker_id: int, api: ApiKey, request: Struct, *, oldest: int, newest: int) -> Struct:
        self.asked.append((broker_id, request))
        self.versions.append((oldest, newest))
        await asyncio.sleep(0)
        self.before_answer()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer(request)


class Local:
    def __init__(self) -> None:
        self.written: list[Marker] = []

    def write(self, marker: Marker, done: Written) -> None:
        self.written.append(marker)
        done(dict.fromkeys(marker.partitions, ErrorCode.NONE))


def write(
    image: ClusterImage, brokers: Brokers, local: Local, *keys: TopicPartition, raised: bool = False
) -> dict[TopicPartition, ErrorCode]:
    async def work() -> dict[TopicPartition, ErrorCode]:
        spread = SpreadMarkers(local, HERE, image, cast(BrokerChannels, brokers))
        over: asyncio.Future[dict[TopicPartition, ErrorCode]] = asyncio.get_running_loop().create_future()
        spread.write(Marker(partitions=frozenset(keys), raised=raised, **cast(Any, MARKER)), over.set_result)
        return await asyncio.wait_for(over, 10)

    return asyncio.run(work())


def written(code: int) -> Callable[[Struct], Struct]:
    def answer(request: Struct) -> Struct:
        assert isinstance(request, WriteTxnMarkersRequest)
        (marker,) = request.markers
        topics = tuple(
            WritableTxnMarkerTopicResult(
                name=topic.name,
                partitions=tuple(
                    WritableTxnMarkerPartitionResult(partition_index=number, error_code=code)
                    for number in topic.partition_indexes
                ),
            )
            for topic in marker.topics
        )
        return WriteTxnMarkersResponse(markers=(WritableTxnMarkerResult(producer_id=7, topics=topics),))

    return answer


def test_each_leader_gets_the_markers_of_its_partitions() -> None:
    local, brokers = Local(), Brokers(written(0))
    codes = write(image_of(HERE, THERE, 3, -1), brokers, local, *(("t", number) for number in range(5)))
    assert codes == {
        ("t", 0): ErrorCode.NONE,
        ("t", 1): ErrorCode.NONE,
        ("t", 2): ErrorCode.NONE,
        ("t", 3): ErrorCode.LEADER_NOT_AVAILABLE,
        ("t", 4): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert [marker.partitions for marker in local.written] == [{("t", 0)}]
    assert sorted(broker for broker, _ in brokers.asked) == [THERE, 3]
    (marker,) = cast(WriteTxnMarkersRequest, brokers.asked[0][1]).markers
    assert (marker.producer_id, marker.producer_epoch, marker.coordinator_epoch) == (7, 3, 5)
    assert marker.transaction_result


@pytest.mark.parametrize("raised", [False, True])
def test_a_leader_learns_whether_the_epoch_is_raised(raised: bool) -> None:
    """Without it a late copy of the marker would end the next transaction, which has this epoch."""
    brokers = Brokers(written(0))
    write(image_of(THERE), brokers, Local(), ("t", 0), raised=raised)
    assert brokers.versions == [(1, 2)], "1 is the newest of Apache Kafka 3.9"
    (marker,) = cast(WriteTxnMarkersRequest, brokers.asked[0][1]).markers
    assert (marker.transaction_version >= 2) is raised


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (written(ErrorCode.NOT_LEADER_OR_FOLLOWER), ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (DisconnectedError("gone"), ErrorCode.LEADER_NOT_AVAILABLE),
        (FileNotFoundError("no such certificate"), ErrorCode.LEADER_NOT_AVAILABLE),
        (ValueError("an answer that cannot be read"), ErrorCode.LEADER_NOT_AVAILABLE),
    ],
)
def test_a_leader_that_does_not_write_leaves_a_code_to_try_again(answer: Any, code: ErrorCode) -> None:
    assert write(image_of(THERE), Brokers(answer), Local(), ("t", 0)) == {("t", 0): code}


def test_a_transaction_without_a_place_to_write_to_is_answered() -> None:
    assert write(image_of(-1), Brokers(written(0)), Local(), ("t", 0)) == {("t", 0): ErrorCode.LEADER_NOT_AVAILABLE}


def test_a_partition_is_deleted_only_if_the_image_of_the_cluster_is_complete() -> None:
    """Else a broker that starts, and loads its transactions before it knows the topics, would skip their markers."""
    image = ClusterImage(cluster_id="c")
    coordinator = transaction_coordinator(
        node_id=HERE,
        log=cast(CoordinatorLog, SimpleNamespace(name="__transaction_state")),
        session=cast(Any, None),
        image=image,
        replicas=cast(ReplicaManager, SimpleNamespace(on_leadership=[])),
        offsets_decided=cast(Any, None),
        config=DynamicConfig({}),
        timer=SystemTimer("unused"),
        clock_ms=lambda: 0,
        loop=cast(Any, None),
        channels=cast(BrokerChannels, None),
    )
    assert coordinator._sender._exists(("t", 0))
    image.complete = True
    assert not coordinator._sender._exists(("t", 0))


# Verification.


class Entry:
    """Of a producer, as the log keeps it."""


class World:
    """One partition that is led here, and a coordinator on another broker."""

    def __init__(self) -> None:
        self.entry: Entry | None = Entry()
        self.leader_epoch = 0
        self.leads = True

    @property
    def partitions(self) -> dict[TopicPartition, Any]:
        return {("t", 0): self}

    @property
    def log(self) -> World:
        return self

    @property
    def producers(self) -> Any:
        return Producers(self.entry)


class Producers:
    def __init__(self, entry: Entry | None) -> None:
        self.producers = {} if entry is None else {7: entry}


class StateLog:
    name = "t"

    def partition_for(self, _key: str) -> int:
        return 0


def verified(code: int, top: int = 0) -> Callable[[Struct], Struct]:
    def answer(request: Struct) -> Struct:
        assert isinstance(request, AddPartitionsToTxnRequest)
        results = (AddPartitionsToTxnPartitionResult(partition_index=0, partition_error_code=code),)
        topics = (AddPartitionsToTxnTopicResult(name="t", results_by_partition=results),)
        found = (AddPartitionsToTxnResult(transactional_id="x", topic_results=topics),) if not top else ()
        return AddPartitionsToTxnResponse(
            throttle_time_ms=0, error_code=top, results_by_transaction=found, results_by_topic_v3_and_below=()
        )

    return answer


def verify(world: World, brokers: Brokers, *, commits_offsets: bool = False) -> ErrorCode:
    async def work() -> ErrorCode:
        verification = RemoteVerification(
            HERE,
            image_of(THERE),
            cast(CoordinatorLog, StateLog()),
            cast(ReplicaManager, world),
            cast(BrokerChannels, brokers),
        )
        over: asyncio.Future[dict[TopicPartition, ErrorCode]] = asyncio.get_running_loop().create_future()
        client = offset_commit_client(3) if commits_offsets else produce_client(9)
        broker = verification.coordinator_of("x")
        assert broker == THERE
        verification.verify(broker, client, "x", 7, 3, [("t", 0)], over.set_result)
        return (await asyncio.wait_for(over, 10))["t", 0]

    return asyncio.run(work())


def test_a_coordinator_on_another_broker_is_asked() -> None:
    brokers = Brokers(verified(0))
    assert verify(World(), brokers) == ErrorCode.NONE
    ((broker, request),) = brokers.asked
    (transaction,) = cast(AddPartitionsToTxnRequest, request).transactions
    assert (broker, transaction.transactional_id, transaction.verify_only) == (THERE, "x", True)
    assert verify(World(), Brokers(verified(ErrorCode.INVALID_TXN_STATE))) == ErrorCode.INVALID_TXN_STATE


@pytest.mark.parametrize("what", ["a marker", "first marker", "another leader epoch", "no leader"])
def test_a_write_that_something_has_overtaken_is_refused(what: str) -> None:
    """Without this it would open a transaction that nobody ends."""
    world = World()
    if what == "first marker":
        world.entry = None

    def overtake() -> None:
        if what in ("a marker", "first marker"):
            world.entry = Entry()
        elif what == "another leader epoch":
            world.leader_epoch += 1
        else:
            world.leads = False

    brokers = Brokers(verified(0), before_answer=overtake)
    assert verify(world, brokers) == ErrorCode.NOT_ENOUGH_REPLICAS


@pytest.mark.parametrize(
    "answer",
    [
        DisconnectedError("gone"),
        OSError("no certificate"),
        verified(0, top=ErrorCode.NOT_COORDINATOR),
        verified(ErrorCode.NOT_COORDINATOR),
    ],
)
def test_a_client_tries_again_when_the_coordinator_cannot_say(answer: Any) -> None:
    assert verify(World(), Brokers(answer)) == ErrorCode.NOT_ENOUGH_REPLICAS


def test_a_commit_of_offsets_tries_again_with_a_code_of_its_own() -> None:
    code = verify(World(), Brokers(DisconnectedError("gone")), commits_offsets=True)
    assert code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
