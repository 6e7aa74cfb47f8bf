"""DescribeConfigs, 1 to 4: settings of topics, brokers, loggers and groups, each with its source.

With a broker's id as name, the response has all settings of that broker; with an empty name, the dynamic settings of
all brokers. The request may list keys; without keys it means all settings. Unknown keys are left out, as in Kafka.
Version 3 brought types and documentation (KIP-569).

The synonyms of a topic's setting are listed from the topic outwards, strongest first:

    retention.ms   TOPIC retention.ms=1000, DYNAMIC_DEFAULT log.retention.ms=5000, …

Secret values are never shown, nor values of unknown names, which may be secrets of another program.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from ixion.broker.acl.numbers import DESCRIBE_CONFIGS
from ixion.broker.apis.call import Call, Handle
from ixion.broker.apis.guards.resources import on_resources
from ixion.broker.apis.loggers import logger_levels
from ixion.broker.apis.repeats import once
from ixion.broker.apis.resources import check_broker, check_group_name, check_topic, unsupported
from ixion.broker.apis.services import Services
from ixion.config.delay_rules import with_delay
from ixion.config.dynamic import Described, DynamicConfig, Level, Source, Synonym, described_alone
from ixion.config.group import GROUP_SETTINGS, default_of_group
from ixion.config.log_settings import DELIVERY_DELAY_TOPICS
from ixion.config.setting import Kind, Setting
from ixion.config.table import BROKER_SETTINGS
from ixion.config.topic import TOPIC_SETTINGS
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.model.resource_type import ResourceType
from ixion.language.model.topic_name import check_topic_name
from ixion.language.protocol.messages.k32_describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from ixion.language.protocol.notation import Struct
from ixion.timer.turns import Steps

REPEATS: Final = {"resources": once("resource_type", "resource_name", configuration_keys=once())}

DESCRIBED_AS_LISTS: Final = frozenset({"listeners", "advertised.listeners", "log.dir", "log.dirs"})
UNKNOWN_KIND: Final = 0


def make(services: Services) -> Handle:
    image = services.image
    config = services.config
    node_id = services.node_id

    def handle(call: Call) -> Steps[DescribeConfigsResponse]:
        request = cast(DescribeConfigsRequest, call.body)
        results = []
        for resource in request.resources:
            results.append(answer(request, resource))
            yield
        return DescribeConfigsResponse(results=tuple(results))

    def answer(request: DescribeConfigsRequest, resource: DescribeConfigsResource) -> DescribeConfigsResult:
        code, message = ErrorCode.NONE, ""
        configs: tuple[DescribeConfigsResourceResult, ...] = ()
        try:
            configs = describe(resource, request.include_synonyms, request.include_documentation)
        except KafkaError as error:
            code, message = error.code, error.message
        return DescribeConfigsResult(
            error_code=code,
            error_message=message,
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
            configs=configs,
        )

    def describe(
        resource: DescribeConfigsResource, synonyms: bool, documentation: bool
    ) -> tuple[DescribeConfigsResourceResult, ...]:
        name = resource.resource_name
        keys = frozenset(resource.configuration_keys or ())

        def chosen(names: Iterable[str]) -> list[str]:
            return [each for each in names if not keys or each in keys]

        match resource.resource_type:
            case ResourceType.TOPIC:
                check_topic_name(name)
                check_topic(image, name)
                given = image.topics[name].config
                return tuple(
                    entry(of_topic(config, name, key, given), TOPIC_SETTINGS[key], synonyms, documentation)
                    for key in chosen(TOPIC_SETTINGS)
                )
            case ResourceType.BROKER if name:
                check_broker(node_id, name, all_of_them=True)
                return tuple(
                    entry(config.describe(key), BROKER_SETTINGS.get(key), synonyms, documentation)
                    for key in chosen((*BROKER_SETTINGS, *config.unknown()))
                )
            case ResourceType.BROKER:
                return tuple(
                    entry(for_all_brokers(config, key), BROKER_SETTINGS.get(key), synonyms, documentation)
                    for key in chosen(config.shown(Level.ALL_BROKERS))
                )
            case ResourceType.BROKER_LOGGER:
                check_broker(node_id, name, all_of_them=False)
                levels = logger_levels()
                return tuple(logger_entry(key, levels[key]) for key in chosen(levels))
            case ResourceType.GROUP:
                check_group_name(name)
                given = image.group_configs.get(name, {})
                return tuple(
                    entry(
                        described_of_group(config, key, given),
                        GROUP_SETTINGS[key],
                        synonyms,
                        documentation,
                    )
                    for key in chosen(GROUP_SETTINGS)
                )
            case other:
                raise unsupported(other)

    return handle


def described_of_group(config: DynamicConfig, key: str, given: Mapping[str, str]) -> Described:
    behind = default_of_group(key)
    if behind is None:
        return described_alone(GROUP_SETTINGS[key], given, Source.GROUP)
    return config.describe_own(key, given, behind, Source.GROUP)


def of_topic(config: DynamicConfig, topic: str, name: str, given: Mapping[str, str]) -> Described:
    """A setting of a topic. delivery.delay.topics may decide one that the topic does not set."""
    rule = with_delay(config.current, topic, given)
    if name in given or name not in rule:
        return config.describe_topic(name, given)
    behind = config.describe(DELIVERY_DELAY_TOPICS.name)
    synonym = Synonym(name=behind.name, value=behind.value, source=behind.source)
    return Described(
        name=name, value=rule[name], source=behind.source, synonyms=(synonym,), read_only=False, sensitive=False
    )


def for_all_brokers(config: DynamicConfig, name: str) -> Described:
    """The dynamic value for all brokers, whatever this broker has."""
    found = config.describe(name)
    value = None if found.sensitive else config.shown(Level.ALL_BROKERS)[name]
    return Described(
        name=name,
        value=value,
        source=Source.DYNAMIC_DEFAULT,
        synonyms=tuple(each for each in found.synonyms if each.source is Source.DYNAMIC_DEFAULT),
        read_only=found.read_only,
        sensitive=found.sensitive,
    )


def entry(
    described: Described, setting: Setting[Any] | None, synonyms: bool, documentation: bool
) -> DescribeConfigsResourceResult:
    return DescribeConfigsResourceResult(
        name=described.name,
        value=described.value,
        read_only=described.read_only,
        config_source=described.source,
        is_sensitive=described.sensitive,
        synonyms=tuple(
            DescribeConfigsSynonym(name=each.name, value=each.value, source=each.source) for each in described.synonyms
        )
        if synonyms
        else (),
        config_type=kind_of(setting),
        documentation=setting.doc if documentation and setting is not None else None,
    )


def logger_entry(name: str, level: str) -> DescribeConfigsResourceResult:
    return DescribeConfigsResourceResult(
        name=name,
        value=level,
        read_only=False,
        config_source=Source.LOGGER,
        is_sensitive=False,
        synonyms=(),
        documentation=None,
    )


def kind_of(setting: Setting[Any] | None) -> int:
    """The type that is described. Kafka 4.3 has made lists of some texts; we read them as texts."""
    if setting is None:
        return UNKNOWN_KIND
    return Kind.LIST if setting.name in DESCRIBED_AS_LISTS else setting.kind


def _described(resource: Any, code: ErrorCode) -> Struct:
    return DescribeConfigsResult(
        error_code=code,
        error_message=code.explanation,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=(),
    )


RIGHTS: Final = on_resources(DESCRIBE_CONFIGS, "results", _described)
