"""The codes are those that Apache Kafka 4.3.0 gave to the same requests."""

from __future__ import annotations

import pytest

from ixion.broker.metadata.image import TopicImage
from ixion.broker.startup.broker import Broker as RealBroker
from ixion.config.dynamic import Source
from ixion.language.model.errors import ErrorCode
from ixion.language.model.ids import ZERO_ID
from ixion.language.protocol.messages.k19_create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ixion.language.protocol.registry import ApiKey
from ixion.testing.broker import Broker
from tests.apis.asking import Asking, versions


def wish(
    name: str,
    partitions: int = 1,
    replication: int = 1,
    config: dict[str, str | None] | None = None,
    assignment: list[tuple[int, tuple[int, ...]]] | None = None,
) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replication,
        configs=tuple(CreatableTopicConfig(name=key, value=value) for key, value in (config or {}).items()),
        assignments=tuple(
            CreatableReplicaAssignment(partition_index=number, broker_ids=brokers)
            for number, brokers in assignment or ()
        ),
    )


def create(asking: Asking, *topics: CreatableTopic, validate_only: bool = False) -> list[CreatableTopicResult]:
    request = CreateTopicsRequest(topics=topics, timeout_ms=5000, validate_only=validate_only)
    return list(asking.ask(request, CreateTopicsResponse).topics)


def test_topics_are_made_in_every_version(broker: Broker, asking: Asking) -> None:
    for version in versions(ApiKey.CREATE_TOPICS):
        request = CreateTopicsRequest(topics=(wish(f"v{version}", 3),))
        (made,) = asking.ask(request, CreateTopicsResponse, version).topics
        topic = topic_of(broker, made.name)
        assert (made.error_code, made.error_message) == (ErrorCode.NONE, None)
        assert len(topic.partitions) == 3
        assert made.topic_id == (topic.topic_id if version >= 7 else ZERO_ID)
        assert (made.num_partitions, made.replication_factor) == ((3, 1) if version >= 5 else (-1, -1))
        assert bool(made.configs) is (version >= 5)


def topic_of(broker: Broker, name: str) -> TopicImage:
    async def find(running: RealBroker) -> TopicImage:
        return running.parts.image.topics[name]

    return broker.call(find)


def test_the_settings_of_a_new_topic_say_where_they_come_from(asking: Asking) -> None:
    (made,) = create(asking, wish("configured", config={"retention.ms": "1234"}))
    assert made.configs is not None
    settings = {each.name: each for each in made.configs}
    assert list(settings) == sorted(settings)
    assert (settings["retention.ms"].value, settings["retention.ms"].config_source) == ("1234", Source.TOPIC)
    assert (settings["segment.bytes"].value, settings["segment.bytes"].config_source) == ("1073741824", Source.DEFAULT)
    assert not any(each.read_only or each.is_sensitive for each in made.configs)


def test_defaults_come_from_the_broker() -> None:
    with Broker({"num.partitions": 4}) as broker, Asking(broker.bootstrap) as asking:
        (made,) = create(asking, wish("default", -1, -1))
        assert (made.num_partitions, made.replication_factor) == (4, 1)


def test_validation_makes_nothing(asking: Asking) -> None:
    (checked,) = create(asking, wish("checked", 2), validate_only=True)
    assert (checked.error_code, checked.num_partitions, checked.topic_id) == (ErrorCode.NONE, 2, ZERO_ID)
    (made,) = create(asking, wish("checked", 2))
    assert made.error_code == ErrorCode.NONE


@pytest.mark.parametrize(
    ("topic", "code", "says"),
    [
        (wish("no", 0), ErrorCode.INVALID_PARTITIONS, "0"),
        (wish("no", -2), ErrorCode.INVALID_PARTITIONS, "-2"),
        (wish("no", 1, 0), ErrorCode.INVALID_REPLICATION_FACTOR, "0"),
        (wish("no", 1, 5), ErrorCode.INVALID_REPLICATION_FACTOR, "5"),
        (wish(""), ErrorCode.INVALID_TOPIC_EXCEPTION, "empty"),
        (wish("a b"), ErrorCode.INVALID_TOPIC_EXCEPTION, "a b"),
        (wish("."), ErrorCode.INVALID_TOPIC_EXCEPTION, "'.'"),
        (wish("x" * 250), ErrorCode.INVALID_TOPIC_EXCEPTION, "249"),
        (wish("__cluster_metadata"), ErrorCode.INVALID_REQUEST, "__cluster_metadata"),
        (wish("no", config={"retention.ms": None}), ErrorCode.INVALID_CONFIG, "retention.ms"),
        (wish("no", config={"retention.ms": "soon"}), ErrorCode.INVALID_CONFIG, "soon"),
        (wish("no", config={"retention.mss": "1"}), ErrorCode.INVALID_CONFIG, "did you mean 'retention.ms'?"),
        (wish("no", 2, -1, assignment=[(0, (0,))]), ErrorCode.INVALID_REQUEST, "assignment"),
        (wish("no", -1, -1, assignment=[(1, (0,))]), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "[1]"),
        (wish("no", -1, -1, assignment=[(0, (0,)), (0, (0,))]), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "partition 0"),
        (wish("no", -1, -1, assignment=[(0, (77,))]), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "77"),
        (wish("no", -1, -1, assignment=[(0, ())]), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "no replicas"),
    ],
)
def test_what_cannot_be_made_is_refused(asking: Asking, topic: CreatableTopic, code: ErrorCode, says: str) -> None:
    (refused,) = create(asking, topic)
    assert refused.error_code == code
    assert says in (refused.error_message or "")
    assert refused.topic_id == ZERO_ID
    assert refused.configs == ()


def test_one_that_is_refused_does_not_hold_up_the_others(asking: Asking) -> None:
    results = create(asking, wish("mixed"), wish("mixed-bad", 0), wish("twice"), wish("twice", 2))
    assert [(each.name, each.error_code) for each in results] == [
        ("mixed", ErrorCode.NONE),
        ("mixed-bad", ErrorCode.INVALID_PARTITIONS),
        ("twice", ErrorCode.INVALID_REQUEST),
    ]
    (again,) = create(asking, wish("mixed"))
    assert again.error_code == ErrorCode.TOPIC_ALREADY_EXISTS
    (made,) = create(asking, wish("a.b"))
    (alike,) = create(asking, wish("a_b"))
    assert (made.error_code, alike.error_code) == (ErrorCode.NONE, ErrorCode.INVALID_TOPIC_EXCEPTION)


def test_an_assignment_is_taken_as_given(broker: Broker, asking: Asking) -> None:
    (made,) = create(asking, wish("placed", -1, -1, assignment=[(1, (broker_id(broker),)), (0, (broker_id(broker),))]))
    assert (made.error_code, made.num_partitions, made.replication_factor) == (ErrorCode.NONE, 2, 1)


def broker_id(broker: Broker) -> int:
    async def find(running: RealBroker) -> int:
        return running.parts.node_id

    return broker.call(find)


def test_the_partitions_of_one_request_are_limited(asking: Asking) -> None:
    topics = [wish(f"huge{number}", 9_999) for number in range(200)]
    for validate_only in (True, False):
        made = create(asking, *topics, validate_only=validate_only)
        assert {topic.error_code for topic in made} == {ErrorCode.POLICY_VIOLATION}
        assert len(made) == 200
    (large,) = create(asking, wish("huge", 9_999), validate_only=True)
    assert (large.error_code, large.num_partitions) == (ErrorCode.NONE, 9_999)
