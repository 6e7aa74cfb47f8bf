"""Topics: listed, described, created, enlarged, deleted.

A change that the controller has acknowledged reaches the other brokers a moment later. Kafka's AdminClient leaves that
to its caller; here a call ends when the broker that we ask sees the change, so the next call can build on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

from ixion.clients.admin.plan import ANY, Call, Plan
from ixion.clients.admin.results import Results
from ixion.clients.admin.routes import Spread, fault_of, look_up, metadata, one, spread, to_controller
from ixion.clients.faults import TimedOutError, UnknownTopicError
from ixion.clients.metadata import ClusterMetadata, Topic, read_topic
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.model.ids import ZERO_ID, id_text
from ixion.language.protocol.messages.k03_metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ixion.language.protocol.notation import Struct
from ixion.language.protocol.registry import ApiKey

V = TypeVar("V")

BROKER_DECIDES: Final = -1  # as partition count or replication factor: the broker's own default
UNKNOWN: Final = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)
IDS_FROM: Final = 6  # the first version of DeleteTopics that takes ids
DESCRIBED_BY_ID_FROM: Final = 12  # the first version of Metadata in which ids work


class NewTopic(NamedTuple):
    """`assignment` names the replicas of each partition, leader first, and replaces both numbers."""

    name: str
    partitions: int = BROKER_DECIDES
    replication: int = BROKER_DECIDES
    configs: Mapping[str, str | None] = {}
    assignment: Sequence[Sequence[int]] = ()


class NewPartitions(NamedTuple):
    """The total number of partitions; `assignment` names the replicas of the new ones."""

    total: int
    assignment: Sequence[Sequence[int]] | None = None


def list_topics(call: Call, *, internal: bool = False) -> Plan[list[Topic]]:
    """All topics, by name; with `internal` also those of the brokers themselves."""
    found = yield from metadata(call, None)
    return sorted(topic for topic in found.topics.values() if internal or not topic.internal)


def describe_topics(call: Call, names: Iterable[str]) -> Plan[Results[str, Topic]]:
    """Partitions, leaders and replicas."""
    wanted = list(dict.fromkeys(names))
    results: Results[str, Topic] = Results()
    left = wanted
    try:
        while left:
            faults = yield from look_up(call, left)
            again = []
            for name in left:
                fault = faults.get(name)
                if fault is None:
                    results.done[name] = call.cluster.topics[name]
                elif isinstance(fault, UnknownTopicError) or not fault.code.retriable:
                    results.faults[name] = fault
                else:
                    call.reason = fault
                    again.append(name)
            left = again
            if left:
                yield call.pause_s()
    except TimedOutError as late:
        results.faults.update(dict.fromkeys(left, late))
    return results


def describe_topics_by_id(call: Call, topic_ids: Iterable[bytes]) -> Plan[Results[bytes, Topic]]:
    """As `describe_topics`, by topic id."""
    wanted = list(dict.fromkeys(topic_ids))
    results: Results[bytes, Topic] = Results()
    if not wanted:
        return results
    topics = tuple(MetadataRequestTopic(topic_id=topic_id, name=None) for topic_id in wanted)
    request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
    answer = yield from one(
        call, ANY, ApiKey.METADATA, lambda _: request, MetadataResponse, oldest=DESCRIBED_BY_ID_FROM
    )
    found = {topic.topic_id: topic for topic in answer.topics}
    for topic_id in wanted:
        topic = found.get(topic_id)
        about = f"topic with the id {id_text(topic_id)}"
        fault = fault_of(ErrorCode.UNKNOWN_TOPIC_ID if topic is None else topic.error_code, None, about)
        if topic is None or fault is not None:
            assert fault is not None
            results.faults[topic_id] = fault
        else:
            results.done[topic_id] = read_topic(topic.name or "", topic)
    return results


def create_topics(
    call: Call, topics: Iterable[NewTopic | str], *, validate_only: bool = False
) -> Plan[Results[str, Topic | None]]:
    """Create topics and wait until every partition has a leader. A name alone gets the broker's defaults. The value
    is None if they were only validated."""
    from ixion.language.protocol.messages.k19_create_topics import (
        CreatableReplicaAssignment,
        CreatableTopic,
        CreatableTopicConfig,
        CreateTopicsRequest,
        CreateTopicsResponse,
    )

    new = [NewTopic(topic) if isinstance(topic, str) else topic for topic in topics]
    wanted = {topic.name: topic for topic in new}

    def creatable(topic: NewTopic) -> CreatableTopic:
        replicas = tuple(
            CreatableReplicaAssignment(partition_index=index, broker_ids=tuple(brokers))
            for index, brokers in enumerate(topic.assignment)
        )
        return CreatableTopic(
            name=topic.name,
            num_partitions=BROKER_DECIDES if replicas else topic.partitions,
            replication_factor=BROKER_DECIDES if replicas else topic.replication,
            assignments=replicas,
            configs=tuple(CreatableTopicConfig(name=key, value=value) for key, value in topic.configs.items()),
        )

    def make(names: list[str], _: int) -> Struct:
        made = tuple(creatable(wanted[name]) for name in names)
        return CreateTopicsRequest(topics=made, timeout_ms=call.left_ms, validate_only=validate_only)

    def read(answer: Struct) -> dict[str, Topic | KafkaError | None]:
        assert isinstance(answer, CreateTopicsResponse)
        return {
            each.name: fault_of(each.error_code, each.error_message, f"topic {each.name!r}") for each in answer.topics
        }

    how = Spread(ApiKey.CREATE_TOPICS, already=ErrorCode.TOPIC_ALREADY_EXISTS)
    results = yield from spread(call, how, wanted, to_controller, make, read, lambda _: None)
    if not validate_only:
        yield from wait_until(call, results, has_leaders)
        for name in results.done:
            results.done[name] = call.cluster.topics[name]
    return results


def delete_topics(call: Call, names: Iterable[str]) -> Plan[Results[str, None]]:
    """Delete topics and wait until they are gone."""
    from ixion.language.protocol.messages.k20_delete_topics import (
        DeleteTopicsRequest,
        DeleteTopicsResponse,
        DeleteTopicState,
    )

    def make(some: list[str], version: int) -> Struct:
        return DeleteTopicsRequest(
            topics=tuple(DeleteTopicState(name=name, topic_id=ZERO_ID) for name in some) if version >= IDS_FROM else (),
            topic_names=tuple(some),
            timeout_ms=call.left_ms,
        )

    def read(answer: Struct) -> dict[str, KafkaError | None]:
        assert isinstance(answer, DeleteTopicsResponse)
        return {
            each.name or "": fault_of(each.error_code, each.error_message, f"topic {each.name!r}")
            for each in answer.responses
        }

    how = Spread(ApiKey.DELETE_TOPICS, final=UNKNOWN, already=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    results: Results[str, None] = yield from spread(call, how, names, to_controller, make, read, lambda _: None)
    yield from name_unknown(call, results)
    yield from wait_until(call, results, lambda found, name: name not in found.topics)
    return results


def delete_topics_by_id(call: Call, topic_ids: Iterable[bytes]) -> Plan[Results[bytes, None]]:
    """As `delete_topics`, by topic id: a later topic of the same name stays."""
    from ixion.language.protocol.messages.k20_delete_topics import (
        DeleteTopicsRequest,
        DeleteTopicsResponse,
        DeleteTopicState,
    )

    def make(some: list[bytes], _: int) -> Struct:
        topics = tuple(DeleteTopicState(name=None, topic_id=topic_id) for topic_id in some)
        return DeleteTopicsRequest(topics=topics, timeout_ms=call.left_ms)

    def read(answer: Struct) -> dict[bytes, KafkaError | None]:
        assert isinstance(answer, DeleteTopicsResponse)
        return {
            each.topic_id: fault_of(each.error_code, each.error_message, f"topic with the id {id_text(each.topic_id)}")
            for each in answer.responses
        }

    how = Spread(ApiKey.DELETE_TOPICS, oldest=IDS_FROM, final=UNKNOWN, already=ErrorCode.UNKNOWN_TOPIC_ID)
    results: Results[bytes, None] = yield from spread(call, how, topic_ids, to_controller, make, read, lambda _: None)
    return results


def create_partitions(
    call: Call, totals: Mapping[str, int | NewPartitions], *, validate_only: bool = False
) -> Plan[Results[str, None]]:
    """Grow topics to these numbers of partitions, and wait until the new ones have leaders."""
    from ixion.language.protocol.messages.k37_create_partitions import (
        CreatePartitionsAssignment,
        CreatePartitionsRequest,
        CreatePartitionsResponse,
        CreatePartitionsTopic,
    )

    wanted = {name: NewPartitions(each) if isinstance(each, int) else each for name, each in totals.items()}

    def make(names: list[str], _: int) -> Struct:
        topics = tuple(
            CreatePartitionsTopic(
                name=name,
                count=wanted[name].total,
                assignments=None
                if (given := wanted[name].assignment) is None
                else tuple(CreatePartitionsAssignment(broker_ids=tuple(brokers)) for brokers in given),
            )
            for name in names
        )
        return CreatePartitionsRequest(topics=topics, timeout_ms=call.left_ms, validate_only=validate_only)

    def read(answer: Struct) -> dict[str, KafkaError | None]:
        assert isinstance(answer, CreatePartitionsResponse)
        return {
            each.name: fault_of(each.error_code, each.error_message, f"topic {each.name!r}") for each in answer.results
        }

    how = Spread(ApiKey.CREATE_PARTITIONS, final=UNKNOWN)
    results: Results[str, None] = yield from spread(call, how, wanted, to_controller, make, read)
    yield from name_unknown(call, results)
    if not validate_only:

        def has_grown(found: ClusterMetadata, name: str) -> bool:
            return has_leaders(found, name) and len(found.topics[name].partitions) >= wanted[name].total

        yield from wait_until(call, results, has_grown)
    return results


def has_leaders(found: ClusterMetadata, name: str) -> bool:
    topic = found.topics.get(name)
    return topic is not None and all(partition.leader >= 0 for partition in topic.partitions)


def name_unknown(call: Call, results: Results[str, None]) -> Plan[None]:
    """Add the closest name to the faults of unknown topics."""
    unknown = [name for name, fault in results.faults.items() if fault.code in UNKNOWN]
    if unknown:
        known = yield from metadata(call, None)
        for name in unknown:
            results.faults[name] = UnknownTopicError(name, list(known.topics))


def wait_until(call: Call, results: Results[str, V], is_seen: Callable[[ClusterMetadata, str], bool]) -> Plan[None]:
    """Wait until the broker sees the changes that succeeded; when the time is up, they fail."""
    left = list(results.done)
    try:
        while left:
            found = yield from metadata(call, left)
            left = [name for name in left if not is_seen(found, name)]
            if left:
                call.reason = KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"the change of {left[0]!r} is not seen yet")
                yield call.pause_s()
    except TimedOutError as late:
        for name in left:
            del results.done[name]
            results.faults[name] = late
