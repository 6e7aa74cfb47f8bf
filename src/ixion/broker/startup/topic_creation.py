"""Creates topics that a client or a coordinator needs, by the controller, on any broker.

A controller on this broker is called directly. Another one gets CreateTopics; the topic is in the cluster image a
moment after its answer, when UpdateMetadata has come.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, cast

from ixion.broker.controller.planning import NewTopic
from ixion.broker.controller.topics import TopicOutcome
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.registry import ApiKey

if TYPE_CHECKING:
    from ixion.broker.startup.parts import Parts
    from ixion.language.protocol.messages.k19_create_topics import CreatableTopic, CreateTopicsResponse

OLDEST: Final = 4  # the first version in which -1 means the controller's defaults
NEWEST: Final = 7
TIMEOUT_MS: Final = 10_000


async def create_topics(parts: Parts, wanted: Sequence[NewTopic]) -> list[TopicOutcome]:
    """An outcome for each topic, in their order. A retriable KafkaError if no controller answers."""
    controller = parts.to_controller
    if controller is None or parts.image.controller_id == parts.node_id:
        return await parts.controller.topics.create(wanted)
    from ixion.clients.faults import error_code
    from ixion.language.protocol.messages.k19_create_topics import CreateTopicsRequest

    request = CreateTopicsRequest(topics=tuple(map(wish_of, wanted)), timeout_ms=TIMEOUT_MS)
    try:
        version = await controller.version(ApiKey.CREATE_TOPICS, oldest=OLDEST, newest=NEWEST)
        answer = cast("CreateTopicsResponse", await controller.ask(ApiKey.CREATE_TOPICS, version, request))
    except KafkaError as error:
        raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"the controller does not answer: {error}") from error
    return [
        TopicOutcome(name=each.name, code=error_code(each.error_code), message=each.error_message)
        for each in answer.topics
    ]


def wish_of(topic: NewTopic) -> CreatableTopic:
    from ixion.language.protocol.messages.k19_create_topics import (
        CreatableReplicaAssignment,
        CreatableTopic,
        CreatableTopicConfig,
    )

    return CreatableTopic(
        name=topic.name,
        num_partitions=-1 if topic.assignment else topic.partitions,
        replication_factor=-1 if topic.assignment else topic.replication,
        assignments=tuple(
            CreatableReplicaAssignment(partition_index=number, broker_ids=tuple(brokers))
            for number, brokers in topic.assignment.items()
        ),
        configs=tuple(CreatableTopicConfig(name=name, value=value) for name, value in topic.config.items()),
    )
