"""Reads the settings of a consumer: Kafka's names with underscores. A wrong one is named at once, as by a producer.

`ixion.clients.table` has the defaults and the ranges.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ixion.clients.assignors import ASSIGNORS
from ixion.clients.core.consumer.reset import read_policy
from ixion.clients.core.consumer.settings import ConsumerSettings
from ixion.clients.options import MAX_I32, Options
from ixion.clients.refused import SHARE
from ixion.clients.security import SecurityOptions
from ixion.clients.table import SETTINGS

WORDS: Final = {"group_protocol": ("classic", "consumer"), "isolation_level": ("read_uncommitted", "read_committed")}


class ConsumerOptions(SecurityOptions, total=False):
    """Kafka's names, with underscores; times in milliseconds, sizes in bytes."""

    allow_auto_create_topics: bool
    auto_commit_interval_ms: int
    auto_offset_reset: str
    client_id: str
    client_rack: str
    connections_max_idle_ms: int
    default_api_timeout_ms: int
    enable_auto_commit: bool
    fetch_max_bytes: int
    fetch_max_wait_ms: int
    fetch_min_bytes: int
    group_instance_id: str | None
    group_protocol: str
    group_remote_assignor: str | None
    heartbeat_interval_ms: int
    isolation_level: str
    max_partition_fetch_bytes: int
    max_poll_interval_ms: int
    max_poll_records: int
    metadata_max_age_ms: int
    partition_assignment_strategy: Sequence[str]
    reconnect_backoff_max_ms: int
    reconnect_backoff_ms: int
    request_timeout_ms: int
    retry_backoff_max_ms: int
    retry_backoff_ms: int
    session_timeout_ms: int
    socket_connection_setup_timeout_ms: int


def read_settings(given: Mapping[str, Any]) -> ConsumerSettings:
    """TypeError for an unknown setting, ValueError for a value that is not allowed; both name the setting. The settings
    of security are read elsewhere (`split_security`)."""
    options = Options(given, ConsumerSettings._fields)
    if given.get("group_protocol") == "share":
        raise ValueError(f"group_protocol is 'share'; {SHARE}")
    values = {name: read_one(options, name, default) for name, default in ConsumerSettings._field_defaults.items()}
    found = ConsumerSettings(**values)
    read_policy(found.auto_offset_reset)
    if found.group_protocol == "classic" and found.heartbeat_interval_ms >= found.session_timeout_ms:
        raise ValueError(
            f"heartbeat_interval_ms is {found.heartbeat_interval_ms}; it must be less than session_timeout_ms, "
            f"which is {found.session_timeout_ms}"
        )
    return found


def read_one(options: Options, name: str, default: Any) -> Any:
    """Its kind is that of its default."""
    if name == "partition_assignment_strategy":
        return options.words(name, default, tuple(ASSIGNORS))
    if name in WORDS:
        return options.choice(name, default, {word: word for word in WORDS[name]})
    if isinstance(default, bool):
        return options.flag(name, default)
    if isinstance(default, int):
        row = SETTINGS.get(name)
        return options.whole(name, default, row.least if row else 1, row.most if row else MAX_I32)
    return options.text_or_none(name) if default is None else options.text(name, default)
