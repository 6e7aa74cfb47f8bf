"""The settings of one log, under Kafka's topic-level names with underscores for dots, and with Kafka's defaults.

`config.log_settings` has their limits and checks them.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

NEVER: Final = (1 << 63) - 1
HOUR_MS: Final = 60 * 60 * 1000
DAY_MS: Final = 24 * HOUR_MS


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class LogConfig:
    """The settings of one log. Without `__eq__` and `__repr__`, which are not needed and cost 1 ms at the import."""

    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * DAY_MS
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10 << 20
    index_interval_bytes: int = 4096
    max_message_bytes: int = (1 << 20) + 12
    message_timestamp_type: str = "CreateTime"
    message_timestamp_before_max_ms: int = NEVER
    message_timestamp_after_max_ms: int = 3_600_000
    compression_type: str = "producer"
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_zstd_level: int = 3
    cleanup_policy: frozenset[str] = frozenset({"delete"})
    retention_ms: int = 7 * DAY_MS  # -1: for ever
    retention_bytes: int = -1  # -1: without limit
    file_delete_delay_ms: int = 60_000
    delete_retention_ms: int = DAY_MS
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = NEVER
    min_cleanable_dirty_ratio: float = 0.5
    flush_messages: int = NEVER  # 1: flush before every acknowledgement
    flush_ms: int = NEVER
    producer_id_expiration_ms: int = DAY_MS
    delivery_delay_ms: int = 0  # consumers see a record this long after its append
    delivery_delay_mode: str = "off"  # record: the headers of each record set its delay
    delivery_delay_max_ms: int = 366 * DAY_MS
    delivery_delay_pending_max: int = 10_000_000
    delivery_delay_pending_bytes_max: int = 64 << 30
    delivery_delay_release_rate_max: int = 0  # records a second; 0: without limit
    delivery_delay_target: str = ""  # the topic that delayed records are delivered to; empty: their own

    @property
    def delays_records(self) -> bool:
        """Whether the headers of a record may delay its delivery."""
        return self.delivery_delay_mode == "record"

    @property
    def compact(self) -> bool:
        return "compact" in self.cleanup_policy

    @property
    def delete(self) -> bool:
        return "delete" in self.cleanup_policy


def sibling_config(topic: LogConfig) -> LogConfig:
    """The settings of the log in which delayed records of a topic wait: nothing is deleted before its time."""
    return LogConfig(
        segment_bytes=topic.segment_bytes,
        segment_index_bytes=topic.segment_index_bytes,
        index_interval_bytes=topic.index_interval_bytes,
        retention_ms=-1,
        file_delete_delay_ms=topic.file_delete_delay_ms,
        flush_ms=topic.flush_ms,
    )
