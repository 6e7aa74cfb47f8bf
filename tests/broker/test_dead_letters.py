"""Dead letters on a running broker: what a topic refuses, and the right to name one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ixion.clients import Admin, Consumer, Producer, ShareConsumer, TopicPartition
from ixion.clients.admin.configs import Resource
from ixion.clients.admin.topics import NewTopic
from ixion.language.model.acl_names import Operation, ResourceKind
from ixion.language.model.errors import ErrorCode
from ixion.language.model.resource_type import ResourceType
from ixion.language.protocol.messages import k44_incremental_alter_configs as k44
from ixion.testing import Broker
from tests.apis.guards.secured import AskingAs, allow, rule, secured

ENABLED = {"errors.deadletterqueue.group.enable": "true"}
COPIES = {"errors.deadletterqueue.copy.record.enable": "true", "share.auto.offset.reset": "earliest"}


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with Broker() as broker:
        yield broker.bootstrap


def letters(bootstrap: str, topic: str, count: int) -> list[tuple[int, bytes | None, dict[str, bytes | None]]]:
    found: list[tuple[int, bytes | None, dict[str, bytes | None]]] = []
    with Consumer(bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        while len(found) < count:
            found += [(each.offset, each.value, dict(each.headers)) for each in consumer.poll(1.0)]
    return found


def test_a_copy_that_the_topic_refuses_is_left_out(bootstrap: str) -> None:
    with Admin(bootstrap) as admin:
        small = {**ENABLED, "max.message.bytes": "1000"}
        admin.create_topics([NewTopic("jobs", partitions=1), NewTopic("dlq.jobs", partitions=1, configs=small)]).check()
        group = {**COPIES, "errors.deadletterqueue.topic.name": "dlq.jobs"}
        admin.alter_configs({Resource(ResourceType.GROUP, "g"): group}).check()
    with Producer(bootstrap) as producer:
        for value in (b"small", b"x" * 2_000, b"last"):
            producer.send("jobs", value, partition=0, headers=[("trace", b"7")]).result()
    with ShareConsumer(bootstrap, group="g", topics=["jobs"], share_acknowledgement_mode="explicit") as consumer:
        count = 0
        while count < 3:
            for record in consumer.poll(1.0):
                consumer.reject(record)
                count += 1
        consumer.commit()
    found = letters(bootstrap, "dlq.jobs", 3)
    assert [value for _, value, _ in found] == [b"small", None, b"last"]
    assert [headers["__dlq.errors.offset"] for _, _, headers in found] == [b"0", b"1", b"2"]
    assert [headers.get("trace") for _, _, headers in found] == [b"7", None, b"7"]


def name_topic(asking: AskingAs, group: str, topic: str) -> ErrorCode:
    edit = k44.AlterableConfig(name="errors.deadletterqueue.topic.name", config_operation=0, value=topic)
    resource = k44.AlterConfigsResource(resource_type=ResourceType.GROUP, resource_name=group, configs=(edit,))
    request = k44.IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
    return ErrorCode(asking.ask(request, k44.IncrementalAlterConfigsResponse).responses[0].error_code)


def test_who_names_a_topic_for_dead_letters_needs_the_right_to_write_there() -> None:
    with (
        secured() as broker,
        AskingAs(broker.bootstrap, "root") as root,
        AskingAs(broker.bootstrap, "alice") as alice,
    ):
        allow(root, rule("alice", Operation.ALTER_CONFIGS, ResourceKind.GROUP, "g"))
        allow(root, rule("alice", Operation.WRITE, ResourceKind.TOPIC, "dlq.mine"))
        assert name_topic(alice, "g", "dlq.foreign") == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        assert name_topic(alice, "g", "dlq.mine") == ErrorCode.NONE
        assert name_topic(alice, "g", "") == ErrorCode.NONE
