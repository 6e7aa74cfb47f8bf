"""Settings of one streams group (KIP-1071)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ixion.config import streams_settings as settings
from ixion.config.broker import BrokerConfig
from ixion.config.setting import Setting, integer

SESSION_TIMEOUT: Final = "streams.session.timeout.ms"
HEARTBEAT_INTERVAL: Final = "streams.heartbeat.interval.ms"
ASSIGNMENT_INTERVAL: Final = "streams.assignment.interval.ms"
NUM_STANDBY_REPLICAS: Final = integer(
    "streams.num.standby.replicas", 0, least=0, doc="standby tasks of each stateful task"
)
INITIAL_REBALANCE_DELAY: Final = integer(
    "streams.initial.rebalance.delay.ms",
    settings.GROUP_STREAMS_INITIAL_REBALANCE_DELAY_MS.default or 0,
    least=0,
    doc="wait for more members before the first assignment of an empty group",
)

# Settings of a group for which the broker has no lower limit.
OWN: Final[dict[str, Setting[Any]]] = {each.name: each for each in (NUM_STANDBY_REPLICAS, INITIAL_REBALANCE_DELAY)}
DEFAULTS: Final[dict[str, Setting[Any]]] = {
    NUM_STANDBY_REPLICAS.name: settings.GROUP_STREAMS_NUM_STANDBY_REPLICAS,
    INITIAL_REBALANCE_DELAY.name: settings.GROUP_STREAMS_INITIAL_REBALANCE_DELAY_MS,
}


class StreamsGroupSettings:
    """The settings of streams groups that are in force now."""

    def __init__(self, current: Callable[[], BrokerConfig], of_group: Callable[[str], Mapping[str, str]]) -> None:
        self._current = current
        self._of_group = of_group

    def heartbeat_interval_ms(self, group_id: str) -> int:
        return self._within(group_id, HEARTBEAT_INTERVAL)

    def session_timeout_ms(self, group_id: str) -> int:
        return self._within(group_id, SESSION_TIMEOUT)

    def assignment_interval_ms(self, group_id: str) -> int:
        return self._within(group_id, ASSIGNMENT_INTERVAL)

    def standby_replicas(self, group_id: str) -> int:
        config = self._current()
        given = self._of_group(group_id).get(NUM_STANDBY_REPLICAS.name)
        if given is None:
            return config[settings.GROUP_STREAMS_NUM_STANDBY_REPLICAS]
        return min(int(given), config[settings.GROUP_STREAMS_MAX_STANDBY_REPLICAS])

    def initial_rebalance_delay_ms(self, group_id: str) -> int:
        given = self._of_group(group_id).get(INITIAL_REBALANCE_DELAY.name)
        return self._current()[settings.GROUP_STREAMS_INITIAL_REBALANCE_DELAY_MS] if given is None else int(given)

    @property
    def max_size(self) -> int:
        return self._current()[settings.GROUP_STREAMS_MAX_SIZE]

    def _within(self, group_id: str, name: str) -> int:
        """The group's own value, kept within limits that may have become narrower since; else the broker's."""
        from ixion.config.group import BEHIND_GROUP

        config = self._current()
        default, least, most = BEHIND_GROUP[name]
        given = self._of_group(group_id).get(name)
        return config[default] if given is None else min(max(int(given), config[least]), config[most])
