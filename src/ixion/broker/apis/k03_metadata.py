"""Metadata, 0 to 13: brokers, controller, and where the partitions of topics are.

In version 0 an empty list of topics means all topics, later null does. A missing topic is created if
auto.create.topics.enable and the client allow it (version 4 on has a flag for it), and the same response has its
leaders; a topic that cannot be created gets the error. Version 10 brought topic ids, 12 requests by id; 8 to 10 have
the authorized operations of the cluster, 8 on those of topics; 13 an error for the whole response (never set here: no
client has to go back to the bootstrap servers). Addresses are those of the client's listener.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, cast

from ixion.broker.acl.numbers import CREATE, DESCRIBE, TOPIC
from ixion.broker.apis.call import Call, Handle, Work
from ixion.broker.apis.controller_calls import translated
from ixion.broker.apis.guards.guard import Guard
from ixion.broker.apis.guards.shapes import NO_TOPIC, appended, sorted_out
from ixion.broker.apis.operations import NOT_ASKED, cluster_operations, topic_operations
from ixion.broker.apis.repeats import either
from ixion.broker.apis.services import Services
from ixion.broker.controller.planning import NewTopic
from ixion.broker.metadata.image import ClusterImage, TopicImage
from ixion.broker.replica.internal_topic import INTERNAL
from ixion.config.cluster_settings import AUTO_CREATE_TOPICS_ENABLE, NUM_PARTITIONS
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.model.ids import ZERO_ID
from ixion.language.model.topic_name import is_topic_name
from ixion.language.protocol.messages.k03_metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ixion.language.protocol.notation import Struct
from ixion.timer.turns import Steps, in_turns

if TYPE_CHECKING:
    from ixion.broker.acl.rights import Rights

REPEATS: Final = {"topics": either("topic_id", "name")}

IDS_SINCE: Final = 12  # in requests; 10 and 11 have the field, but Kafka refuses it


def make(services: Services) -> Handle:
    image = services.image
    config = services.config
    create_topics = services.create_topics
    internal_topics = services.internal_topics

    def handle(call: Call) -> Work:
        request = cast(MetadataRequest, call.body)
        if call.version < IDS_SINCE and any(map(is_by_id, request.topics or ())):
            return refused_ids(request)
        if request.topics is not None and request.allow_auto_topic_creation and any_missing(request):
            allowed = config.current[AUTO_CREATE_TOPICS_ENABLE]
            if allowed:
                return create_and_answer(call)
        return answer(call)

    def any_missing(request: MetadataRequest) -> bool:
        topics = request.topics or ()
        if any(map(is_by_id, topics)):
            return False  # names do not count then
        return any(topic.name is not None and topic.name not in image.topics for topic in topics)

    async def create_and_answer(call: Call) -> MetadataResponse:
        request = cast(MetadataRequest, call.body)
        wanted, refused = await in_turns(missing(request))
        for name in [name for name in wanted if name in internal_topics]:
            del wanted[name]
            try:
                await translated(internal_topics[name].ensure())
            except KafkaError as error:
                refused[name] = error.code
        if wanted:
            try:
                outcomes = await translated(create_topics(list(wanted.values())))
                refused |= {
                    outcome.name: outcome.code
                    for outcome in outcomes
                    if outcome.code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
                }
                made = sum(outcome.code is ErrorCode.NONE for outcome in outcomes)
                if made:
                    call.charge(made * config.current[NUM_PARTITIONS])
            except KafkaError as error:
                refused |= dict.fromkeys(wanted, error.code)
        return await in_turns(answer(call, refused))

    def missing(request: MetadataRequest) -> Steps[tuple[dict[str, NewTopic], dict[str, ErrorCode]]]:
        """The missing topics to create, and those with an invalid name."""
        wanted: dict[str, NewTopic] = {}
        refused: dict[str, ErrorCode] = {}
        for topic in request.topics or ():
            name = topic.name
            if name is not None and name not in image.topics:
                if is_topic_name(name):
                    wanted[name] = NewTopic(name=name)
                else:
                    refused[name] = ErrorCode.INVALID_TOPIC_EXCEPTION
            yield
        return wanted, refused

    def answer(call: Call, refused: Mapping[str, ErrorCode] | None = None) -> Steps[MetadataResponse]:
        request = cast(MetadataRequest, call.body)
        with_operations = request.include_topic_authorized_operations
        wanted = request.topics
        topics: list[MetadataResponseTopic] = []
        rights = call.rights
        # In version 0 an empty list means all topics, unless the guard has removed the topics that the client named.
        if wanted is None or (call.version == 0 and not wanted and call.amend is None):
            for topic in list(image.topics.values()):
                if rights is not None and not rights.sees(DESCRIBE, TOPIC, topic.name):
                    yield
                    continue
                described = yield from describe(image, topic, call, with_operations)
                topics.append(described)
        else:
            # If one topic is named by its id, only those are answered, and an id comes before a name.
            by_id = [each for each in wanted if each.topic_id != ZERO_ID]
            for each in by_id or wanted:
                known = image.ids.get(each.topic_id) if by_id else image.topics.get(each.name or "")
                if known is not None and (rights is None or rights.sees(DESCRIBE, TOPIC, known.name)):
                    described = yield from describe(image, known, call, with_operations)
                    topics.append(described)
                else:
                    topics.append(unknown(each, call.version, refused or {}))
                    yield
        return MetadataResponse(
            brokers=brokers(image, call.listener),
            cluster_id=image.cluster_id,
            controller_id=image.controller_id,
            topics=tuple(topics),
            cluster_authorized_operations=(
                cluster_operations(call.rights) if request.include_cluster_authorized_operations else NOT_ASKED
            ),
        )

    return handle


def is_by_id(topic: MetadataRequestTopic) -> bool:
    return topic.name is None or topic.topic_id != ZERO_ID


def refused_ids(request: MetadataRequest) -> MetadataResponse:
    """Versions 10 and 11 have ids, but only in answers."""
    topics = [
        MetadataResponseTopic(
            error_code=ErrorCode.INVALID_REQUEST, name=topic.name or "", topic_id=topic.topic_id, partitions=()
        )
        for topic in request.topics or ()
    ]
    return MetadataResponse(brokers=(), topics=tuple(topics))


def unknown(wanted: MetadataRequestTopic, version: int, refused: Mapping[str, ErrorCode]) -> MetadataResponseTopic:
    name = None if wanted.topic_id != ZERO_ID else wanted.name
    if name is None:
        fault = ErrorCode.UNKNOWN_TOPIC_ID
    else:
        absent = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_topic_name(name) else ErrorCode.INVALID_TOPIC_EXCEPTION
        fault = refused.get(name) or absent
    return MetadataResponseTopic(
        error_code=fault,
        name=name if name is not None or version >= 12 else "",
        topic_id=wanted.topic_id if name is None else ZERO_ID,
        is_internal=name in INTERNAL,
        partitions=(),
    )


def brokers(image: ClusterImage, listener: str) -> tuple[MetadataResponseBroker, ...]:
    found = []
    for broker in image.brokers.values():
        address = broker.endpoints.get(listener)
        if address is not None:
            found.append(
                MetadataResponseBroker(node_id=broker.broker_id, host=address[0], port=address[1], rack=broker.rack)
            )
    return tuple(found)


def describe(image: ClusterImage, topic: TopicImage, call: Call, with_operations: bool) -> Steps[MetadataResponseTopic]:
    partitions = []
    listener = call.listener
    for partition in list(topic.partitions):
        yield
        code = ErrorCode.NONE
        leader = partition.leader
        known = image.brokers.get(leader)
        if known is None:
            code = ErrorCode.LEADER_NOT_AVAILABLE
            leader = -1
        elif listener not in known.endpoints:
            code = ErrorCode.LISTENER_NOT_FOUND
            leader = -1
        partitions.append(
            MetadataResponsePartition(
                error_code=code,
                partition_index=partition.number,
                leader_id=leader,
                leader_epoch=partition.leader_epoch,
                replica_nodes=partition.replicas,
                isr_nodes=partition.isr,
                offline_replicas=partition.offline,
            )
        )
    return MetadataResponseTopic(
        error_code=ErrorCode.NONE,
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in INTERNAL,
        partitions=tuple(partitions),
        topic_authorized_operations=topic_operations(call.rights, topic.name) if with_operations else NOT_ASKED,
    )


def make_guard(services: Services) -> Guard:
    """Named topics need DESCRIBE, or CREATE if they are missing. A request for all topics gets those the client may
    describe."""

    image, config = services.image, services.config

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
        error_code=NO_TOPIC,
        name=topic.name,
        topic_id=topic.topic_id if by_id else ZERO_ID,
        is_internal=False,
        partitions=(),
        topic_authorized_operations=NOT_ASKED,
    )
