"""DescribeTopicPartitions, 0: topics and their partitions, page by page (KIP-966).

Topics are sorted by name; no names mean all topics. A response has at most as many partitions as the request and
max.request.partition.size.limit allow, and a cursor at which the next page begins:

    limit 3, topics a (2 partitions) and b (2)     a-0 a-1 b-0, next: b from 1 on
    cursor (b, 1)                                  b-1

With an invalid cursor each named topic gets INVALID_REQUEST.
We do not track eligible leader replicas (ELR).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from ixion.broker.acl.numbers import DESCRIBE, TOPIC
from ixion.broker.apis.call import Call, Handle
from ixion.broker.apis.guards.guard import IN_HANDLER
from ixion.broker.apis.operations import NOT_ASKED, topic_operations
from ixion.broker.apis.repeats import once
from ixion.broker.apis.services import Services
from ixion.broker.metadata.image import ClusterImage, PartitionImage
from ixion.broker.replica.internal_topic import INTERNAL
from ixion.config.network_settings import MAX_REQUEST_PARTITION_SIZE_LIMIT
from ixion.language.model.errors import ErrorCode
from ixion.language.model.ids import ZERO_ID
from ixion.language.model.topic_name import is_topic_name
from ixion.language.protocol.messages.k75_describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
    TopicRequest,
)
from ixion.timer.turns import Steps, map_steps, sort_steps

if TYPE_CHECKING:
    from ixion.broker.acl.rights import Rights

REPEATS: Final = {"topics": once("name")}
RIGHTS: Final = IN_HANDLER  # DESCRIBE topic, before the response is split into pages


def make(services: Services) -> Handle:
    image = services.image
    config = services.config

    def handle(call: Call) -> Steps[DescribeTopicPartitionsResponse]:
        request = cast(DescribeTopicPartitionsRequest, call.body)
        limit = config.current[MAX_REQUEST_PARTITION_SIZE_LIMIT]
        room = max(min(limit, request.response_partition_limit), 1)
        named: set[str] = set()
        for wish in request.topics:
            named.add(wish.name)
            yield
        cursor = request.cursor
        first = ("", 0) if cursor is None else (cursor.topic_name, cursor.partition_index)
        if first[1] < 0 or (named and cursor is not None and first[0] not in named):
            refused = yield from map_steps(refuse, request.topics)
            return DescribeTopicPartitionsResponse(topics=tuple(refused))
        topics: list[DescribeTopicPartitionsResponseTopic] = []
        following = None
        rights = call.rights
        shown = [each for each in named or image.topics if each >= first[0]]
        hidden: list[str] = []
        if rights is not None:
            shown, hidden = yield from visible(rights, shown, bool(named))
        for name in (yield from sort_steps(shown)):
            yield
            if room == 0:
                following = Cursor(topic_name=name, partition_index=0)
                break
            topic = image.topics.get(name)
            if topic is None:
                topics.append(missing(name, topic_operations(rights, name)))
                continue
            begin = first[1] if name == first[0] else 0
            page = topic.partitions[begin : begin + room]
            room -= len(page)
            topics.append(
                DescribeTopicPartitionsResponseTopic(
                    error_code=ErrorCode.NONE,
                    name=name,
                    topic_id=topic.topic_id,
                    is_internal=name in INTERNAL,
                    partitions=tuple(describe(image, each, call.listener) for each in page),
                    topic_authorized_operations=topic_operations(rights, name),
                )
            )
            if begin + len(page) < len(topic.partitions):
                following = Cursor(topic_name=name, partition_index=begin + len(page))
                break
        topics += [failed(name, ErrorCode.TOPIC_AUTHORIZATION_FAILED) for name in hidden]
        return DescribeTopicPartitionsResponse(topics=tuple(topics), next_cursor=following)

    return handle


def visible(rights: Rights, names: list[str], named: bool) -> Steps[tuple[list[str], list[str]]]:
    """The topics that the client may describe; and the others, if the client named them."""
    kept: list[str] = []
    others: list[str] = []
    for name in names:
        if rights.may(DESCRIBE, TOPIC, name) if named else rights.sees(DESCRIBE, TOPIC, name):
            kept.append(name)
        elif named:
            others.append(name)
        yield
    return kept, others


def describe(image: ClusterImage, partition: PartitionImage, listener: str) -> DescribeTopicPartitionsResponsePartition:
    code, leader = ErrorCode.NONE, partition.leader
    if leader < 0:
        code = ErrorCode.LEADER_NOT_AVAILABLE
    elif leader not in image.brokers or listener not in image.brokers[leader].endpoints:
        code, leader = ErrorCode.LISTENER_NOT_FOUND, -1
    return DescribeTopicPartitionsResponsePartition(
        error_code=code,
        partition_index=partition.number,
        leader_id=leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=partition.replicas,
        isr_nodes=partition.isr,
        eligible_leader_replicas=(),
        last_known_elr=(),
        offline_replicas=partition.offline,
    )


def refuse(topic: TopicRequest) -> DescribeTopicPartitionsResponseTopic:
    return failed(topic.name, ErrorCode.INVALID_REQUEST)


def missing(name: str, operations: int) -> DescribeTopicPartitionsResponseTopic:
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_topic_name(name) else ErrorCode.INVALID_TOPIC_EXCEPTION
    return failed(name, code, operations)


def failed(name: str, code: ErrorCode, operations: int = NOT_ASKED) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        error_code=code,
        name=name,
        topic_id=ZERO_ID,
        is_internal=name in INTERNAL,
        partitions=(),
        topic_authorized_operations=operations,
    )
