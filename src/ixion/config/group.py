"""Settings of one consumer group, which override those of the broker (KIP-848).

A group's values must be within the broker's limits: with group.consumer.min.session.timeout.ms=45000 no group can have
a session timeout of 10 seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from ixion.config import group_settings as settings
from ixion.config.broker import BrokerConfig
from ixion.config.errors import InvalidSettingError, UnknownSettingError
from ixion.config.setting import Setting
from ixion.config.table import meant

SESSION_TIMEOUT: Final = "consumer.session.timeout.ms"
HEARTBEAT_INTERVAL: Final = "consumer.heartbeat.interval.ms"
ASSIGNMENT_INTERVAL: Final = "consumer.assignment.interval.ms"


class Behind(NamedTuple):
    """The broker setting that is the default of a group setting, and its limits."""

    default: Setting[int]
    least: Setting[int]
    most: Setting[int]


BEHIND_GROUP: Final = {
    HEARTBEAT_INTERVAL: Behind(
        settings.GROUP_CONSUMER_HEARTBEAT_INTERVAL_MS,
        settings.GROUP_CONSUMER_MIN_HEARTBEAT_INTERVAL_MS,
        settings.GROUP_CONSUMER_MAX_HEARTBEAT_INTERVAL_MS,
    ),
    SESSION_TIMEOUT: Behind(
        settings.GROUP_CONSUMER_SESSION_TIMEOUT_MS,
        settings.GROUP_CONSUMER_MIN_SESSION_TIMEOUT_MS,
        settings.GROUP_CONSUMER_MAX_SESSION_TIMEOUT_MS,
    ),
    ASSIGNMENT_INTERVAL: Behind(
        settings.GROUP_CONSUMER_ASSIGNMENT_INTERVAL_MS,
        settings.GROUP_CONSUMER_MIN_ASSIGNMENT_INTERVAL_MS,
        settings.GROUP_CONSUMER_MAX_ASSIGNMENT_INTERVAL_MS,
    ),
}
GROUP_SETTINGS: Final[dict[str, Setting[int]]] = {
    name: replace(behind.default, name=name) for name, behind in BEHIND_GROUP.items()
}


def check_group(broker: BrokerConfig, given: Mapping[str, str]) -> None:
    """InvalidSettingError for invalid settings of a group. Unknown names are errors, as for a topic."""
    values = {name: broker[behind.default] for name, behind in BEHIND_GROUP.items()}
    for name, value in given.items():
        if name not in GROUP_SETTINGS:
            raise UnknownSettingError(name, value, "group", meant(name, GROUP_SETTINGS))
        _, least, most = BEHIND_GROUP[name]
        values[name] = GROUP_SETTINGS[name].parse(value)
        if not broker[least] <= values[name] <= broker[most]:
            allowed = f"{least.name} ({broker[least]}) to {most.name} ({broker[most]})"
            raise InvalidSettingError(name, value, allowed)
    session, heartbeat = values[SESSION_TIMEOUT], values[HEARTBEAT_INTERVAL]
    if given and session <= heartbeat:
        raise InvalidSettingError(SESSION_TIMEOUT, str(session), f"more than {HEARTBEAT_INTERVAL} ({heartbeat})")
