"""Replicas: their directories, their moves between directories and brokers, and elections of leaders."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from ixion.clients.admin.plan import CONTROLLER, Call, Plan
from ixion.clients.admin.results import Results
from ixion.clients.admin.routes import Spread, by_topic, every_node, fault_of, one, spread, to_broker, to_controller
from ixion.clients.faults import error_code
from ixion.clients.metadata import TopicPartition
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.notation import Struct
from ixion.language.protocol.registry import ApiKey

PREFERRED: Final = 0  # the first of the assigned replicas
UNCLEAN: Final = 1  # any replica that is alive, if none in sync is


class Replica(NamedTuple):
    """A replica in a directory. A future replica is on its way there."""

    partition: TopicPartition
    size: int
    lag: int
    is_future: bool


class LogDirDescription(NamedTuple):
    broker: int
    path: str
    error: ErrorCode  # NONE if the directory works
    total: int | None  # bytes of the volume; None if the broker is too old to say
    free: int | None
    replicas: tuple[Replica, ...]


class BrokerReplica(NamedTuple):
    """The replica of a partition on one broker."""

    partition: TopicPartition
    broker: int

    def __str__(self) -> str:
        return f"{self.partition} on broker {self.broker}"


class ReplicaDirectory(NamedTuple):
    """The directory of a replica, and the one that it is being moved to."""

    path: str | None
    lag: int
    future_path: str | None
    future_lag: int


class Reassignment(NamedTuple):
    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


def describe_log_dirs(call: Call, brokers: Iterable[int] | None = None) -> Plan[list[LogDirDescription]]:
    """The log directories of these brokers, of all if None, and the replicas in them."""
    from ixion.language.protocol.messages.k35_describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse

    request = DescribeLogDirsRequest(topics=None)

    def read(broker: int, answer: DescribeLogDirsResponse) -> list[LogDirDescription]:
        return [
            LogDirDescription(
                broker,
                each.log_dir,
                error_code(each.error_code),
                each.total_bytes if each.total_bytes >= 0 else None,
                each.usable_bytes if each.usable_bytes >= 0 else None,
                tuple(
                    Replica(
                        TopicPartition(topic.name, part.partition_index),
                        part.partition_size,
                        part.offset_lag,
                        part.is_future_key,
                    )
                    for topic in each.topics
                    for part in topic.partitions
                ),
            )
            for each in answer.results
        ]

    def check(answer: DescribeLogDirsResponse) -> KafkaError | None:
        return fault_of(answer.error_code, None, "the log directories of a broker")

    if brokers is None:
        answers = yield from every_node(
            call, ApiKey.DESCRIBE_LOG_DIRS, lambda _: request, DescribeLogDirsResponse, check
        )
    else:

        def read_one(answer: Struct) -> dict[int, DescribeLogDirsResponse | KafkaError]:
            assert isinstance(answer, DescribeLogDirsResponse)
            return dict.fromkeys(brokers, check(answer) or answer)

        how = Spread(ApiKey.DESCRIBE_LOG_DIRS)
        found = yield from spread(call, how, brokers, to_broker(int), lambda *_: request, read_one)
        answers = found.check()
    return sorted(each for broker, answer in answers.items() for each in read(broker, answer))


def describe_replica_log_dirs(
    call: Call, replicas: Iterable[BrokerReplica]
) -> Plan[Results[BrokerReplica, ReplicaDirectory]]:
    """The directory of each replica."""
    wanted = list(replicas)
    directories = yield from describe_log_dirs(call, list(dict.fromkeys(each.broker for each in wanted)))
    results: Results[BrokerReplica, ReplicaDirectory] = Results()
    for replica in wanted:
        now: tuple[str | None, int] = (None, -1)
        future: tuple[str | None, int] = (None, -1)
        for directory in directories:
            for each in directory.replicas if directory.broker == replica.broker else ():
                if each.partition == replica.partition and each.is_future:
                    future = (directory.path, each.lag)
                elif each.partition == replica.partition:
                    now = (directory.path, each.lag)
        if now[0] is None and future[0] is None:
            text = f"there is no replica of {replica}"
            results.faults[replica] = KafkaError(ErrorCode.REPLICA_NOT_AVAILABLE, text)
        else:
            results.done[replica] = ReplicaDirectory(*now, *future)
    return results


def alter_replica_log_dirs(call: Call, directories: Mapping[BrokerReplica, str]) -> Plan[Results[BrokerReplica, None]]:
    """Move replicas to other directories of their brokers."""
    from ixion.language.protocol.messages.k34_alter_replica_log_dirs import (
        AlterReplicaLogDir,
        AlterReplicaLogDirsRequest,
        AlterReplicaLogDirsResponse,
        AlterReplicaLogDirTopic,
    )

    results: Results[BrokerReplica, None] = Results()
    for broker in dict.fromkeys(each.broker for each in directories):
        places = {each.partition: path for each, path in directories.items() if each.broker == broker}

        def make(some: list[TopicPartition], _: int, places: Mapping[TopicPartition, str] = places) -> Struct:
            paths = dict.fromkeys(places[place] for place in some)
            return AlterReplicaLogDirsRequest(
                dirs=tuple(
                    AlterReplicaLogDir(
                        path=path,
                        topics=tuple(
                            AlterReplicaLogDirTopic(name=topic, partitions=tuple(numbers))
                            for topic, numbers in by_topic(each for each in some if places[each] == path).items()
                        ),
                    )
                    for path in paths
                )
            )

        def read(answer: Struct) -> dict[TopicPartition, KafkaError | None]:
            assert isinstance(answer, AlterReplicaLogDirsResponse)
            return {
                (place := TopicPartition(topic.topic_name, each.partition_index)): fault_of(
                    each.error_code, None, place
                )
                for topic in answer.results
                for each in topic.partitions
            }

        how = Spread(ApiKey.ALTER_REPLICA_LOG_DIRS, final=(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,))
        found: Results[TopicPartition, None] = yield from spread(
            call, how, places, to_broker(partial(fixed, broker)), make, read
        )
        results.done.update(dict.fromkeys(BrokerReplica(place, broker) for place in found.done))
        results.faults.update({BrokerReplica(place, broker): fault for place, fault in found.faults.items()})
    return results


def fixed(broker: int, _: TopicPartition) -> int:
    return broker


def alter_partition_reassignments(
    call: Call, replicas: Mapping[TopicPartition, Sequence[int] | None]
) -> Plan[Results[TopicPartition, None]]:
    """Move partitions to these brokers, the preferred leader first; None cancels a running move."""
    from ixion.language.protocol.messages.k45_alter_partition_reassignments import (
        AlterPartitionReassignmentsRequest,
        AlterPartitionReassignmentsResponse,
        ReassignablePartition,
        ReassignableTopic,
    )

    def brokers(place: TopicPartition) -> tuple[int, ...] | None:
        found = replicas[place]
        return None if found is None else tuple(found)

    def make(some: list[TopicPartition], _: int) -> Struct:
        topics = tuple(
            ReassignableTopic(
                name=topic,
                partitions=tuple(
                    ReassignablePartition(partition_index=number, replicas=brokers(TopicPartition(topic, number)))
                    for number in numbers
                ),
            )
            for topic, numbers in by_topic(some).items()
        )
        return AlterPartitionReassignmentsRequest(timeout_ms=call.left_ms, topics=topics)

    def read(answer: Struct) -> dict[TopicPartition, KafkaError | None]:
        assert isinstance(answer, AlterPartitionReassignmentsResponse)
        whole = fault_of(answer.error_code, answer.error_message, "the reassignment")
        if whole is not None:
            return dict.fromkeys(replicas, whole)
        return {
            (place := TopicPartition(topic.name, each.partition_index)): fault_of(
                each.error_code, each.error_message, place
            )
            for topic in answer.responses
            for each in topic.partitions
        }

    how = Spread(ApiKey.ALTER_PARTITION_REASSIGNMENTS, final=(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,))
    results: Results[TopicPartition, None] = yield from spread(call, how, replicas, to_controller, make, read)
    return results


def list_partition_reassignments(
    call: Call, partitions: Iterable[TopicPartition] | None = None
) -> Plan[dict[TopicPartition, Reassignment]]:
    """The running moves, of these partitions or of all."""
    from ixion.language.protocol.messages.k46_list_partition_reassignments import (
        ListPartitionReassignmentsRequest,
        ListPartitionReassignmentsResponse,
        ListPartitionReassignmentsTopics,
    )

    topics = (
        None
        if partitions is None
        else tuple(
            ListPartitionReassignmentsTopics(name=topic, partition_indexes=tuple(numbers))
            for topic, numbers in by_topic(partitions).items()
        )
    )
    answer = yield from one(
        call,
        CONTROLLER,
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        lambda _: ListPartitionReassignmentsRequest(timeout_ms=call.left_ms, topics=topics),
        ListPartitionReassignmentsResponse,
        check=lambda found: fault_of(found.error_code, found.error_message, "the reassignments"),
    )
    return {
        TopicPartition(topic.name, each.partition_index): Reassignment(
            each.replicas, each.adding_replicas, each.removing_replicas
        )
        for topic in answer.topics
        for each in topic.partitions
    }


def elect_leaders(
    call: Call, partitions: Iterable[TopicPartition] | None = None, *, kind: int = PREFERRED
) -> Plan[Results[TopicPartition, None]]:
    """Elect leaders for these partitions, for all if None. ELECTION_NOT_NEEDED if the wanted replica leads already."""
    from ixion.language.protocol.messages.k43_elect_leaders import (
        ElectLeadersRequest,
        ElectLeadersResponse,
        TopicPartitions,
    )

    wanted = None if partitions is None else list(partitions)
    topics = (
        None
        if wanted is None
        else tuple(
            TopicPartitions(topic=topic, partitions=tuple(numbers)) for topic, numbers in by_topic(wanted).items()
        )
    )
    answer = yield from one(
        call,
        CONTROLLER,
        ApiKey.ELECT_LEADERS,
        lambda _: ElectLeadersRequest(election_type=kind, topic_partitions=topics, timeout_ms=call.left_ms),
        ElectLeadersResponse,
        oldest=1,
        check=lambda found: fault_of(found.error_code, None, "the election"),
    )
    results: Results[TopicPartition, None] = Results()
    for topic in answer.replica_election_results:
        for each in topic.partition_result:
            place = TopicPartition(topic.topic, each.partition_id)
            fault = fault_of(each.error_code, each.error_message, place)
            if fault is None:
                results.done[place] = None
            else:
                results.faults[place] = fault
    return results
