"""Who sets delivery.delay.target must have the right to write there."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from ixion.language.model.acl_names import Operation, ResourceKind
from ixion.language.model.errors import ErrorCode
from ixion.language.model.resource_type import ResourceType
from ixion.language.protocol.messages import k33_alter_configs as k33
from ixion.language.protocol.messages import k44_incremental_alter_configs as k44
from ixion.language.protocol.messages.k19_create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ixion.testing.broker import Broker
from tests.apis.guards.secured import AskingAs, allow, rule, secured

TARGET = "delivery.delay.target"
MODE = "delivery.delay.mode"


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with secured() as running:
        yield running


def name() -> str:
    return f"t{random.randrange(10**9)}"


def create(asking: AskingAs, topic: str, **configs: str) -> ErrorCode:
    settings = tuple(CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items())
    wish = CreatableTopic(name=topic, num_partitions=1, replication_factor=1, assignments=(), configs=settings)
    answer = asking.ask(CreateTopicsRequest(topics=(wish,)), CreateTopicsResponse)
    return ErrorCode(answer.topics[0].error_code)


def alter(asking: AskingAs, topic: str, configs: dict[str, str]) -> ErrorCode:
    edits = tuple(k33.AlterableConfig(name=key, value=value) for key, value in configs.items())
    resource = k33.AlterConfigsResource(resource_type=ResourceType.TOPIC, resource_name=topic, configs=edits)
    request = k33.AlterConfigsRequest(resources=(resource,), validate_only=False)
    return ErrorCode(asking.ask(request, k33.AlterConfigsResponse).responses[0].error_code)


def alter_some(asking: AskingAs, topic: str, configs: dict[str, str]) -> ErrorCode:
    edits = tuple(k44.AlterableConfig(name=key, config_operation=0, value=value) for key, value in configs.items())
    resource = k44.AlterConfigsResource(resource_type=ResourceType.TOPIC, resource_name=topic, configs=edits)
    request = k44.IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
    return ErrorCode(asking.ask(request, k44.IncrementalAlterConfigsResponse).responses[0].error_code)


def own(root: AskingAs, topic: str) -> None:
    allow(root, *[rule("alice", each, ResourceKind.TOPIC, topic) for each in (Operation.ALL,)])


@pytest.mark.parametrize("change", [alter, alter_some])
def test_who_changes_a_topic_needs_the_right_to_its_target(broker: Broker, change: object) -> None:
    mine, foreign = name(), name()
    with AskingAs(broker.bootstrap, "root") as root, AskingAs(broker.bootstrap, "alice") as alice:
        own(root, mine)
        assert create(root, foreign) == ErrorCode.NONE
        assert create(alice, mine, delivery_delay_mode="record") == ErrorCode.NONE
        for value in (foreign, f" {foreign} "):
            code = change(alice, mine, {MODE: "record", TARGET: value})  # type: ignore[operator]
            assert code in (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.INVALID_CONFIG)
        assert change(root, mine, {MODE: "record", TARGET: foreign}) == ErrorCode.NONE  # type: ignore[operator]
        kept = {MODE: "record", TARGET: foreign, "retention.ms": "1000"}
        assert change(alice, mine, kept) == ErrorCode.NONE, "it is there already"  # type: ignore[operator]
        assert change(alice, mine, {MODE: "record", TARGET: ""}) == ErrorCode.NONE  # type: ignore[operator]
        allow(root, rule("alice", Operation.WRITE, ResourceKind.TOPIC, foreign))
        assert change(alice, mine, {MODE: "record", TARGET: foreign}) == ErrorCode.NONE  # type: ignore[operator]


def test_who_creates_a_topic_needs_it_too(broker: Broker) -> None:
    mine, foreign = name(), name()
    with AskingAs(broker.bootstrap, "root") as root, AskingAs(broker.bootstrap, "alice") as alice:
        own(root, mine)
        assert create(root, foreign) == ErrorCode.NONE
        code = create(alice, mine, delivery_delay_mode="record", delivery_delay_target=foreign)
        assert code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        allow(root, rule("alice", Operation.WRITE, ResourceKind.TOPIC, foreign))
        code = create(alice, mine, delivery_delay_mode="record", delivery_delay_target=foreign)
        assert code == ErrorCode.NONE
