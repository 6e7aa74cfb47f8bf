"""Settings of one consumer, share or streams group, which override those of the broker (KIP-848, KIP-932, KIP-1071).

A group's values must be within the broker's limits: with group.consumer.min.session.timeout.ms=45000 no group can have
a session timeout of 10 seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

from ixion.config import group_settings as settings
from ixion.config import share_group, streams_group
from ixion.config import share_settings as share
from ixion.config import streams_settings as streams
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
    share_group.HEARTBEAT_INTERVAL: Behind(
        share.GROUP_SHARE_HEARTBEAT_INTERVAL_MS,
        share.GROUP_SHARE_MIN_HEARTBEAT_INTERVAL_MS,
        share.GROUP_SHARE_MAX_HEARTBEAT_INTERVAL_MS,
    ),
    share_group.SESSION_TIMEOUT: Behind(
        share.GROUP_SHARE_SESSION_TIMEOUT_MS,
        share.GROUP_SHARE_MIN_SESSION_TIMEOUT_MS,
        share.GROUP_SHARE_MAX_SESSION_TIMEOUT_MS,
    ),
    share_group.ASSIGNMENT_INTERVAL: Behind(
        share.GROUP_SHARE_ASSIGNMENT_INTERVAL_MS,
        share.GROUP_SHARE_MIN_ASSIGNMENT_INTERVAL_MS,
        share.GROUP_SHARE_MAX_ASSIGNMENT_INTERVAL_MS,
    ),
    share_group.LOCK_DURATION: Behind(
        share.GROUP_SHARE_RECORD_LOCK_DURATION_MS,
        share.GROUP_SHARE_MIN_RECORD_LOCK_DURATION_MS,
        share.GROUP_SHARE_MAX_RECORD_LOCK_DURATION_MS,
    ),
    share_group.DELIVERY_LIMIT: Behind(
        share.GROUP_SHARE_DELIVERY_COUNT_LIMIT,
        share.GROUP_SHARE_MIN_DELIVERY_COUNT_LIMIT,
        share.GROUP_SHARE_MAX_DELIVERY_COUNT_LIMIT,
    ),
    share_group.MAX_LOCKS: Behind(
        share.GROUP_SHARE_PARTITION_MAX_RECORD_LOCKS,
        share.GROUP_SHARE_MIN_PARTITION_MAX_RECORD_LOCKS,
        share.GROUP_SHARE_MAX_PARTITION_MAX_RECORD_LOCKS,
    ),
    streams_group.HEARTBEAT_INTERVAL: Behind(
        streams.GROUP_STREAMS_HEARTBEAT_INTERVAL_MS,
        streams.GROUP_STREAMS_MIN_HEARTBEAT_INTERVAL_MS,
        streams.GROUP_STREAMS_MAX_HEARTBEAT_INTERVAL_MS,
    ),
    streams_group.SESSION_TIMEOUT: Behind(
        streams.GROUP_STREAMS_SESSION_TIMEOUT_MS,
        streams.GROUP_STREAMS_MIN_SESSION_TIMEOUT_MS,
        streams.GROUP_STREAMS_MAX_SESSION_TIMEOUT_MS,
    ),
    streams_group.ASSIGNMENT_INTERVAL: Behind(
        streams.GROUP_STREAMS_ASSIGNMENT_INTERVAL_MS,
        streams.GROUP_STREAMS_MIN_ASSIGNMENT_INTERVAL_MS,
        streams.GROUP_STREAMS_MAX_ASSIGNMENT_INTERVAL_MS,
    ),
}
GROUP_SETTINGS: Final[dict[str, Setting[Any]]] = {
    **{name: replace(behind.default, name=name) for name, behind in BEHIND_GROUP.items()},
    **share_group.OWN,
    **streams_group.OWN,
}
SESSIONS: Final = (  # a session must outlast the interval of heartbeats
    (SESSION_TIMEOUT, HEARTBEAT_INTERVAL),
    (share_group.SESSION_TIMEOUT, share_group.HEARTBEAT_INTERVAL),
    (streams_group.SESSION_TIMEOUT, streams_group.HEARTBEAT_INTERVAL),
)


def default_of_group(name: str) -> Setting[Any] | None:
    """The broker setting whose value a group has if it sets none itself; None: the setting stands alone."""
    behind = BEHIND_GROUP.get(name)
    return streams_group.DEFAULTS.get(name) if behind is None else behind.default


def check_group(broker: BrokerConfig, given: Mapping[str, str]) -> None:
    """InvalidSettingError for invalid settings of a group. Unknown names are errors, as for a topic."""
    values = {name: broker[behind.default] for name, behind in BEHIND_GROUP.items()}
    for name, value in given.items():
        if name not in GROUP_SETTINGS:
            raise UnknownSettingError(name, value, "group", meant(name, GROUP_SETTINGS))
        parsed = GROUP_SETTINGS[name].parse(value)
        if name not in BEHIND_GROUP:
            if name == share_group.AUTO_OFFSET_RESET.name:
                share_group.read_reset(value)
            if name == share_group.DEAD_LETTER_TOPIC.name:
                share_group.check_dead_letter_topic(parsed, broker[share.DEAD_LETTER_PREFIX])
            most_standbys = broker[streams.GROUP_STREAMS_MAX_STANDBY_REPLICAS]
            if name == streams_group.NUM_STANDBY_REPLICAS.name and parsed > most_standbys:
                raise InvalidSettingError(
                    name, value, f"at most {streams.GROUP_STREAMS_MAX_STANDBY_REPLICAS.name} ({most_standbys})"
                )
            continue
        _, least, most = BEHIND_GROUP[name]
        values[name] = parsed
        if not broker[least] <= parsed <= broker[most]:
            allowed = f"{least.name} ({broker[least]}) to {most.name} ({broker[most]})"
            raise InvalidSettingError(name, value, allowed)
    for session, heartbeat in SESSIONS:
        if given and values[session] <= values[heartbeat]:
            allowed = f"more than {heartbeat} ({values[heartbeat]})"
            raise InvalidSettingError(session, str(values[session]), allowed)
