"""The settings of consumer groups: the broker's, and those of a single group (resource type 32)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ixion.config import group_settings as settings
from ixion.config.dynamic import DynamicConfig
from ixion.config.group import ASSIGNMENT_INTERVAL, BEHIND_GROUP, HEARTBEAT_INTERVAL, SESSION_TIMEOUT

GroupConfig = Callable[[str], Mapping[str, str]]  # the settings of a group, by its id


class GroupLimits:
    def __init__(self, config: DynamicConfig, of_group: GroupConfig) -> None:
        self._config = config
        self._of_group = of_group

    @property
    def max_size(self) -> int:
        return self._config.current[settings.GROUP_CONSUMER_MAX_SIZE]

    @property
    def assignors(self) -> tuple[str, ...]:
        """The assignors that members may name; the first one is the default. A Java class stands for its assignor:
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
        return self._own(group_id, SESSION_TIMEOUT)

    def heartbeat_interval_ms(self, group_id: str) -> int:
        return self._own(group_id, HEARTBEAT_INTERVAL)

    def assignment_interval_ms(self, group_id: str) -> int:
        """The least time between two computations of targets."""
        return self._own(group_id, ASSIGNMENT_INTERVAL)

    def _own(self, group_id: str, name: str) -> int:
        """The group's own setting, kept within limits that may have become narrower since; else the broker's."""
        config = self._config.current
        default, least, most = BEHIND_GROUP[name]
        given = self._of_group(group_id).get(name)
        return config[default] if given is None else min(max(int(given), config[least]), config[most])
