"""The settings of a consumer: Kafka's names with underscores, and Kafka's defaults. A wrong one is named at once."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any, Final, NamedTuple

from ixion.clients.assignors import ASSIGNORS, EAGER

RESETS: Final = ("earliest", "latest", "none")
PROTOCOLS: Final = ("classic", "consumer")
LEVELS: Final = ("read_uncommitted", "read_committed")


class ConsumerSettings(NamedTuple):
    client_id: str = "ixion"
    group_instance_id: str | None = None
    auto_offset_reset: str = "latest"
    enable_auto_commit: bool = True
    auto_commit_interval_ms: int = 5_000
    max_poll_records: int = 500
    max_poll_interval_ms: int = 300_000
    session_timeout_ms: int = 45_000
    group_protocol: str = "classic"
    group_remote_assignor: str | None = None  # of the consumer protocol; None: the coordinator's choice
    partition_assignment_strategy: Sequence[str] = EAGER
    isolation_level: str = "read_uncommitted"
    fetch_min_bytes: int = 1
    fetch_max_bytes: int = 50 * 1024 * 1024
    fetch_max_wait_ms: int = 500
    max_partition_fetch_bytes: int = 1024 * 1024
    request_timeout_ms: int = 30_000
    default_api_timeout_ms: int = 60_000


LEAST: Final = {  # of the numbers
    "auto_commit_interval_ms": 0,
    "fetch_min_bytes": 0,
    "fetch_max_wait_ms": 0,
    "max_partition_fetch_bytes": 0,
}


def read_settings(given: dict[str, Any]) -> ConsumerSettings:
    """ValueError for a setting that is misspelt or out of range, TypeError for one of another kind."""
    for name in given:
        if name not in ConsumerSettings._fields:
            near = get_close_matches(name, ConsumerSettings._fields, n=1)
            raise ValueError(f"unknown setting {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
    found = ConsumerSettings(**given)
    for name, default in ConsumerSettings._field_defaults.items():
        value = getattr(found, name)
        kind = type(default)
        if kind in (int, bool, str) and type(value) is not kind:
            raise TypeError(f"{name} must be of type {kind.__name__}, not {value!r}")
        if kind is int and value < LEAST.get(name, 1):
            raise ValueError(f"{name} must be at least {LEAST.get(name, 1)}, not {value}")
    check_word("auto_offset_reset", found.auto_offset_reset, RESETS)
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
