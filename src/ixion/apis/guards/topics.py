"""Rules of the APIs about topics: a client does not see topics that it may not describe."""

from __future__ import annotations

from typing import Final, cast

from ixion.acl.numbers import ALTER, CLUSTER_ACTION, CREATE, DELETE, DESCRIBE, DESCRIBE_CONFIGS, READ, TOPIC
from ixion.acl.rights import Rights
from ixion.apis.call import Call
from ixion.apis.guards.guard import Guard
from ixion.apis.guards.shapes import appended, on_topics, sorted_out
from ixion.apis.operations import NOT_ASKED
from ixion.config.cluster_settings import AUTO_CREATE_TOPICS_ENABLE, DELETE_TOPIC_ENABLE
from ixion.config.dynamic import DynamicConfig
from ixion.metadata.image import ClusterImage
from ixion.model.errors import ErrorCode
from ixion.model.ids import ZERO_ID
from ixion.protocol.messages.k02_list_offsets import ListOffsetsPartitionResponse, ListOffsetsTopicResponse
from ixion.protocol.messages.k03_metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponseTopic,
)
from ixion.protocol.messages.k19_create_topics import CreatableTopicResult, CreateTopicsRequest, CreateTopicsResponse
from ixion.protocol.messages.k20_delete_topics import DeletableTopicResult, DeleteTopicsRequest
from ixion.protocol.messages.k21_delete_records import DeleteRecordsPartitionResult, DeleteRecordsTopicResult
from ixion.protocol.messages.k23_offset_for_leader_epoch import EpochEndOffset, OffsetForLeaderTopicResult
from ixion.protocol.messages.k37_create_partitions import CreatePartitionsRequest, CreatePartitionsTopicResult
from ixion.protocol.messages.k61_describe_producers import PartitionResponse, TopicResponse
from ixion.protocol.notation import Struct
from ixion.timer.turns import Steps

REFUSED: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED
REFUSED_TEXT: Final = REFUSED.explanation

list_offsets = on_topics(
    DESCRIBE,
    lambda wish: ListOffsetsPartitionResponse(partition_index=wish.partition_index, error_code=REFUSED),
    lambda topic, lines: ListOffsetsTopicResponse(name=topic.name, partitions=lines),
)

delete_records = on_topics(
    DELETE,
    lambda wish: DeleteRecordsPartitionResult(
        partition_index=wish.partition_index, low_watermark=-1, error_code=REFUSED
    ),
    lambda topic, lines: DeleteRecordsTopicResult(name=topic.name, partitions=lines),
)

_leader_epochs_of_clients = on_topics(
    DESCRIBE,
    lambda wish: EpochEndOffset(error_code=REFUSED, partition=wish.partition),
    lambda topic, lines: OffsetForLeaderTopicResult(topic=topic.topic, partitions=lines),
    name="topic",
)


def offset_for_leader_epoch(call: Call, rights: Rights) -> Steps[Struct | None]:
    """DESCRIBE on each topic; followers (CLUSTER_ACTION) may ask about every topic."""
    if not rights.sees_in_cluster(CLUSTER_ACTION):
        yield from _leader_epochs_of_clients(call, rights)
    return None


def metadata(image: ClusterImage, config: DynamicConfig) -> Guard:
    """Named topics need DESCRIBE, or CREATE if they are missing. A request for all topics gets those the client may
    describe."""

    def guard(call: Call, rights: Rights) -> Steps[Struct | None]:
        request = cast(MetadataRequest, call.body)
        refused: list[MetadataResponseTopic] = []
        if request.topics:
            creating = request.allow_auto_topic_creation and config.current[AUTO_CREATE_TOPICS_ENABLE]
            may_create_all = creating and rights.sees_in_cluster(CREATE)

            def keep(topic: MetadataRequestTopic) -> bool:
                name = topic.name
                if name is None:
                    known = image.ids.get(topic.topic_id)
                    return known is None or rights.may(DESCRIBE, TOPIC, known.name)
                if not rights.may(DESCRIBE, TOPIC, name):
                    return False
                return name in image.topics or not creating or may_create_all or rights.may(CREATE, TOPIC, name)

            kept, others = yield from sorted_out(request.topics, keep)
            if others:
                for topic in others:
                    refused.append(_refused_metadata(topic))
                    yield
                call.narrow(request.replace(topics=tuple(kept)))
                call.amend = appended("topics", refused)
        return None

    return guard


def _refused_metadata(topic: MetadataRequestTopic) -> MetadataResponseTopic:
    by_id = topic.name is None
    return MetadataResponseTopic(
        error_code=REFUSED,
        name=topic.name,
        topic_id=topic.topic_id if by_id else ZERO_ID,
        is_internal=False,
        partitions=(),
        topic_authorized_operations=NOT_ASKED,
    )


def create_topics(call: Call, rights: Rights) -> Steps[Struct | None]:
    """CREATE on the cluster or on the topic; the response has the settings if the client may describe them."""
    request = cast(CreateTopicsRequest, call.body)
    everywhere = rights.sees_in_cluster(CREATE)
    kept, others = yield from sorted_out(
        request.topics, lambda topic: everywhere or rights.may(CREATE, TOPIC, topic.name)
    )
    refused = [
        CreatableTopicResult(name=name, topic_id=ZERO_ID, error_code=REFUSED, error_message=REFUSED_TEXT, configs=())
        for name in dict.fromkeys(topic.name for topic in others)
    ]
    if others:
        call.narrow(request.replace(topics=tuple(kept)))

    def amend(body: Struct) -> Steps[Struct]:
        answer = cast(CreateTopicsResponse, body)
        topics: list[CreatableTopicResult] = []
        for topic in answer.topics:
            if topic.error_code == ErrorCode.NONE and not rights.sees(DESCRIBE_CONFIGS, TOPIC, topic.name):
                topic = topic.replace(
                    topic_config_error_code=REFUSED, configs=None, num_partitions=-1, replication_factor=-1
                )
            topics.append(topic)
            yield
        return answer.replace(topics=(*topics, *refused))

    call.amend = amend
    return None


def delete_topics(image: ClusterImage, config: DynamicConfig) -> Guard:
    """DELETE on the topic. The response has the name of a topic id if the client may describe the topic."""

    def guard(call: Call, rights: Rights) -> Steps[Struct | None]:
        request = cast(DeleteTopicsRequest, call.body)
        if not config.current[DELETE_TOPIC_ENABLE]:
            return None

        refused: list[Struct] = []

        def keep(name: str | None, topic_id: bytes) -> bool:
            found = name
            if name is None:
                known = image.ids.get(topic_id)
                if known is None:
                    return True
                found = known.name
            assert found is not None
            if rights.may(DELETE, TOPIC, found):
                return True
            shown = found if name is not None or rights.sees(DESCRIBE, TOPIC, found) else None
            refused.append(
                DeletableTopicResult(name=shown, topic_id=topic_id, error_code=REFUSED, error_message=REFUSED_TEXT)
            )
            return False

        states, _ = yield from sorted_out(request.topics, lambda state: keep(state.name, state.topic_id))
        names, _ = yield from sorted_out(request.topic_names, lambda name: keep(name, ZERO_ID))
        if refused:
            call.narrow(request.replace(topics=tuple(states), topic_names=tuple(names)))
            call.amend = appended("responses", refused)
        return None

    return guard


def create_partitions(call: Call, rights: Rights) -> Steps[Struct | None]:
    request = cast(CreatePartitionsRequest, call.body)
    kept, others = yield from sorted_out(request.topics, lambda topic: rights.may(ALTER, TOPIC, topic.name))
    if others:
        call.narrow(request.replace(topics=tuple(kept)))
        refused = [
            CreatePartitionsTopicResult(name=name, error_code=REFUSED, error_message=REFUSED_TEXT)
            for name in dict.fromkeys(topic.name for topic in others)
        ]
        call.amend = appended("results", refused)
    return None


describe_producers = on_topics(
    READ,
    lambda number: PartitionResponse(
        partition_index=number, error_code=REFUSED, error_message=REFUSED_TEXT, active_producers=()
    ),
    lambda topic, lines: TopicResponse(name=topic.name, partitions=lines),
    partitions="partition_indexes",
)
