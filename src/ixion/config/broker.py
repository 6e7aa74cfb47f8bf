"""The settings of a broker: typed, complete, immutable."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar, cast

from ixion.config import security_settings
from ixion.config.setting import INT_MAX, Scope, Setting, integer, text_of
from ixion.config.table import BROKER_SETTINGS

T = TypeVar("T")

PREFIX: Final = "listener.name."
JAAS: Final = ".sasl.jaas.config"
# Settings that can be set for one listener, as listener.name.NAME.ssl.client.auth.
OF_LISTENERS: Final = {each.name: each for each in vars(security_settings).values() if isinstance(each, Setting)}
SUFFIX: Final = ".max.connections"
PER_LISTENER: Final = integer(
    "listener.name.NAME.max.connections",
    INT_MAX,
    least=0,
    scope=Scope.CLUSTER_WIDE,
    doc="connections of one listener",
)


class BrokerConfig:
    """Parses the given settings (name -> text); the others have their defaults. Unknown names are ignored.

        config = BrokerConfig({"log.retention.hours": "1"})
        config[LOG_RETENTION_MS]    # 3600000: it is not set, but its fallback is
        config[NUM_PARTITIONS]      # 1: the default

    InvalidSettingError for a value that is not allowed.
    """

    __slots__ = ("_jaas", "_of_listeners", "_parsed", "_values", "given", "max_connections_of")

    def __init__(self, given: Mapping[str, str]) -> None:
        self.given = frozenset(given)  # names that were set, also those set to their default
        self._parsed: dict[str, Any] = {
            name: setting.parse(given[name]) if name in given else setting.default
            for name, setting in BROKER_SETTINGS.items()
        }
        self._values: dict[str, Any] = {
            name: _settled(setting, self._parsed) for name, setting in BROKER_SETTINGS.items()
        }

        # listener.name.NAME.max.connections, by the name of the listener
        self.max_connections_of: dict[str, int] = {
            name.upper(): PER_LISTENER.parse(given[key]) for key in given if (name := listener_of(key))
        }

        self._of_listeners: dict[tuple[str, str], Any] = {}
        self._jaas: dict[tuple[str, str], str] = {}
        for key, value in given.items():
            listener, name = override_of(key)
            if name in OF_LISTENERS:
                self._of_listeners[listener, name] = OF_LISTENERS[name].parse(value)
            elif name:
                self._jaas[listener, name.removesuffix(JAAS).upper()] = value

    def of_listener(self, listener: str, setting: Setting[T]) -> T:
        """The value for one listener: its own, or the general one."""
        return cast(T, self._of_listeners.get((listener, setting.name), self._values[setting.name]))

    def jaas_of(self, listener: str, mechanism: str) -> str | None:
        """listener.name.NAME.MECHANISM.sasl.jaas.config. It contains passwords."""
        return self._jaas.get((listener, mechanism))

    def __getitem__(self, setting: Setting[T]) -> T:
        return cast(T, self._values[setting.name])

    def text(self, setting: Setting[Any]) -> str | None:
        """The setting's own value or default, without its fallbacks, in Kafka's form."""
        return text_of(self._parsed[setting.name])


def listener_of(name: str) -> str:
    """The NAME in `listener.name.NAME.max.connections`; empty for any other setting."""
    if name.startswith(PREFIX) and name.endswith(SUFFIX):
        return name[len(PREFIX) : -len(SUFFIX)]
    return ""


def override_of(name: str) -> tuple[str, str]:
    """Listener and setting of `listener.name.NAME.SETTING`; both empty for any other name."""
    if name.startswith(PREFIX):
        listener, _, setting = name.removeprefix(PREFIX).partition(".")
        if setting in OF_LISTENERS or setting.endswith(JAAS):
            return listener.upper(), setting
    return "", ""


def is_secret(name: str) -> bool:
    """Whether the value must not be shown: a password or a key, of the broker or of one listener."""
    own = override_of(name)[1] or name
    setting = BROKER_SETTINGS.get(own)
    return own.endswith(JAAS) or (setting is not None and setting.sensitive)


def _settled(setting: Setting[Any], parsed: Mapping[str, Any]) -> Any:
    value = parsed[setting.name]
    if value is not None:
        return value
    for other, factor in setting.fallbacks:
        found = parsed[other.name]
        if found is not None:
            # A negative retention.hours means "never", which is -1 in every unit.
            return found if factor == 1 else max(found * factor, -1)
    return None
