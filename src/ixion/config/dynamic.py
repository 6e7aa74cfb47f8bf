"""Dynamic settings: they change while the broker runs, and override those it was started with.

    defaults  <  static (file, environment, --set)  <  dynamic for all brokers  <  dynamic for this broker

For DescribeConfigs, every setting has the source of its value and its synonyms, strongest first. With
log.retention.hours=24 in the file and log.retention.ms set for all brokers:

    log.retention.ms   DYNAMIC_DEFAULT log.retention.ms=1000, STATIC log.retention.hours=24, DEFAULT …hours=168

A change is checked as a whole (scopes, values, rules, and the registered checks) before any of it takes effect. Stored
settings, read at the start or after a change notification, can no longer be refused: invalid ones are ignored and
returned, so that one bad setting does not keep a broker from starting. An unknown name is accepted, as in Kafka; it has
no effect and logs a warning.

Threads: only one thread at a time may call `change` and `restore`; any may read `current`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from enum import IntEnum
from itertools import dropwhile
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ixion.config.broker import OF_LISTENERS, BrokerConfig, listener_of, override_of
from ixion.config.errors import InvalidSettingError
from ixion.config.ineffective import broker_settings_without_effect
from ixion.config.replica_settings import MIN_INSYNC_REPLICAS
from ixion.config.rules import check_rules
from ixion.config.setting import Scope, Setting, text_of
from ixion.config.table import BROKER_SETTINGS, meant, synonyms
from ixion.config.topic import BEHIND, OWN

logger = logging.getLogger(__name__)


class Source(IntEnum):
    """The numbers are those of the DescribeConfigs response."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT = 3
    STATIC = 4
    DEFAULT = 5
    LOGGER = 6
    GROUP = 8


class Level(IntEnum):
    """The brokers to which a dynamic value applies."""

    ALL_BROKERS = 3
    THIS_BROKER = 2


class Synonym(NamedTuple):
    name: str
    value: str | None  # None: not set, or not to be shown
    source: Source


class Described(NamedTuple):
    name: str
    value: str | None
    source: Source
    synonyms: tuple[Synonym, ...]
    read_only: bool
    sensitive: bool


# Called with the config before and after. A check may raise InvalidSettingError; then nothing changes.
Check = Callable[[BrokerConfig, BrokerConfig], None]
Changed = Callable[[BrokerConfig, BrokerConfig], None]


if TYPE_CHECKING:
    from ixion.config.password_encoder import PasswordEncoder


class DynamicConfig:
    def __init__(self, static: Mapping[str, str]) -> None:
        self._static: Final = dict(static)
        self._overlays: dict[Level, dict[str, str]] = {Level.ALL_BROKERS: {}, Level.THIS_BROKER: {}}
        self._listeners: list[tuple[Check | None, Changed]] = []
        self.current = BrokerConfig(self._static)
        self._implied: Final = {MIN_INSYNC_REPLICAS.name: str(self.current[MIN_INSYNC_REPLICAS])}

    def listen(self, changed: Changed, check: Check | None = None) -> None:
        self._listeners.append((check, changed))

    def overlay(self, level: Level) -> dict[str, str]:
        """The settings of this level."""
        return dict(self._overlays[level])

    def shown(self, level: Level) -> dict[str, str]:
        """The settings that descriptions show for this level.

        A cluster of Kafka 4.1 or later starts with min.insync.replicas set for all brokers (KIP-966), to the value of
        the first broker. We show it so too; the value is the same.
        """
        return (self._implied if level is Level.ALL_BROKERS else {}) | self._overlays[level]

    def validate(self, level: Level, wanted: Mapping[str, str]) -> BrokerConfig:
        """The config with `wanted` as all dynamic settings of the level; changes nothing."""
        for name, value in wanted.items():
            _check_dynamic(level, name, value)
        config = self._laid_over({**self._overlays, level: dict(wanted)})
        check_rules(config)
        for check, _ in self._listeners:
            if check is not None:
                check(self.current, config)
        return config

    def change(self, level: Level, wanted: Mapping[str, str]) -> None:
        """Replace all dynamic settings of the level by `wanted`."""
        self._take(level, dict(wanted), self.validate(level, wanted))

    def restore(self, level: Level, stored: Mapping[str, str]) -> list[InvalidSettingError]:
        """As `change`, but ignore invalid settings, and return their errors."""
        taken = dict(stored)
        refused: list[InvalidSettingError] = []
        if any("encryptedPassword:" in value for value in stored.values()):
            taken, refused = self._encoder().decode_all(stored)
        while True:
            try:
                self.change(level, taken)
                return refused
            except InvalidSettingError as error:
                refused.append(error)
                # A rule may blame a setting of another level; then ignore all settings of this one.
                if taken.pop(error.name, None) is None:
                    if not taken:
                        return refused
                    taken = {}

    def decoded(self, stored: Mapping[str, str]) -> dict[str, str]:
        """Stored settings with their passwords in plain text."""
        return self._encoder().decode_all(stored)[0]

    def encoded(self, wanted: Mapping[str, str]) -> dict[str, str]:
        """Settings as they are stored, with encrypted passwords. InvalidSettingError if that is impossible."""
        return self._encoder().encode_all(wanted)

    def _encoder(self) -> PasswordEncoder:
        from ixion.config.password_encoder import PasswordEncoder  # few brokers have dynamic settings

        return PasswordEncoder(self.current)

    def unknown(self) -> list[str]:
        """Unknown names that were set, at the start or since."""
        given = {**self._static, **self._overlays[Level.ALL_BROKERS], **self._overlays[Level.THIS_BROKER]}
        return [name for name in given if name not in BROKER_SETTINGS]

    def describe(self, name: str) -> Described:
        """`name` must be in BROKER_SETTINGS or `unknown`. Values of unknown names are hidden: they may be secrets."""
        setting = BROKER_SETTINGS.get(name)
        sensitive = setting is None or setting.sensitive
        found = self._synonyms(name)
        return Described(
            name=name,
            value=None if setting is None or sensitive else self.current.text(setting),
            source=found[0].source if found else Source.DEFAULT,
            synonyms=found,
            read_only=setting is None or setting.scope is Scope.READ_ONLY,
            sensitive=sensitive,
        )

    def describe_topic(self, name: str, topic: Mapping[str, str]) -> Described:
        """`name` must be in TOPIC_SETTINGS; `topic` has the topic's own settings."""
        if name in OWN:
            return described_alone(OWN[name], topic, Source.TOPIC)
        return self.describe_own(name, topic, BEHIND[name], Source.TOPIC)

    def describe_own(self, name: str, own: Mapping[str, str], setting: Setting[Any], source: Source) -> Described:
        """A setting of a topic or group, which overrides the broker's `setting`."""
        behind = self._synonyms(setting.name)
        if name in own:
            behind = (Synonym(name=name, value=own[name], source=source), *behind)
        return Described(
            name=name,
            value=own.get(name, text_of(self.current[setting])),
            source=behind[0].source if behind else Source.DEFAULT,
            synonyms=behind,
            read_only=False,
            sensitive=setting.sensitive,
        )

    def _laid_over(self, overlays: Mapping[Level, Mapping[str, str]]) -> BrokerConfig:
        given = dict(self._static)
        for level in (Level.ALL_BROKERS, Level.THIS_BROKER):
            for name, value in overlays[level].items():
                for other in synonyms(name):  # a dynamic value overrides all synonyms
                    given.pop(other, None)
                given[name] = value
        return BrokerConfig(given)

    def _take(self, level: Level, wanted: dict[str, str], config: BrokerConfig) -> None:
        before, self.current = self.current, config
        for name in wanted.keys() - self._overlays[level].keys() - BROKER_SETTINGS.keys():
            if listener_of(name) or override_of(name)[0]:
                continue
            logger.warning("unknown setting %s%s", name, meant(name))
        before_it = self._overlays[level]
        idle = broker_settings_without_effect(
            {name: value for name, value in wanted.items() if before_it.get(name) != value}
        )
        if idle:
            logger.warning("settings without effect in ixion: %s", ", ".join(idle))
        self._overlays[level] = wanted
        for _, changed in self._listeners:
            try:
                changed(before, config)
            except Exception:
                logger.exception("a part of the broker failed to apply a change of settings; the others apply it")

    def _synonyms(self, name: str) -> tuple[Synonym, ...]:
        settings = {other: BROKER_SETTINGS.get(other) for other in synonyms(name)}
        defaults = {other: text_of(known.default) for other, known in settings.items() if known is not None}
        layers: tuple[tuple[Source, Mapping[str, str | None]], ...] = (
            (Source.DYNAMIC_BROKER, self._overlays[Level.THIS_BROKER]),
            (Source.DYNAMIC_DEFAULT, self.shown(Level.ALL_BROKERS)),
            (Source.STATIC, self._static),
            (Source.DEFAULT, {other: value for other, value in defaults.items() if value is not None}),
        )
        found = [
            Synonym(name=other, value=None if known is None or known.sensitive else layer[other], source=source)
            for source, layer in layers
            for other, known in settings.items()
            if other in layer
        ]
        # As in Kafka, the list begins with the setting's own name, without a stronger value under another name.
        return tuple(dropwhile(lambda synonym: synonym.name != name, found))


def described_alone(setting: Setting[Any], own: Mapping[str, str], source: Source) -> Described:
    """A setting of a topic or group without a broker setting."""
    name = setting.name
    synonyms_of = (Synonym(name=name, value=own[name], source=source),) if name in own else ()
    return Described(
        name=name,
        value=own.get(name, text_of(setting.default)),
        source=source if name in own else Source.DEFAULT,
        synonyms=synonyms_of,
        read_only=False,
        sensitive=False,
    )


def _check_dynamic(level: Level, name: str, value: str) -> None:
    listener, own = override_of(name)
    setting = OF_LISTENERS.get(own) if listener else BROKER_SETTINGS.get(name)
    if setting is None:
        if listener:  # users of a mechanism
            raise InvalidSettingError(name, "[hidden]", "left as it is while the broker runs")
        return
    if setting.scope is Scope.READ_ONLY:
        raise InvalidSettingError(name, value, "left as it is while the broker runs")
    if setting.scope is Scope.PER_BROKER and level is Level.ALL_BROKERS:
        raise InvalidSettingError(name, value, "a value for one broker, not for all of them")
    if listener and level is Level.ALL_BROKERS:
        raise InvalidSettingError(name, "[hidden]", "a value for one broker, not for all of them")
    setting.parse(value)
