from __future__ import annotations

import pytest

from ixion.broker.log.prepare import Origin
from ixion.broker.startup.broker import Broker as RealBroker
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k02_list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from ixion.language.protocol.registry import ApiKey
from ixion.testing.broker import Broker
from tests.apis.asking import Asking, versions
from tests.log.support import batch, marker

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING = -1, -2, -3, -4, -5, -6


def write(broker: Broker, topic: str, *batches: bytes, origin: Origin = Origin.CLIENT) -> None:
    async def work(real: RealBroker) -> None:
        for data in batches:
            real.parts.replicas.append(1000, 1, origin, [(topic, 0, data)], lambda _results: None)

    broker.call(work)


def ask(
    asking: Asking,
    topic: str,
    timestamp: int,
    *,
    version: int = 11,
    isolation: int = 0,
    epoch: int = -1,
    number: int = 0,
    replica: int = -1,
) -> ListOffsetsPartitionResponse:
    wish = ListOffsetsPartition(partition_index=number, timestamp=timestamp, current_leader_epoch=epoch)
    request = ListOffsetsRequest(
        replica_id=replica, isolation_level=isolation, topics=(ListOffsetsTopic(name=topic, partitions=(wish,)),)
    )
    ((part,),) = [found.partitions for found in asking.ask(request, ListOffsetsResponse, version).topics]
    return part


def found(part: ListOffsetsPartitionResponse) -> tuple[int, int, int]:
    assert part.error_code == 0
    return part.timestamp, part.offset, part.leader_epoch


@pytest.fixture(scope="module")
def times(broker: Broker) -> str:
    """Offsets 0 to 5 at 100, 300, 300, 200, 500, 400; then 0 is deleted."""
    broker.create_topic("times")
    write(broker, "times", batch(b"a", timestamp=100), batch(b"b", b"c", timestamp=300), batch(b"d", timestamp=200))
    write(broker, "times", batch(b"e", timestamp=500), batch(b"f", timestamp=400))

    async def delete(real: RealBroker) -> None:
        real.parts.replicas.delete_records(1000, [("times", 0, 1)], lambda _results: None)

    broker.call(delete)
    return "times"


def test_every_version(asking: Asking, times: str) -> None:
    for version in versions(ApiKey.LIST_OFFSETS):
        epoch = 0 if version >= 4 else -1
        assert found(ask(asking, times, LATEST, version=version)) == (-1, 6, epoch)
        assert found(ask(asking, times, EARLIEST, version=version)) == (-1, 1, epoch)
        assert found(ask(asking, times, 301, version=version)) == (500, 4, epoch)


@pytest.mark.parametrize(
    ("timestamp", "expected"),
    [
        (0, (300, 1, 0)),  # what is deleted is not found
        (300, (300, 1, 0)),
        (301, (500, 4, 0)),
        (500, (500, 4, 0)),
        (501, (-1, -1, -1)),
        (2**63 - 1, (-1, -1, -1)),
        (MAX_TIMESTAMP, (500, 4, 0)),
        (EARLIEST_LOCAL, (-1, 1, 0)),
        (LATEST_TIERED, (-1, -1, -1)),
        (EARLIEST_PENDING, (-1, -1, -1)),
    ],
)
def test_times(asking: Asking, times: str, timestamp: int, expected: tuple[int, int, int]) -> None:
    assert found(ask(asking, times, timestamp)) == expected


@pytest.mark.parametrize(
    ("timestamp", "since"), [(MAX_TIMESTAMP, 7), (EARLIEST_LOCAL, 8), (LATEST_TIERED, 9), (EARLIEST_PENDING, 11)]
)
def test_special_times_before_their_version(asking: Asking, times: str, timestamp: int, since: int) -> None:
    part = ask(asking, times, timestamp, version=since - 1)
    assert (part.error_code, part.offset) == (ErrorCode.UNSUPPORTED_VERSION, -1)
    assert ask(asking, times, timestamp, version=since).error_code == 0


@pytest.mark.parametrize("timestamp", [-7, -(2**63)])
def test_times_that_mean_nothing(asking: Asking, times: str, timestamp: int) -> None:
    assert ask(asking, times, timestamp).error_code == ErrorCode.UNSUPPORTED_VERSION


def test_an_empty_log(broker: Broker, asking: Asking) -> None:
    broker.create_topic("empty")
    assert found(ask(asking, "empty", LATEST)) == (-1, 0, 0)
    assert found(ask(asking, "empty", EARLIEST))[:2] == (-1, 0)
    for timestamp in (0, MAX_TIMESTAMP):
        assert found(ask(asking, "empty", timestamp)) == (-1, -1, -1)


def test_isolation(broker: Broker, asking: Asking) -> None:
    broker.create_topic("isolated")
    write(broker, "isolated", batch(b"a", timestamp=100))
    write(broker, "isolated", batch(b"b", timestamp=200, producer=(7, 0, 0), transactional=True))
    assert found(ask(asking, "isolated", LATEST))[1] == 2
    assert found(ask(asking, "isolated", LATEST, isolation=1))[1] == 1
    assert found(ask(asking, "isolated", 200))[1] == 1
    assert found(ask(asking, "isolated", 200, isolation=1)) == (-1, -1, -1)  # not decided yet
    write(broker, "isolated", marker(7, 0, commit=True), origin=Origin.COORDINATOR)
    assert found(ask(asking, "isolated", LATEST, isolation=1))[1] == 3
    assert found(ask(asking, "isolated", 200, isolation=1))[1] == 1


def test_leader_epochs(asking: Asking, times: str) -> None:
    assert ask(asking, times, LATEST, epoch=0).error_code == 0
    assert ask(asking, times, LATEST, epoch=1).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


@pytest.mark.parametrize(("topic", "number"), [("none", 0), ("", 0), ("times", 9), ("times", -1)])
def test_unknown(asking: Asking, times: str, topic: str, number: int) -> None:
    part = ask(asking, topic, LATEST, number=number)
    assert (part.error_code, part.offset, part.timestamp) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1)


def test_the_same_partition_twice_is_refused_and_the_others_are_not(asking: Asking, times: str) -> None:
    wish = ListOffsetsPartition(partition_index=0, timestamp=LATEST)
    other = ListOffsetsPartition(partition_index=9, timestamp=LATEST)
    request = ListOffsetsRequest(replica_id=-1, topics=(ListOffsetsTopic(name=times, partitions=(wish, other, wish)),))
    (topic,) = asking.ask(request, ListOffsetsResponse).topics
    assert [part.error_code for part in topic.partitions] == [
        ErrorCode.INVALID_REQUEST,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]


def test_a_debugger_sees_the_log_end(asking: Asking, times: str) -> None:
    assert found(ask(asking, times, LATEST, replica=-2))[1] == 6


def test_a_leader_that_does_not_know_its_high_watermark_yet(broker: Broker, asking: Asking) -> None:
    broker.create_topic("begun")
    write(broker, "begun", batch(b"a", timestamp=100))

    async def begin(real: RealBroker) -> None:
        partition = real.parts.replicas.partitions["begun", 0]
        partition.log.high_watermark = 0
        partition.epoch_start = 1

    broker.call(begin)
    assert ask(asking, "begun", LATEST).error_code == ErrorCode.OFFSET_NOT_AVAILABLE
    assert ask(asking, "begun", LATEST, version=4).error_code == ErrorCode.LEADER_NOT_AVAILABLE
    assert found(ask(asking, "begun", LATEST, replica=-2))[1] == 1
    assert found(ask(asking, "begun", EARLIEST))[1] == 0
    for timestamp in (50, 100, 101, MAX_TIMESTAMP):  # "none" would make a client skip to the end
        for isolation in (0, 1):
            part = ask(asking, "begun", timestamp, isolation=isolation)
            assert part.error_code == ErrorCode.OFFSET_NOT_AVAILABLE
    assert ask(asking, "begun", 50, version=4).error_code == ErrorCode.LEADER_NOT_AVAILABLE
    assert found(ask(asking, "begun", 50, replica=-2)) == (100, 0, 0)

    async def catch_up(real: RealBroker) -> None:
        real.parts.replicas.partitions["begun", 0].log.raise_high_watermark(1)

    broker.call(catch_up)
    assert found(ask(asking, "begun", 50)) == (100, 0, 0)
    assert found(ask(asking, "begun", 101)) == (-1, -1, -1)
