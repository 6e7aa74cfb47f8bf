"""OffsetCommit (8), versions 2 to 10: a group commits its offsets.

Members send their generation, from version 9 on also the member epoch of a consumer group (KIP-848). A client that is
not a member sends -1 and may commit while the group is empty. Each partition that does not exist is refused; with
version 10 topics go by id, and an unknown id gets UNKNOWN_TOPIC_ID. Offset, leader epoch and metadata are stored as
sent. Versions 2 to 4 may set a retention time.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, cast

from ixion.broker.acl.numbers import GROUP, READ, TOPIC
from ixion.broker.apis.begin import respond_in_turns
from ixion.broker.apis.call import Call, Handle
from ixion.broker.apis.guards.guard import Guard
from ixion.broker.apis.guards.shapes import NO_GROUP, NO_TOPIC, refused_topics, trim_topics
from ixion.broker.apis.repeats import once
from ixion.broker.apis.services import Services
from ixion.broker.apis.topic_ids import OFFSET_COMMIT_BY_ID_SINCE
from ixion.broker.coordinators.group.commits import Committer, Wanted
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from ixion.language.protocol.notation import Struct
from ixion.language.wire.answer import LATER, Later
from ixion.timer.turns import Steps

if TYPE_CHECKING:
    from ixion.broker.acl.rights import Rights

REPEATS: Final = {"topics": once("name", "topic_id", partitions=once("partition_index"))}

MEMBER_EPOCHS_FROM: Final = 9
NO_RETENTION_FROM: Final = 5


def make(services: Services) -> Handle:
    groups = services.groups
    image = services.image

    def find(call: Call, topic: OffsetCommitRequestTopic) -> tuple[str, int, ErrorCode]:
        """Name and number of partitions of a topic, or its error."""
        if call.version >= OFFSET_COMMIT_BY_ID_SINCE:
            by_id = image.ids.get(topic.topic_id)
            if by_id is None:
                return "", 0, ErrorCode.UNKNOWN_TOPIC_ID
            return by_id.name, len(by_id.partitions), ErrorCode.NONE
        found = image.topics.get(topic.name)
        if found is None:
            return topic.name, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return topic.name, len(found.partitions), ErrorCode.NONE

    def handle(call: Call) -> Steps[Struct | Later]:
        request = cast(OffsetCommitRequest, call.body)
        wanted: list[Wanted] = []
        codes: list[list[ErrorCode | None]] = []  # by topic and partition; None: the coordinator decides
        for topic in request.topics:
            name, count, code = find(call, topic)
            of_topic: list[ErrorCode | None] = []
            for each in topic.partitions:
                if code is ErrorCode.NONE and 0 <= each.partition_index < count:
                    of_topic.append(None)
                    wanted.append(
                        Wanted(
                            (name, each.partition_index),
                            each.committed_offset,
                            each.committed_leader_epoch,
                            each.committed_metadata,
                        )
                    )
                else:
                    of_topic.append(code if code is not ErrorCode.NONE else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                yield
            codes.append(of_topic)
            yield

        def committed(decided: list[ErrorCode]) -> None:
            respond_in_turns(call, answer(request, codes, decided))

        committer = Committer(
            request.group_id,
            request.member_id,
            request.group_instance_id,
            request.generation_id_or_member_epoch,
            knows_epochs=call.version >= MEMBER_EPOCHS_FROM,
        )
        retention_ms = request.retention_time_ms if call.version < NO_RETENTION_FROM else -1
        groups.commits.commit(committer, wanted, committed, retention_ms=retention_ms)
        return LATER

    return handle


def answer(
    request: OffsetCommitRequest, codes: list[list[ErrorCode | None]], decided: list[ErrorCode]
) -> Steps[OffsetCommitResponse]:
    """`codes` by topic and partition; each None is replaced by the next of `decided`."""
    next_decided = iter(decided)
    topics: list[OffsetCommitResponseTopic] = []
    for topic, of_topic in zip(request.topics, codes, strict=True):
        partitions: list[OffsetCommitResponsePartition] = []
        for each, code in zip(topic.partitions, of_topic, strict=True):
            final = next(next_decided) if code is None else code
            partitions.append(OffsetCommitResponsePartition(partition_index=each.partition_index, error_code=final))
            yield
        topics.append(OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=tuple(partitions)))
        yield
    return OffsetCommitResponse(topics=tuple(topics))


def make_guard(services: Services) -> Guard:
    image = services.image

    def guard(call: Call, rights: Rights) -> Steps[Struct | None]:
        request = cast(OffsetCommitRequest, call.body)
        if not rights.may(READ, GROUP, request.group_id):
            topics = yield from refused_topics(request.topics, committed(NO_GROUP), commit_topic)
            return OffsetCommitResponse(topics=cast(tuple[OffsetCommitResponseTopic, ...], tuple(topics)))

        def keep(topic: Any) -> bool:
            name = topic.name
            if call.version >= OFFSET_COMMIT_BY_ID_SINCE:
                known = image.ids.get(topic.topic_id)
                if known is None:
                    return True
                name = known.name
            return rights.may(READ, TOPIC, name)

        yield from trim_topics(call, keep, committed(NO_TOPIC), commit_topic)
        return None

    return guard


def committed(code: ErrorCode) -> Callable[[Any], OffsetCommitResponsePartition]:
    return lambda each: OffsetCommitResponsePartition(partition_index=each.partition_index, error_code=code)


def commit_topic(topic: Any, lines: tuple[OffsetCommitResponsePartition, ...]) -> Struct:
    return OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=lines)
