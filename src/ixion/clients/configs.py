"""Settings of topics, brokers, groups and loggers: what they are, where each comes from, and changes of single ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from ixion.clients.cluster import Cluster
from ixion.clients.connection import Connection
from ixion.clients.deadline import Deadline
from ixion.clients.faults import check, only
from ixion.model.errors import ErrorCode, KafkaError
from ixion.model.resource_type import ResourceType
from ixion.protocol.messages.k32_describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)
from ixion.protocol.messages.k44_incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from ixion.protocol.registry import ApiKey

SET: Final = 0
DELETE: Final = 1


class Resource(NamedTuple):
    """Whose settings. The broker with an empty name stands for the defaults of all brokers."""

    kind: ResourceType
    name: str

    def __str__(self) -> str:
        kind = self.kind.name.lower().replace("_", " ")
        return f"{kind} {self.name!r}" if self.name else "the default of all brokers"


SOURCES: Final = {
    1: "topic",
    2: "broker",
    3: "all brokers",
    4: "file",
    5: "default",
    6: "broker logger",
    7: "client metrics",
    8: "group",
}


class ConfigEntry(NamedTuple):
    name: str
    value: str | None  # None if it is a secret
    source: str
    read_only: bool
    secret: bool

    @property
    def is_set(self) -> bool:
        """Whether somebody chose it for this resource, or for all brokers, while the cluster ran."""
        return self.source in ("topic", "broker", "all brokers", "group", "broker logger")


def describe_configs(cluster: Cluster, resource: Resource) -> list[ConfigEntry]:
    """All settings of a resource, by name."""

    def ask(within: Deadline) -> list[ConfigEntry]:
        described = DescribeConfigsResource(
            resource_type=resource.kind, resource_name=resource.name, configuration_keys=None
        )
        request = DescribeConfigsRequest(resources=(described,))
        broker = who_knows(cluster, resource, within)
        answer = broker.call(ApiKey.DESCRIBE_CONFIGS, request, DescribeConfigsResponse, within)
        result = only(answer.results, str(resource))
        check(result.error_code, result.error_message, str(resource))
        return sorted(map(read_entry, result.configs))

    return cluster.attempt(f"reading the settings of {resource}", ask)


def read_entry(found: DescribeConfigsResourceResult) -> ConfigEntry:
    source = SOURCES.get(found.config_source, "unknown")
    return ConfigEntry(found.name, found.value, source, found.read_only, found.is_sensitive)


def alter_configs(
    cluster: Cluster, resource: Resource, changes: Mapping[str, str | None], *, validate_only: bool = False
) -> None:
    """Set single settings; None takes one away, so that the default holds again. Others stay as they are."""
    altered = AlterConfigsResource(
        resource_type=resource.kind,
        resource_name=resource.name,
        configs=tuple(
            AlterableConfig(name=name, config_operation=DELETE if value is None else SET, value=value)
            for name, value in changes.items()
        ),
    )
    request = IncrementalAlterConfigsRequest(resources=(altered,), validate_only=validate_only)

    def ask(within: Deadline) -> None:
        broker = who_knows(cluster, resource, within)
        answer = broker.call(ApiKey.INCREMENTAL_ALTER_CONFIGS, request, IncrementalAlterConfigsResponse, within)
        for result in answer.responses:
            check(result.error_code, result.error_message, str(resource))

    cluster.attempt(f"changing the settings of {resource}", ask)


def who_knows(cluster: Cluster, resource: Resource, deadline: Deadline) -> Connection:
    """The settings of one broker, and its loggers, are asked of that broker, all others of any."""
    if resource.kind == ResourceType.TOPIC:
        cluster.topic(resource.name, deadline)  # an unknown one is said with the nearest name
    of_one = resource.kind == ResourceType.BROKER_LOGGER or (resource.kind == ResourceType.BROKER and resource.name)
    if not of_one:
        return cluster.any(deadline)
    known = {node.node_id for node in cluster.nodes(deadline)}
    if not resource.name.isdigit() or int(resource.name) not in known:
        there = ", ".join(map(str, sorted(known)))
        raise KafkaError(ErrorCode.RESOURCE_NOT_FOUND, f"there is no broker {resource.name!r}, only {there}")
    return cluster.node(int(resource.name), deadline)
