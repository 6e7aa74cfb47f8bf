"""Changes settings, for AlterConfigs and IncrementalAlterConfigs.

Each resource is changed as a whole or not at all, independently of the others. First its names and values are checked,
alone and together with the settings that are already there. A change is in force when its response is sent. Concurrent
changes of one resource are made one after the other, so none is lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final, Protocol

from ixion.broker.acl.rights import Rights
from ixion.broker.apis.controller_calls import translated
from ixion.broker.apis.loggers import check_level, set_level
from ixion.broker.apis.resources import check_broker, check_group_name, check_topic, unsupported
from ixion.broker.apis.services import Services
from ixion.broker.apis.target_rights import TARGET, check_dead_letters, check_target
from ixion.broker.controller.planning import check_topic_config
from ixion.broker.metadata import paths
from ixion.config.dynamic import Level
from ixion.config.errors import InvalidSettingError
from ixion.config.group import GROUP_SETTINGS, check_group
from ixion.config.setting import Kind, Setting
from ixion.config.share_group import DEAD_LETTER_TOPIC
from ixion.config.table import BROKER_SETTINGS
from ixion.config.topic import TOPIC_SETTINGS
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.model.resource_type import ResourceType
from ixion.timer.turns import Pauses


class Operation(IntEnum):
    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


MOST_EDITS: Final = 1_000  # settings per resource; they are checked in one turn of the loop
OPERATIONS: Final = frozenset(int(each) for each in Operation)


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    name: str
    value: str | None
    operation: int = Operation.SET


class Asked(Protocol):
    """A resource, as in both requests."""

    @property
    def resource_type(self) -> int: ...

    @property
    def resource_name(self) -> str: ...

    @property
    def configs(self) -> Sequence[Any]: ...


@dataclass(frozen=True, slots=True)
class Outcome:
    kind: int
    name: str
    code: ErrorCode = ErrorCode.NONE
    message: str | None = None


class ConfigEditor:
    def __init__(self, services: Services) -> None:
        self._node_id = services.node_id
        self._image = services.image
        self._config = services.config
        self._controller = services.controller

    async def edit(
        self,
        asked: Sequence[Asked],
        edit_of: Callable[[Any], Edit],
        *,
        replace: bool,
        validate_only: bool,
        rights: Rights | None,
    ) -> list[Outcome]:
        """An outcome for each resource. `replace`: unset all settings that are not in the request.

        `rights` are the client's, beyond those to the resources, which a guard has checked.
        """
        times: Counter[tuple[int, str]] = Counter()
        outcomes: list[Outcome] = []
        pauses = Pauses()
        for each in asked:
            times[each.resource_type, each.resource_name] += 1
            await pauses.pause()
        for each in asked:
            kind, name = each.resource_type, each.resource_name
            await pauses.pause()
            try:
                if times[kind, name] > 1:
                    raise KafkaError(ErrorCode.INVALID_REQUEST, "the resource is in the request more than once")
                if len(each.configs) > MOST_EDITS:
                    raise KafkaError(ErrorCode.INVALID_REQUEST, f"{len(each.configs)} settings are too many")
                edits = [edit_of(config) for config in each.configs]
                check_edits(edits)
                await translated(self._edit(kind, name, edits, replace, validate_only, rights))
                outcomes.append(Outcome(kind, name))
            except KafkaError as error:
                outcomes.append(Outcome(kind, name, error.code, error.message))
        return outcomes

    async def _edit(
        self,
        kind: int,
        name: str,
        edits: Sequence[Edit],
        replace: bool,
        validate_only: bool,
        rights: Rights | None,
    ) -> None:
        start: dict[str, str] | None = {} if replace else None
        match kind:
            case ResourceType.TOPIC:

                def change_topic(current: dict[str, str]) -> Mapping[str, str]:
                    check_topic(self._image, name)
                    named = {each.name for each in edits}
                    # Keep settings that we do not know: an Apache Kafka broker of the cluster may have stored them.
                    unknown = set() if replace else current.keys() - TOPIC_SETTINGS.keys() - named
                    known = {key: value for key, value in current.items() if key not in unknown}
                    wanted = edited(known if start is None else start, edits, TOPIC_SETTINGS)
                    if wanted.get(TARGET) != current.get(TARGET):
                        check_target(rights, wanted)
                    checked = check_topic_config(wanted, self._config.current)
                    return {**checked, **{key: current[key] for key in unknown}}

                if name not in self._image.topics:  # as in Kafka, an invalid setting is reported first
                    check_topic_config(edited({}, edits, TOPIC_SETTINGS), self._config.current)
                check_topic(self._image, name)
                await self._controller.configs.alter("topics", name, change_topic, validate_only)
            case ResourceType.BROKER:
                entity = check_broker(self._node_id, name, all_of_them=True)
                level = Level.ALL_BROKERS if entity == paths.DEFAULT_ENTITY else Level.THIS_BROKER

                def change_broker(current: dict[str, str]) -> Mapping[str, str]:
                    known = self._config.decoded(current)
                    wanted = edited(known if start is None else start, edits, BROKER_SETTINGS)
                    try:
                        self._config.validate(level, wanted)
                        return self._config.encoded(wanted)
                    except InvalidSettingError as error:
                        raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from error

                await self._controller.configs.alter("brokers", entity, change_broker, validate_only)
            case ResourceType.GROUP:
                check_group_name(name)

                def change_group(current: dict[str, str]) -> Mapping[str, str]:
                    wanted = edited(current if start is None else start, edits, GROUP_SETTINGS)
                    if wanted.get(DEAD_LETTER_TOPIC.name) != current.get(DEAD_LETTER_TOPIC.name):
                        check_dead_letters(rights, wanted)
                    try:
                        check_group(self._config.current, wanted)
                    except InvalidSettingError as error:
                        raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from error
                    return wanted

                await self._controller.configs.alter("groups", paths.sanitized(name), change_group, validate_only)
            case ResourceType.BROKER_LOGGER if not replace:
                check_broker(self._node_id, name, all_of_them=False)
                change_levels(edits, validate_only)
            case _:
                raise unsupported(kind)


def check_edits(edits: Sequence[Edit]) -> None:
    """The checks that do not depend on the resource."""
    times = Counter(edit.name for edit in edits)
    twice = [name for name, count in times.items() if count > 1]
    if twice:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"settings in the request more than once: {', '.join(twice)}")
    for edit in edits:
        if edit.operation not in OPERATIONS:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"unknown operation {edit.operation} on {edit.name}")
    nulls = [edit.name for edit in edits if edit.value is None and edit.operation != Operation.DELETE]
    if nulls:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"a setting needs a value: {', '.join(nulls)}")


def edited(current: Mapping[str, str], edits: Iterable[Edit], known: Mapping[str, Setting[Any]]) -> dict[str, str]:
    wanted = dict(current)
    for edit in edits:
        value = edit.value or ""
        match edit.operation:
            case Operation.SET:
                wanted[edit.name] = value
            case Operation.DELETE:
                wanted.pop(edit.name, None)
            case _:
                setting = known.get(edit.name)
                if setting is None or setting.kind is not Kind.LIST:
                    raise KafkaError(ErrorCode.INVALID_CONFIG, f"{edit.name} is not a list: only SET and DELETE apply")
                if edit.operation == Operation.APPEND and setting.choices and not split(value):
                    raise KafkaError(ErrorCode.INVALID_CONFIG, f"nothing to append to {edit.name}")
                items = split(wanted[edit.name]) if edit.name in wanted else list(setting.default or ())
                for item in split(value):
                    if edit.operation == Operation.SUBTRACT:
                        items = [each for each in items if each != item]
                    elif item not in items:
                        items.append(item)
                wanted[edit.name] = ",".join(items)
    return wanted


def split(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]


def change_levels(edits: Sequence[Edit], validate_only: bool) -> None:
    levels: dict[str, str | None] = {}
    for edit in edits:
        if edit.operation not in (Operation.SET, Operation.DELETE):
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"the level of {edit.name} is not a list")
        level = edit.value if edit.operation == Operation.SET else None
        check_level(edit.name, level)
        levels[edit.name] = level
    if not validate_only:
        for name, level in levels.items():
            set_level(name, level)
