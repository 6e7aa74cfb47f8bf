"""The codes are those that Apache Kafka 4.3.0 gave to the same requests."""

from __future__ import annotations

from ixion.language.model.errors import ErrorCode
from ixion.language.model.ids import ZERO_ID
from ixion.language.protocol.messages.k03_metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ixion.language.protocol.messages.k20_delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from ixion.language.protocol.registry import ApiKey
from ixion.testing.broker import Broker
from tests.apis.asking import Asking, versions

Wish = tuple[str | None, bytes]


def delete(asking: Asking, *topics: Wish) -> list[DeletableTopicResult]:
    states = tuple(DeleteTopicState(name=name, topic_id=topic_id) for name, topic_id in topics)
    request = DeleteTopicsRequest(topics=states, topic_names=(), timeout_ms=5000)
    return list(asking.ask(request, DeleteTopicsResponse).responses)


def id_of(asking: Asking, name: str) -> bytes | None:
    wanted = MetadataRequestTopic(topic_id=ZERO_ID, name=name)
    request = MetadataRequest(
        topics=(wanted,), allow_auto_topic_creation=False, include_topic_authorized_operations=False
    )
    (topic,) = asking.ask(request, MetadataResponse).topics
    return None if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION else topic.topic_id


def test_topics_go_in_every_version(broker: Broker, asking: Asking) -> None:
    for version in versions(ApiKey.DELETE_TOPICS):
        broker.create_topic("goes")
        known = id_of(asking, "goes")
        states = (DeleteTopicState(name="goes", topic_id=ZERO_ID),) if version >= 6 else ()
        request = DeleteTopicsRequest(topics=states, topic_names=("goes",) if version < 6 else (), timeout_ms=5000)
        (gone,) = asking.ask(request, DeleteTopicsResponse, version).responses
        assert (gone.name, gone.error_code) == ("goes", ErrorCode.NONE)
        assert gone.topic_id == (known if version >= 6 else ZERO_ID)
        assert id_of(asking, "goes") is None


def test_a_topic_goes_by_its_id_and_comes_back_with_another(broker: Broker, asking: Asking) -> None:
    broker.create_topic("by-id")
    first = id_of(asking, "by-id") or b""
    (gone,) = delete(asking, (None, first))
    assert (gone.name, gone.topic_id, gone.error_code) == ("by-id", first, ErrorCode.NONE)
    (again,) = delete(asking, (None, first))
    assert (again.name, again.error_code) == (None, ErrorCode.UNKNOWN_TOPIC_ID)
    broker.create_topic("by-id")
    assert id_of(asking, "by-id") not in (None, first)


def test_each_is_answered_for_itself(broker: Broker, asking: Asking) -> None:
    for name in ("one", "two", "three"):
        broker.create_topic(name)
    two = id_of(asking, "two") or b""
    three = id_of(asking, "three") or b""
    results = delete(
        asking,
        ("one", ZERO_ID),
        ("none", ZERO_ID),
        (None, ZERO_ID),
        ("two", two),
        ("three", ZERO_ID),
        (None, three),
    )
    assert {(each.name, each.topic_id != ZERO_ID, each.error_code) for each in results} == {
        ("one", True, ErrorCode.NONE),
        ("none", False, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (None, False, ErrorCode.INVALID_REQUEST),
        ("two", True, ErrorCode.INVALID_REQUEST),
        ("three", True, ErrorCode.INVALID_REQUEST),
    }
    assert all(each.error_message for each in results if each.error_code != ErrorCode.NONE)
    assert id_of(asking, "two") == two
    assert id_of(asking, "three") == three


def test_what_is_named_twice_is_not_touched(broker: Broker, asking: Asking) -> None:
    broker.create_topic("twice")
    (refused,) = delete(asking, ("twice", ZERO_ID), ("twice", ZERO_ID))
    assert refused.error_code == ErrorCode.INVALID_REQUEST
    assert id_of(asking, "twice") is not None


def test_where_topics_cannot_be_deleted_none_is() -> None:
    with Broker({"delete.topic.enable": False}) as broker, Asking(broker.bootstrap) as asking:
        broker.create_topic("stays")
        (refused,) = delete(asking, ("stays", ZERO_ID))
        assert refused.error_code == ErrorCode.TOPIC_DELETION_DISABLED
        old = DeleteTopicsRequest(topics=(), topic_names=("stays",), timeout_ms=5000)
        (refused,) = asking.ask(old, DeleteTopicsResponse, 1).responses
        assert refused.error_code == ErrorCode.INVALID_REQUEST
        assert id_of(asking, "stays") is not None
