"""CreateTopics, 2 to 7: create topics; with validate_only, check whether they could be created.

-1 partitions or replicas mean the broker's defaults (version 4 on, KIP-464). The response has the number of partitions
and replicas and all settings of the new topic from version 5 on (KIP-525), its id from version 7 on. A repeated name is
refused, as are null values of settings; each topic has its own result. All topics of a request together may have at
most as many partitions as the controller creates at a time (otherwise POLICY_VIOLATION for all of them). From version 6
on, a topic above the quota on changes gets THROTTLING_QUOTA_EXCEEDED (KIP-599). A client that sets
delivery.delay.target needs the right to write to that topic.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final, cast

from ixion.broker.acl.numbers import CREATE, DESCRIBE_CONFIGS, TOPIC
from ixion.broker.acl.rights import Rights
from ixion.broker.apis.call import Call, Handle
from ixion.broker.apis.controller_calls import in_time
from ixion.broker.apis.guards.shapes import NO_TOPIC, sorted_out
from ixion.broker.apis.repeats import once, twice
from ixion.broker.apis.services import Services
from ixion.broker.apis.target_rights import check_target
from ixion.broker.controller.planning import NewTopic
from ixion.broker.controller.topics import TopicOutcome
from ixion.broker.metadata.image import TopicImage
from ixion.config.dynamic import DynamicConfig
from ixion.config.topic import TOPIC_SETTINGS
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.model.ids import ZERO_ID
from ixion.language.protocol.messages.k19_create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ixion.language.protocol.notation import Struct
from ixion.timer.turns import Steps, in_turns

REPEATS: Final = {
    "topics": twice("name", assignments=twice("partition_index", broker_ids=twice()), configs=once("name"))
}

SETTINGS_SINCE: Final = 5
CLUSTER_METADATA: Final = "__cluster_metadata"  # the metadata log of KRaft; tools would mistake a topic for it


def make(services: Services) -> Handle:
    controller = services.controller
    config = services.config
    timer = services.timer

    async def handle(call: Call) -> CreateTopicsResponse:
        request = cast(CreateTopicsRequest, call.body)
        outcomes, wanted = await in_turns(wishes_of(request, call.rights))
        if wanted:
            try:
                work = controller.topics.create(wanted, request.validate_only, call.charge)
                made = await in_time(timer, request.timeout_ms, work)
            except KafkaError as error:
                made = [TopicOutcome(name=wish.name, code=error.code, message=error.message) for wish in wanted]
            for outcome in made:
                outcomes[outcome.name] = outcome
        results = await in_turns(results_of(config, list(outcomes.values()), call.version, request.validate_only))
        return CreateTopicsResponse(topics=tuple(results))

    return handle


def wishes_of(
    request: CreateTopicsRequest, rights: Rights | None
) -> Steps[tuple[dict[str, TopicOutcome], list[NewTopic]]]:
    """The outcomes by name, and the topics to create."""
    outcomes: dict[str, TopicOutcome] = {}
    wanted: list[NewTopic] = []
    times = Counter(topic.name for topic in request.topics)
    for topic in request.topics:
        if topic.name in outcomes:
            continue
        outcome = outcomes[topic.name] = TopicOutcome(name=topic.name)
        try:
            wish = wish_of(topic, times[topic.name])
            check_target(rights, wish.config)
            wanted.append(wish)
        except KafkaError as error:
            outcome.code = error.code
            outcome.message = error.message
        yield
    return outcomes, wanted


def wish_of(topic: CreatableTopic, times: int) -> NewTopic:
    if times > 1:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"topic '{topic.name}' is in the request {times} times")
    if topic.name == CLUSTER_METADATA:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{CLUSTER_METADATA} is not a topic that can be created")
    nulls = [setting.name for setting in topic.configs if setting.value is None]
    if nulls:
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"a topic setting needs a value: {', '.join(nulls)}")
    places = Counter(each.partition_index for each in topic.assignments)
    twice = [number for number, count in places.items() if count > 1]
    if twice:
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"partition {twice[0]} is assigned more than once")
    return NewTopic(
        name=topic.name,
        partitions=topic.num_partitions,
        replication=topic.replication_factor,
        assignment={each.partition_index: tuple(each.broker_ids) for each in topic.assignments},
        config={setting.name: setting.value or "" for setting in topic.configs},
    )


def results_of(
    config: DynamicConfig, outcomes: Sequence[TopicOutcome], version: int, validate_only: bool
) -> Steps[list[CreatableTopicResult]]:
    results = []
    described: dict[tuple[tuple[str, str], ...], tuple[CreatableTopicConfigs, ...]] = {}  # by the topic's own settings
    for outcome in outcomes:
        settings: tuple[CreatableTopicConfigs, ...] = ()
        topic = outcome.topic
        if version >= SETTINGS_SINCE and topic is not None:
            own = tuple(topic.config.items())
            if own not in described:
                described[own] = settings_of(config, topic)
            settings = described[own]
        results.append(result_of(outcome, settings, validate_only))
        yield
    return results


def result_of(
    outcome: TopicOutcome, settings: tuple[CreatableTopicConfigs, ...], validate_only: bool
) -> CreatableTopicResult:
    topic = outcome.topic
    if outcome.code != ErrorCode.NONE or topic is None:
        # A topic that was not created has no settings; as in Kafka an empty list, not null.
        return CreatableTopicResult(
            name=outcome.name,
            topic_id=ZERO_ID,
            error_code=outcome.code,
            error_message=outcome.message,
            topic_config_error_code=ErrorCode.NONE,
            configs=(),
        )
    return CreatableTopicResult(
        name=topic.name,
        topic_id=ZERO_ID if validate_only else topic.topic_id,
        error_code=ErrorCode.NONE,
        error_message=None,
        topic_config_error_code=ErrorCode.NONE,
        num_partitions=len(topic.partitions),
        replication_factor=len(topic.partitions[0].replicas),
        configs=settings,
    )


def settings_of(config: DynamicConfig, topic: TopicImage) -> tuple[CreatableTopicConfigs, ...]:
    found = []
    for name in sorted(TOPIC_SETTINGS):
        described = config.describe_topic(name, topic.config)
        found.append(
            CreatableTopicConfigs(
                name=name,
                value=described.value,
                read_only=described.read_only,
                config_source=described.source,
                is_sensitive=described.sensitive,
            )
        )
    return tuple(found)


def guard(call: Call, rights: Rights) -> Steps[Struct | None]:
    """CREATE on the cluster or on the topic; the response has the settings if the client may describe them."""
    request = cast(CreateTopicsRequest, call.body)
    everywhere = rights.sees_in_cluster(CREATE)
    kept, others = yield from sorted_out(
        request.topics, lambda topic: everywhere or rights.may(CREATE, TOPIC, topic.name)
    )
    refused = [
        CreatableTopicResult(
            name=name, topic_id=ZERO_ID, error_code=NO_TOPIC, error_message=NO_TOPIC.explanation, configs=()
        )
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
                    topic_config_error_code=NO_TOPIC, configs=None, num_partitions=-1, replication_factor=-1
                )
            topics.append(topic)
            yield
        return answer.replace(topics=(*topics, *refused))

    call.amend = amend
    return None


RIGHTS: Final = guard
