"""The settings of a broker at one moment: typed, complete, immutable."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar, cast

from ixion.config.setting import INT_MAX, Scope, Setting, integer, text_of
from ixion.config.table import BROKER_SETTINGS

T = TypeVar("T")

PREFIX: Final = "listener.name."
SUFFIX: Final = ".max.connections"
PER_LISTENER: Final = integer(
    "listener.name.NAME.max.connections",
    INT_MAX,
    least=0,
    scope=Scope.CLUSTER_WIDE,
    doc="connections of one listener",
)


class BrokerConfig:
    """Reads the given settings, by name and as text; the others have their defaults. Unknown names are ignored.

        config = BrokerConfig({"log.retention.hours": "1"})
        config[LOG_RETENTION_MS]    # 3600000: not set itself, its fallback is
        config[NUM_PARTITIONS]      # 1: the default

    InvalidSettingError for a value that is not allowed.
    """

    __slots__ = ("_parsed", "_values", "max_connections_of")

    def __init__(self, given: Mapping[str, str]) -> None:
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

    def __getitem__(self, setting: Setting[T]) -> T:
        return cast(T, self._values[setting.name])

    def text(self, setting: Setting[Any]) -> str | None:
        """The setting's own value or default, without its fallbacks, as Kafka shows it."""
        return text_of(self._parsed[setting.name])


def listener_of(name: str) -> str:
    """The NAME in `listener.name.NAME.max.connections`; empty if the setting is another one."""
    if name.startswith(PREFIX) and name.endswith(SUFFIX):
        return name[len(PREFIX) : -len(SUFFIX)]
    return ""


def _settled(setting: Setting[Any], parsed: Mapping[str, Any]) -> Any:
    value = parsed[setting.name]
    if value is not None:
        return value
    for other, factor in setting.fallbacks:
        found = parsed[other.name]
        if found is not None:
            # A negative retention.hours means "never", and that is -1 in every unit.
            return found if factor == 1 else max(found * factor, -1)
    return None
