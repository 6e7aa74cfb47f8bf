from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from ixion.config.dynamic import Source
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k33_alter_configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResponse,
)
from ixion.language.protocol.registry import ApiKey
from ixion.testing.broker import Broker
from tests.apis.asking import Asking, versions
from tests.apis.settings import BROKER, LOGGER, TOPIC, must_set, setting


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"broker.id": 5}) as running:
        running.create_topic("t", retention_ms=1000)
        yield running


def replace(
    asking: Asking,
    kind: int,
    name: str,
    values: Mapping[str, str | None],
    *,
    validate_only: bool = False,
    version: int = -1,
) -> ErrorCode:
    configs = tuple(AlterableConfig(name=key, value=value) for key, value in values.items())
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    request = AlterConfigsRequest(resources=(resource,), validate_only=validate_only)
    (result,) = asking.ask(request, AlterConfigsResponse, version).responses
    assert (result.resource_type, result.resource_name) == (kind, name)
    assert bool(result.error_message) is (result.error_code != ErrorCode.NONE)
    return ErrorCode(result.error_code)


def test_what_is_left_out_is_set_no_more(asking: Asking) -> None:
    for version in versions(ApiKey.ALTER_CONFIGS):
        must_set(asking, TOPIC, "t", {"retention.ms": "1000"})
        assert replace(asking, TOPIC, "t", {"segment.ms": "77"}, version=version) == ErrorCode.NONE
        assert setting(asking, TOPIC, "t", "segment.ms").value == "77"
        assert setting(asking, TOPIC, "t", "retention.ms").config_source == Source.DEFAULT
    assert replace(asking, TOPIC, "t", {}) == ErrorCode.NONE
    assert setting(asking, TOPIC, "t", "segment.ms").config_source == Source.DEFAULT


def test_brokers_too(asking: Asking) -> None:
    must_set(asking, BROKER, "5", {"message.max.bytes": "7"})
    assert replace(asking, BROKER, "5", {"log.retention.ms": "9"}, validate_only=True) == ErrorCode.NONE
    assert setting(asking, BROKER, "5", "message.max.bytes").value == "7"
    assert replace(asking, BROKER, "5", {"log.retention.ms": "9"}) == ErrorCode.NONE
    assert setting(asking, BROKER, "5", "message.max.bytes").value == "1048588"
    assert setting(asking, BROKER, "5", "log.retention.ms").value == "9"


def test_what_is_refused_changes_nothing(asking: Asking) -> None:
    must_set(asking, TOPIC, "t", {"retention.ms": "1000"})
    assert replace(asking, TOPIC, "t", {"segment.ms": "soon"}) == ErrorCode.INVALID_CONFIG
    assert replace(asking, TOPIC, "t", {"segment.ms": None}) == ErrorCode.INVALID_REQUEST
    assert replace(asking, TOPIC, "none", {}) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert replace(asking, LOGGER, "5", {"root": "INFO"}) == ErrorCode.INVALID_REQUEST
    assert replace(asking, BROKER, "5", {"broker.id": "6"}) == ErrorCode.INVALID_REQUEST
    assert setting(asking, TOPIC, "t", "retention.ms").value == "1000"
