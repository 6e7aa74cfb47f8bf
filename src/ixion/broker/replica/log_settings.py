"""The settings of a log: those of the topic, else those of the broker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ixion.broker.log.config import LogConfig
from ixion.config import log_settings as settings
from ixion.config import topic as own
from ixion.config.broker import BrokerConfig
from ixion.config.delay_rules import with_delay
from ixion.config.topic import DELIVERY_DELAY_MODE, DELIVERY_DELAY_MS, TopicConfig

MOST_KNOWN: Final = 1_000  # topics


def log_config(broker: BrokerConfig, topic: Mapping[str, str], name: str = "") -> LogConfig:
    """`name` is the topic, which delivery.delay.topics may match."""
    config = TopicConfig.stored(broker, with_delay(broker, name, topic) if name else topic)
    policy = config[settings.LOG_CLEANUP_POLICY]
    mode = config.own(DELIVERY_DELAY_MODE)
    delay_ms = config.own(DELIVERY_DELAY_MS) if mode == "fixed" else 0
    return LogConfig(
        segment_bytes=config[settings.LOG_SEGMENT_BYTES],
        segment_ms=config[settings.LOG_ROLL_MS],
        segment_jitter_ms=config[settings.LOG_ROLL_JITTER_MS],
        segment_index_bytes=config[settings.LOG_INDEX_SIZE_MAX_BYTES],
        index_interval_bytes=config[settings.LOG_INDEX_INTERVAL_BYTES],
        max_message_bytes=config[settings.MESSAGE_MAX_BYTES],
        # Delayed delivery counts from the append.
        message_timestamp_type="LogAppendTime" if delay_ms else config[settings.LOG_MESSAGE_TIMESTAMP_TYPE],
        message_timestamp_before_max_ms=config[settings.LOG_MESSAGE_TIMESTAMP_BEFORE_MAX_MS],
        message_timestamp_after_max_ms=config[settings.LOG_MESSAGE_TIMESTAMP_AFTER_MAX_MS],
        compression_type=config[settings.COMPRESSION_TYPE],
        compression_gzip_level=config[settings.COMPRESSION_GZIP_LEVEL],
        compression_lz4_level=config[settings.COMPRESSION_LZ4_LEVEL],
        compression_zstd_level=config[settings.COMPRESSION_ZSTD_LEVEL],
        cleanup_policy=frozenset(policy),
        retention_ms=config[settings.LOG_RETENTION_MS],
        retention_bytes=config[settings.LOG_RETENTION_BYTES],
        file_delete_delay_ms=config[settings.LOG_SEGMENT_DELETE_DELAY_MS],
        delete_retention_ms=config[settings.LOG_CLEANER_DELETE_RETENTION_MS],
        min_compaction_lag_ms=config[settings.LOG_CLEANER_MIN_COMPACTION_LAG_MS],
        max_compaction_lag_ms=config[settings.LOG_CLEANER_MAX_COMPACTION_LAG_MS],
        min_cleanable_dirty_ratio=config[settings.LOG_CLEANER_MIN_CLEANABLE_RATIO],
        flush_messages=config[settings.LOG_FLUSH_INTERVAL_MESSAGES],
        flush_ms=config[settings.LOG_FLUSH_INTERVAL_MS],
        producer_id_expiration_ms=broker[settings.PRODUCER_ID_EXPIRATION_MS],
        delivery_delay_ms=delay_ms,
        delivery_delay_mode=mode,
        delivery_delay_max_ms=config.own(own.DELIVERY_DELAY_MAX_MS),
        delivery_delay_pending_max=config.own(own.DELIVERY_DELAY_PENDING_MAX),
        delivery_delay_pending_bytes_max=config.own(own.DELIVERY_DELAY_PENDING_BYTES_MAX),
        delivery_delay_release_rate_max=config.own(own.DELIVERY_DELAY_RELEASE_RATE_MAX),
        delivery_delay_target=config.own(own.DELIVERY_DELAY_TARGET) if mode == "record" else "",
    )


class LogConfigs:
    """`log_config`, shared by the partitions of a topic until its settings or those of the broker change.

    Computing it for each of 10,000 partitions took a tenth of the start, and half a KB of memory each. Any thread may
    call.
    """

    def __init__(self) -> None:
        self._known: dict[str, tuple[BrokerConfig, dict[str, str], LogConfig]] = {}

    def of(self, broker: BrokerConfig, topic: Mapping[str, str], name: str) -> LogConfig:
        known = self._known.get(name)
        if known is not None and known[0] is broker and known[1] == topic:
            return known[2]
        made = log_config(broker, topic, name)
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()  # drop deleted topics
        self._known[name] = (broker, dict(topic), made)
        return made
