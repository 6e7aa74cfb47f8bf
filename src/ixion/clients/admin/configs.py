"""Settings of topics, brokers, groups and loggers: values, their sources, and changes of single settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from ixion.clients.admin.plan import ANY, Call, Plan
from ixion.clients.admin.results import Results
from ixion.clients.admin.routes import Spread, fault_of, look_up, nodes, one, spread, to_broker
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.model.resource_type import ResourceType
from ixion.language.protocol.notation import Struct
from ixion.language.protocol.registry import ApiKey

SET: Final = 0
DELETE: Final = 1
APPEND: Final = 2
SUBTRACT: Final = 3
FINAL: Final = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,)
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


class Resource(NamedTuple):
    """The owner of settings. A broker with an empty name stands for the defaults of all brokers."""

    kind: ResourceType
    name: str

    def __str__(self) -> str:
        kind = self.kind.name.lower().replace("_", " ")
        return f"{kind} {self.name!r}" if self.name else "the default of all brokers"


class Synonym(NamedTuple):
    """A value that would apply if the ones before it were not set."""

    name: str
    value: str | None
    source: str


class ConfigEntry(NamedTuple):
    name: str
    value: str | None  # None if it is a secret
    source: str
    read_only: bool
    secret: bool
    synonyms: tuple[Synonym, ...] = ()
    documentation: str | None = None

    @property
    def is_set(self) -> bool:
        """Whether it was set dynamically, for this resource or as the default of all brokers."""
        return self.source in ("topic", "broker", "all brokers", "group", "broker logger")


class Change(NamedTuple):
    """A change of one setting: SET it, DELETE it to restore the default, APPEND to or SUBTRACT from a list."""

    operation: int
    value: str | None = None


def is_of_one(resource: Resource) -> bool:
    """Whether only one broker can answer: for the settings of one broker and for its loggers."""
    return resource.kind == ResourceType.BROKER_LOGGER or (resource.kind == ResourceType.BROKER and resource.name != "")


def broker_of(resource: Resource) -> int:
    return int(resource.name) if is_of_one(resource) else ANY


def refuse_strangers(call: Call, resources: Iterable[Resource]) -> Plan[dict[Resource, KafkaError]]:
    """Faults for topics and brokers that do not exist, found before any request about settings is sent."""
    wanted = list(resources)
    refused: dict[Resource, KafkaError] = {}
    names = [each.name for each in wanted if each.kind == ResourceType.TOPIC]
    faults = (yield from look_up(call, names)) if names else {}
    brokers = (yield from nodes(call)) if any(map(is_of_one, wanted)) else []
    for each in wanted:
        if each.kind == ResourceType.TOPIC and each.name in faults:
            refused[each] = faults[each.name]
        if is_of_one(each) and each.name not in map(str, brokers):
            text = f"there is no broker {each.name!r}, only {', '.join(map(str, brokers))}"
            refused[each] = KafkaError(ErrorCode.RESOURCE_NOT_FOUND, text)
    return refused


def describe_configs(
    call: Call, resources: Iterable[Resource], *, synonyms: bool = False, documentation: bool = False
) -> Plan[Results[Resource, list[ConfigEntry]]]:
    """All settings of each resource, by name."""
    from ixion.language.protocol.messages.k32_describe_configs import (
        DescribeConfigsRequest,
        DescribeConfigsResource,
        DescribeConfigsResourceResult,
        DescribeConfigsResponse,
    )

    def entry(found: DescribeConfigsResourceResult) -> ConfigEntry:
        return ConfigEntry(
            found.name,
            found.value,
            SOURCES.get(found.config_source, "unknown"),
            found.read_only,
            found.is_sensitive,
            tuple(Synonym(each.name, each.value, SOURCES.get(each.source, "unknown")) for each in found.synonyms),
            found.documentation,
        )

    def make(some: list[Resource], _: int) -> Struct:
        wanted = tuple(
            DescribeConfigsResource(resource_type=each.kind, resource_name=each.name, configuration_keys=None)
            for each in some
        )
        return DescribeConfigsRequest(resources=wanted, include_synonyms=synonyms, include_documentation=documentation)

    def read(answer: Struct) -> dict[Resource, list[ConfigEntry] | KafkaError]:
        assert isinstance(answer, DescribeConfigsResponse)
        found: dict[Resource, list[ConfigEntry] | KafkaError] = {}
        for each in answer.results:
            resource = Resource(ResourceType(each.resource_type), each.resource_name)
            fault = fault_of(each.error_code, each.error_message, resource)
            found[resource] = sorted(map(entry, each.configs)) if fault is None else fault
        return found

    wanted = list(resources)
    refused = yield from refuse_strangers(call, wanted)
    kept = [each for each in wanted if each not in refused]
    results = yield from spread(
        call, Spread(ApiKey.DESCRIBE_CONFIGS, final=FINAL), kept, to_broker(broker_of), make, read
    )
    results.faults.update(refused)
    return results


def alter_configs(
    call: Call, changes: Mapping[Resource, Mapping[str, str | Change | None]], *, validate_only: bool = False
) -> Plan[Results[Resource, None]]:
    """Change single settings; others stay as they are (incrementalAlterConfigs). None removes a setting."""
    from ixion.language.protocol.messages.k44_incremental_alter_configs import (
        AlterableConfig,
        AlterConfigsResource,
        IncrementalAlterConfigsRequest,
        IncrementalAlterConfigsResponse,
    )

    def alterable(name: str, change: str | Change | None) -> AlterableConfig:
        if not isinstance(change, Change):
            change = Change(DELETE) if change is None else Change(SET, change)
        return AlterableConfig(name=name, config_operation=change.operation, value=change.value)

    def make(some: list[Resource], _: int) -> Struct:
        altered = tuple(
            AlterConfigsResource(
                resource_type=each.kind,
                resource_name=each.name,
                configs=tuple(alterable(name, change) for name, change in changes[each].items()),
            )
            for each in some
        )
        return IncrementalAlterConfigsRequest(resources=altered, validate_only=validate_only)

    def read(answer: Struct) -> dict[Resource, KafkaError | None]:
        assert isinstance(answer, IncrementalAlterConfigsResponse)
        found: dict[Resource, KafkaError | None] = {}
        for each in answer.responses:
            resource = Resource(ResourceType(each.resource_type), each.resource_name)
            found[resource] = fault_of(each.error_code, each.error_message, resource)
        return found

    refused = yield from refuse_strangers(call, changes)
    kept = [each for each in changes if each not in refused]
    how = Spread(ApiKey.INCREMENTAL_ALTER_CONFIGS, final=FINAL)
    results: Results[Resource, None] = yield from spread(call, how, kept, to_broker(broker_of), make, read)
    results.faults.update(refused)
    return results


def list_config_resources(call: Call, kinds: Iterable[ResourceType] = ()) -> Plan[list[Resource]]:
    """The resources with settings, of these kinds, or of all if none is named."""
    from ixion.language.protocol.messages.k74_list_config_resources import (
        ListConfigResourcesRequest,
        ListConfigResourcesResponse,
    )

    request = ListConfigResourcesRequest(resource_types=tuple(int(kind) for kind in kinds))
    answer = yield from one(
        call,
        ANY,
        ApiKey.LIST_CONFIG_RESOURCES,
        lambda _: request,
        ListConfigResourcesResponse,
        oldest=1,
        check=lambda found: fault_of(found.error_code, None, "the resources with settings"),
    )
    known = {int(kind) for kind in ResourceType}
    return sorted(
        Resource(ResourceType(each.resource_type), each.resource_name)
        for each in answer.config_resources
        if each.resource_type in known
    )
