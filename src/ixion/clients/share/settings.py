"""Reads the settings of a share consumer: Kafka's names with underscores. A wrong one is named at once.

The defaults are those of `ShareSettings`; types and ranges are those of a consumer. A setting of a consumer that a
share group decides for all of its members is refused with the name that it has there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ixion.clients.consumer.settings import read_one
from ixion.clients.core.share.settings import BATCH_OPTIMIZED, EXPLICIT, IMPLICIT, RECORD_LIMIT, ShareSettings
from ixion.clients.options import Options
from ixion.clients.security import SecurityOptions

WORDS: Final = {
    "share_acknowledgement_mode": (IMPLICIT, EXPLICIT),
    "share_acquire_mode": (BATCH_OPTIMIZED, RECORD_LIMIT),
}
ACKNOWLEDGED: Final = "records are acknowledged, and nothing is committed"
ELSEWHERE: Final = {
    "auto_offset_reset": "the group decides it: share.auto.offset.reset",
    "isolation_level": "the group decides it: share.isolation.level",
    "session_timeout_ms": "the group decides it: share.session.timeout.ms",
    "heartbeat_interval_ms": "the group decides it: share.heartbeat.interval.ms",
    "group_protocol": "a share consumer has one protocol",
    "group_instance_id": "share groups have no static members",
    "group_remote_assignor": "share groups have one assignor",
    "partition_assignment_strategy": "share groups have one assignor",
    "enable_auto_commit": ACKNOWLEDGED,
    "auto_commit_interval_ms": ACKNOWLEDGED,
    "max_partition_fetch_bytes": "a broker divides fetch_max_bytes",
}


class ShareConsumerOptions(SecurityOptions, total=False):
    """Kafka's names, with underscores; times in milliseconds, sizes in bytes."""

    allow_auto_create_topics: bool
    auto_renew: bool
    client_id: str
    client_rack: str
    connections_max_idle_ms: int
    default_api_timeout_ms: int
    fetch_max_bytes: int
    fetch_max_wait_ms: int
    fetch_min_bytes: int
    max_poll_interval_ms: int
    max_poll_records: int
    metadata_max_age_ms: int
    reconnect_backoff_max_ms: int
    reconnect_backoff_ms: int
    request_timeout_ms: int
    retry_backoff_max_ms: int
    retry_backoff_ms: int
    share_acknowledgement_mode: str
    share_acquire_mode: str
    socket_connection_setup_timeout_ms: int


def read_share_settings(given: Mapping[str, Any]) -> ShareSettings:
    """TypeError for an unknown setting, ValueError for a value that is not allowed; both name the setting. The settings
    of security are read elsewhere (`split_security`)."""
    for name in given:
        reason = ELSEWHERE.get(name.replace(".", "_"))
        if reason is not None:
            raise TypeError(f"unknown setting {name!r}; {reason}")
    options = Options(given, ShareSettings._fields)
    values: dict[str, Any] = {}
    for name, default in ShareSettings._field_defaults.items():
        words = WORDS.get(name)
        if words is None:
            values[name] = read_one(options, name, default)
        else:
            values[name] = options.choice(name, default, {word: word for word in words})
    return ShareSettings(**values)
