"""The settings of a consumer: Kafka's names with underscores, and Kafka's defaults. A wrong one is named at once."""

from __future__ import annotations

from typing import Any, Final

from ixion.clients.assignors import ASSIGNORS
from ixion.clients.core.consumer.reset import read_policy
from ixion.clients.core.consumer.settings import ConsumerSettings
from ixion.clients.options import MAX_I32, MAX_I64, did_you_mean
from ixion.clients.refused import SHARE

PROTOCOLS: Final = ("classic", "consumer")
LEVELS: Final = ("read_uncommitted", "read_committed")


LEAST: Final = {  # of the numbers
    "auto_commit_interval_ms": 0,
    "fetch_min_bytes": 0,
    "fetch_max_wait_ms": 0,
    "max_partition_fetch_bytes": 0,
    "reconnect_backoff_ms": 0,
    "reconnect_backoff_max_ms": 0,
    "retry_backoff_ms": 0,
    "retry_backoff_max_ms": 0,
    "metadata_max_age_ms": 0,
}

LONG: Final = (  # Kafka's long; the others are an int
    "connections_max_idle_ms",
    "metadata_max_age_ms",
    "reconnect_backoff_max_ms",
    "reconnect_backoff_ms",
    "retry_backoff_max_ms",
    "retry_backoff_ms",
    "socket_connection_setup_timeout_ms",
)


def read_settings(given: dict[str, Any]) -> ConsumerSettings:
    """ValueError for a setting that is misspelt or out of range, TypeError for one of another kind."""
    for name in given:
        if name not in ConsumerSettings._fields:
            raise ValueError(f"unknown setting {name!r}{did_you_mean(name, ConsumerSettings._fields)}")
    found = ConsumerSettings(**given)
    for name, default in ConsumerSettings._field_defaults.items():
        value = getattr(found, name)
        kind = type(default)
        if kind in (int, bool, str) and type(value) is not kind:
            raise TypeError(f"{name} must be of type {kind.__name__}, not {value!r}")
        if kind is int and value < LEAST.get(name, 1):
            raise ValueError(f"{name} must be at least {LEAST.get(name, 1)}, not {value}")
        if kind is int and value > (MAX_I64 if name in LONG else MAX_I32):
            raise ValueError(f"{name} must be at most {MAX_I64 if name in LONG else MAX_I32}, not {value}")
    read_policy(found.auto_offset_reset)
    if found.group_protocol == "classic" and found.heartbeat_interval_ms >= found.session_timeout_ms:
        raise ValueError(
            f"heartbeat_interval_ms is {found.heartbeat_interval_ms}; it must be less than session_timeout_ms, "
            f"which is {found.session_timeout_ms}"
        )
    if found.group_protocol == "share":
        raise ValueError(f"group_protocol is 'share'; {SHARE}")
    check_word("group_protocol", found.group_protocol, PROTOCOLS)
    check_word("isolation_level", found.isolation_level, LEVELS)
    if not found.partition_assignment_strategy or isinstance(found.partition_assignment_strategy, str):
        raise ValueError("partition_assignment_strategy must be a list of one name or more")
    for name in found.partition_assignment_strategy:
        check_word("partition_assignment_strategy", name, tuple(ASSIGNORS))
    return found


def check_word(setting: str, word: str, allowed: tuple[str, ...]) -> None:
    if word not in allowed:
        raise ValueError(f"{setting} must be one of {', '.join(allowed)}, not {word!r}")
