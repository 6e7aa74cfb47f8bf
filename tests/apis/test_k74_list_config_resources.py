"""The answers are those of Apache Kafka 4.3.0."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k74_list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from ixion.testing.broker import Broker
from tests.apis.asking import Asking


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"broker.id": 5}) as running:
        running.create_topic("a")
        running.create_topic("b")
        yield running


def ask(asking: Asking, *kinds: int, version: int = 1) -> tuple[int, list[tuple[int, str]]]:
    answer = asking.ask(ListConfigResourcesRequest(resource_types=kinds), ListConfigResourcesResponse, version)
    return answer.error_code, sorted((each.resource_type, each.resource_name) for each in answer.config_resources)


def test_what_has_settings(asking: Asking) -> None:
    topics = [(2, "a"), (2, "b")]
    assert ask(asking, version=0) == (ErrorCode.NONE, [])
    assert ask(asking, 2) == ask(asking, 2, 2) == (ErrorCode.NONE, topics)
    assert ask(asking, 8, 4) == (ErrorCode.NONE, [(4, "5"), (8, "5")])
    assert ask(asking) == (ErrorCode.NONE, [*topics, (4, "5"), (8, "5")])
    assert ask(asking, 16, 32) == (ErrorCode.NONE, [])
    assert ask(asking, 2, 99) == (ErrorCode.UNSUPPORTED_VERSION, [])
