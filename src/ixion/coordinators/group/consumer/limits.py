"""The settings that bind consumer groups: the broker's, and what was set for a group itself (resource type 32)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ixion.config import group_settings as settings
from ixion.config.dynamic import DynamicConfig
from ixion.config.group import HEARTBEAT_INTERVAL, SESSION_TIMEOUT
from ixion.config.setting import Setting

GroupConfig = Callable[[str], Mapping[str, str]]  # what is set for a group, by its id


class Limits:
    def __init__(self, config: DynamicConfig, of_group: GroupConfig) -> None:
        self._config = config
        self._of_group = of_group

    @property
    def max_size(self) -> int:
        return self._config.current[settings.GROUP_CONSUMER_MAX_SIZE]

    @property
    def assignors(self) -> tuple[str, ...]:
        """The names that members may use; the first one is for those who use none. A Java class goes by its name here:
        org.apache.kafka.coordinator.group.assignor.RangeAssignor is range."""
        given = self._config.current[settings.GROUP_CONSUMER_ASSIGNORS]
        return tuple(dict.fromkeys(name.rpartition(".")[2].removesuffix("Assignor").lower() for name in given))

    @property
    def policy(self) -> str:
        """Whether groups may change between the classic and the consumer protocol while they have members."""
        return self._config.current[settings.GROUP_CONSUMER_MIGRATION_POLICY].lower()

    @property
    def may_upgrade(self) -> bool:
        return self.policy in ("upgrade", "bidirectional")

    @property
    def may_downgrade(self) -> bool:
        return self.policy in ("downgrade", "bidirectional")

    def session_timeout_ms(self, group_id: str) -> int:
        return self._own(
            group_id,
            SESSION_TIMEOUT,
            settings.GROUP_CONSUMER_SESSION_TIMEOUT_MS,
            settings.GROUP_CONSUMER_MIN_SESSION_TIMEOUT_MS,
            settings.GROUP_CONSUMER_MAX_SESSION_TIMEOUT_MS,
        )

    def heartbeat_interval_ms(self, group_id: str) -> int:
        return self._own(
            group_id,
            HEARTBEAT_INTERVAL,
            settings.GROUP_CONSUMER_HEARTBEAT_INTERVAL_MS,
            settings.GROUP_CONSUMER_MIN_HEARTBEAT_INTERVAL_MS,
            settings.GROUP_CONSUMER_MAX_HEARTBEAT_INTERVAL_MS,
        )

    def _own(self, group_id: str, name: str, default: Setting[int], least: Setting[int], most: Setting[int]) -> int:
        config = self._config.current
        given = self._of_group(group_id).get(name)
        if given is None:
            return config[default]
        return min(max(int(given), config[least]), config[most])
