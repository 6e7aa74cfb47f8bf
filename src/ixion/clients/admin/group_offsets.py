"""Committed offsets of groups: read, set and deleted at their coordinators."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from ixion.clients.admin.plan import Call, Plan
from ixion.clients.admin.results import Results
from ixion.clients.admin.routes import GROUP, Spread, by_topic, fault_of, spread, to_coordinators
from ixion.clients.metadata import TopicPartition
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.notation import Struct
from ixion.language.protocol.registry import ApiKey

LAST_BY_NAME: Final = 9  # version 10 of both names topics by id only
FIRST_OF_MANY: Final = 8  # OffsetFetch asks for several groups from then on
HAS_MEMBERS: Final = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.STALE_MEMBER_EPOCH)


class CommittedOffset(NamedTuple):
    """The offset from which a group continues, and the metadata of its commit."""

    offset: int
    metadata: str | None = ""
    leader_epoch: int = -1


def list_group_offsets(
    call: Call, groups: Iterable[str] | Mapping[str, Iterable[TopicPartition] | None], *, stable: bool = False
) -> Plan[Results[str, dict[TopicPartition, CommittedOffset]]]:
    """What each group has committed, for all partitions or for some; nothing for a group that does not exist.

    With `stable`, waits for offsets of open transactions.
    """
    from ixion.language.protocol.messages.k09_offset_fetch import (
        OffsetFetchRequest,
        OffsetFetchRequestGroup,
        OffsetFetchRequestTopics,
        OffsetFetchResponse,
        OffsetFetchResponseGroup,
    )

    wanted: dict[str, Iterable[TopicPartition] | None]
    wanted = dict(groups) if isinstance(groups, Mapping) else dict.fromkeys(groups)

    def topics(some: Iterable[TopicPartition] | None) -> tuple[OffsetFetchRequestTopics, ...] | None:
        if some is None:
            return None
        return tuple(
            OffsetFetchRequestTopics(name=topic, partition_indexes=tuple(numbers))
            for topic, numbers in by_topic(some).items()
        )

    def make(some: list[str], _: int) -> Struct:
        asked = tuple(OffsetFetchRequestGroup(group_id=group, topics=topics(wanted[group])) for group in some)
        return OffsetFetchRequest(groups=asked, require_stable=stable)

    def offsets(group: OffsetFetchResponseGroup) -> dict[TopicPartition, CommittedOffset] | KafkaError:
        fault = fault_of(group.error_code, None, f"group {group.group_id!r}")
        found: dict[TopicPartition, CommittedOffset] = {}
        for topic in group.topics:
            for each in topic.partitions:
                place = TopicPartition(topic.name, each.partition_index)
                fault = fault or fault_of(each.error_code, None, f"{place} of group {group.group_id!r}")
                if each.committed_offset >= 0:
                    found[place] = CommittedOffset(each.committed_offset, each.metadata, each.committed_leader_epoch)
        return found if fault is None else fault

    def read(answer: Struct) -> dict[str, dict[TopicPartition, CommittedOffset] | KafkaError]:
        assert isinstance(answer, OffsetFetchResponse)
        return {group.group_id: offsets(group) for group in answer.groups}

    how = Spread(ApiKey.OFFSET_FETCH, oldest=FIRST_OF_MANY, newest=LAST_BY_NAME)
    return (yield from spread(call, how, wanted, to_coordinators(GROUP), make, read))


def alter_group_offsets(
    call: Call, group: str, offsets: Mapping[TopicPartition, int | CommittedOffset]
) -> Plan[Results[TopicPartition, None]]:
    """Set the offsets of a group without members; creates the group if it does not exist."""
    from ixion.language.protocol.messages.k08_offset_commit import (
        OffsetCommitRequest,
        OffsetCommitRequestPartition,
        OffsetCommitRequestTopic,
        OffsetCommitResponse,
    )

    wanted = {
        place: CommittedOffset(offset) if isinstance(offset, int) else offset for place, offset in offsets.items()
    }
    topics = tuple(
        OffsetCommitRequestTopic(
            name=topic,
            partitions=tuple(
                OffsetCommitRequestPartition(
                    partition_index=number,
                    committed_offset=wanted[TopicPartition(topic, number)].offset,
                    committed_leader_epoch=wanted[TopicPartition(topic, number)].leader_epoch,
                    committed_metadata=wanted[TopicPartition(topic, number)].metadata,
                )
                for number in numbers
            ),
        )
        for topic, numbers in by_topic(wanted).items()
    )
    request = OffsetCommitRequest(
        group_id=group, generation_id_or_member_epoch=-1, member_id="", group_instance_id=None, topics=topics
    )

    def read(answer: Struct) -> dict[str, dict[TopicPartition, KafkaError | None] | KafkaError]:
        assert isinstance(answer, OffsetCommitResponse)
        found: dict[TopicPartition, KafkaError | None] = {}
        for topic in answer.topics:
            for each in topic.partitions:
                place = TopicPartition(topic.name, each.partition_index)
                fault = fault_of(each.error_code, None, f"{place} of group {group!r}")
                if fault is not None and fault.code in HAS_MEMBERS:
                    text = f"group {group!r} has members; stop them first, they would overwrite the offsets"
                    fault = KafkaError(ErrorCode.NON_EMPTY_GROUP, text)
                if fault is not None and fault.code.retriable and fault.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    return {group: fault}
                found[place] = fault
        return {group: found}

    how = Spread(ApiKey.OFFSET_COMMIT, newest=LAST_BY_NAME)
    return (yield from of_partitions(call, how, group, wanted, request, read))


def delete_group_offsets(
    call: Call, group: str, partitions: Iterable[TopicPartition]
) -> Plan[Results[TopicPartition, None]]:
    """Delete committed offsets of a group; GROUP_SUBSCRIBED_TO_TOPIC for topics that it reads."""
    from ixion.language.protocol.messages.k47_offset_delete import (
        OffsetDeleteRequest,
        OffsetDeleteRequestPartition,
        OffsetDeleteRequestTopic,
        OffsetDeleteResponse,
    )

    wanted = list(partitions)
    topics = tuple(
        OffsetDeleteRequestTopic(
            name=topic, partitions=tuple(OffsetDeleteRequestPartition(partition_index=number) for number in numbers)
        )
        for topic, numbers in by_topic(wanted).items()
    )
    request = OffsetDeleteRequest(group_id=group, topics=topics)

    def read(answer: Struct) -> dict[str, dict[TopicPartition, KafkaError | None] | KafkaError]:
        assert isinstance(answer, OffsetDeleteResponse)
        fault = fault_of(answer.error_code, None, f"group {group!r}")
        if fault is not None:
            return {group: fault}
        found = {
            (place := TopicPartition(topic.name, each.partition_index)): fault_of(
                each.error_code, None, f"{place} of group {group!r}"
            )
            for topic in answer.topics
            for each in topic.partitions
        }
        return {group: found}

    return (yield from of_partitions(call, Spread(ApiKey.OFFSET_DELETE), group, wanted, request, read))


def of_partitions(
    call: Call,
    how: Spread,
    group: str,
    wanted: Iterable[TopicPartition],
    request: Struct,
    read: Callable[[Struct], Mapping[str, dict[TopicPartition, KafkaError | None] | KafkaError]],
) -> Plan[Results[TopicPartition, None]]:
    """One request to one coordinator, with a result for each partition."""
    results: Results[TopicPartition, None] = Results()
    asked = yield from spread(call, how, [group], to_coordinators(GROUP), lambda *_: request, read)
    if group in asked.faults:
        results.faults.update(dict.fromkeys(wanted, asked.faults[group]))
        return results
    for place in wanted:
        fault = asked[group].get(place)
        if fault is None:
            results.done[place] = None
        else:
            results.faults[place] = fault
    return results
