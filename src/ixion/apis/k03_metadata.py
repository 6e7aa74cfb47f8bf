"""Metadata, 0 to 13: brokers, controller, and where the partitions of topics are.

In version 0 an empty list of topics means all, later null does. A topic that is missing is created if the client and
auto.create.topics.enable allow it (version 4 on), and is there with its leaders in the same answer. Version 10 brought
topic ids, 12 asking by them; 8 to 10 the authorised operations of the cluster, 8 on those of topics; 13 an error for
the whole (never set here: nobody need start from the bootstrap servers again).
Addresses are those of the listener that the client came by.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import cast

from ixion.apis.call import Call, Handle, Outcome
from ixion.apis.operations import NOT_ASKED, ON_CLUSTER, ON_TOPIC
from ixion.apis.services import Services
from ixion.apis.unhurried import unhurried
from ixion.config.cluster_settings import AUTO_CREATE_TOPICS_ENABLE
from ixion.controller.topics import NewTopic
from ixion.log.names import check_topic_name
from ixion.metadata.image import ClusterImage, TopicImage
from ixion.model.errors import ErrorCode, KafkaError
from ixion.model.ids import ZERO_ID
from ixion.protocol.messages.k03_metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ixion.replica.internal_topic import INTERNAL


def make(services: Services) -> Handle:
    image = services.image
    config = services.config
    controller = services.controller
    internal_topics = services.internal_topics

    def handle(call: Call) -> Outcome | Awaitable[Outcome]:
        request = cast(MetadataRequest, call.body)
        if request.topics is not None and request.allow_auto_topic_creation and missing(request):
            allowed = config.current[AUTO_CREATE_TOPICS_ENABLE]
            if allowed:
                return creating(call)
        return answer(call, request)

    def missing(request: MetadataRequest) -> list[str]:
        names = [topic.name for topic in request.topics or () if topic.name is not None]
        return [name for name in dict.fromkeys(names) if name not in image.topics]

    async def create_and_answer(call: Call) -> MetadataResponse:
        request = cast(MetadataRequest, call.body)
        plain = []
        refused: dict[str, ErrorCode] = {}
        for name in missing(request):
            if name in internal_topics:
                try:
                    await internal_topics[name].ensure()
                except KafkaError as error:
                    refused[name] = error.code
            elif _name_fault(name) == ErrorCode.NONE:
                plain.append(NewTopic(name=name))
        outcomes = await controller.create_topics(plain) if plain else []
        refused |= {
            outcome.name: outcome.code
            for outcome in outcomes
            if outcome.code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
        }
        return answer(call, request, refused)

    def answer(call: Call, request: MetadataRequest, refused: dict[str, ErrorCode] | None = None) -> MetadataResponse:
        with_operations = request.include_topic_authorized_operations
        wanted = request.topics
        topics: list[MetadataResponseTopic] = []
        if wanted is None or (call.version == 0 and not wanted):
            topics = [describe(image, topic, call.listener, with_operations) for topic in image.topics.values()]
        else:
            for each in wanted:
                topic: TopicImage | None
                if each.name is not None:
                    topic = image.topics.get(each.name)
                    fault = (
                        _name_fault(each.name)
                        or (refused or {}).get(each.name)
                        or (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                    )
                else:
                    topic = image.ids.get(each.topic_id)
                    fault = ErrorCode.UNKNOWN_TOPIC_ID
                if topic is not None:
                    topics.append(describe(image, topic, call.listener, with_operations))
                else:
                    topics.append(
                        MetadataResponseTopic(
                            error_code=fault,
                            name=each.name if each.name is not None or call.version >= 12 else "",
                            topic_id=each.topic_id if each.name is None else ZERO_ID,
                            is_internal=each.name in INTERNAL,
                            partitions=(),
                        )
                    )
        return MetadataResponse(
            brokers=brokers(image, call.listener),
            cluster_id=image.cluster_id,
            controller_id=image.controller_id,
            topics=tuple(topics),
            cluster_authorized_operations=(ON_CLUSTER if request.include_cluster_authorized_operations else NOT_ASKED),
        )

    creating = unhurried(create_and_answer)
    return handle


def brokers(image: ClusterImage, listener: str) -> tuple[MetadataResponseBroker, ...]:
    found = []
    for broker in image.brokers.values():
        address = broker.endpoints.get(listener)
        if address is not None:
            found.append(
                MetadataResponseBroker(node_id=broker.broker_id, host=address[0], port=address[1], rack=broker.rack)
            )
    return tuple(found)


def describe(image: ClusterImage, topic: TopicImage, listener: str, with_operations: bool) -> MetadataResponseTopic:
    partitions = []
    for partition in topic.partitions:
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
        topic_authorized_operations=ON_TOPIC if with_operations else NOT_ASKED,
    )


def _name_fault(name: str) -> ErrorCode:
    try:
        check_topic_name(name)
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE
