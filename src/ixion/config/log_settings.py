"""Log directories, segments, retention, flushing and compaction."""

from __future__ import annotations

import sys
from typing import Final

from ixion.config.setting import LONG_MAX, Scope, double, flag, integer, long, optional_integer, string, words

DOUBLE_MAX: Final = sys.float_info.max

# In the current directory. Kafka's default is in /tmp, which the system empties.
LOG_DIR: Final = string("log.dir", "ixion-data", doc="the log directory if log.dirs is not set")
LOG_DIRS: Final = string("log.dirs", None, fallbacks=((LOG_DIR, 1),), doc="the log directories, separated by commas")
LOG_SEGMENT_BYTES: Final = integer(
    "log.segment.bytes",
    1_073_741_824,
    least=14,
    scope=Scope.CLUSTER_WIDE,
    topic="segment.bytes",
    doc="size at which a segment is rolled",
)
LOG_ROLL_HOURS: Final = integer("log.roll.hours", 168, least=1, doc="age at which a segment is rolled, in hours")
LOG_ROLL_MS: Final = long(
    "log.roll.ms",
    None,
    scope=Scope.CLUSTER_WIDE,
    least=1,
    topic="segment.ms",
    fallbacks=((LOG_ROLL_HOURS, 3_600_000),),
    doc="age at which a segment is rolled",
)
LOG_ROLL_JITTER_HOURS: Final = integer(
    "log.roll.jitter.hours", 0, least=0, doc="maximum random reduction of log.roll.hours"
)
LOG_ROLL_JITTER_MS: Final = long(
    "log.roll.jitter.ms",
    None,
    scope=Scope.CLUSTER_WIDE,
    least=0,
    topic="segment.jitter.ms",
    fallbacks=((LOG_ROLL_JITTER_HOURS, 3_600_000),),
    doc="maximum random reduction of log.roll.ms",
)
LOG_RETENTION_HOURS: Final = integer("log.retention.hours", 168, doc="age at which records are deleted, in hours")
LOG_RETENTION_MINUTES: Final = optional_integer(
    "log.retention.minutes", doc="age at which records are deleted, in minutes"
)
LOG_RETENTION_MS: Final = long(
    "log.retention.ms",
    None,
    scope=Scope.CLUSTER_WIDE,
    least=1,
    also=-1,
    topic="retention.ms",
    topic_least=-1,
    fallbacks=((LOG_RETENTION_MINUTES, 60_000), (LOG_RETENTION_HOURS, 3_600_000)),
    doc="age at which records are deleted; -1: never",
)
LOG_RETENTION_BYTES: Final = long(
    "log.retention.bytes",
    -1,
    scope=Scope.CLUSTER_WIDE,
    topic="retention.bytes",
    doc="size of a partition above which its oldest segments are deleted; -1: no limit",
)
LOG_RETENTION_CHECK_INTERVAL_MS: Final = long(
    "log.retention.check.interval.ms", 300_000, least=1, doc="how often the broker checks for segments to delete"
)
LOG_CLEANUP_POLICY: Final = words(
    "log.cleanup.policy",
    ("delete",),
    choices=("compact", "delete"),
    scope=Scope.CLUSTER_WIDE,
    topic="cleanup.policy",
    doc="cleanup of old segments: delete, compact, or both",
)
LOG_SEGMENT_DELETE_DELAY_MS: Final = long(
    "log.segment.delete.delay.ms",
    60_000,
    least=0,
    scope=Scope.CLUSTER_WIDE,
    topic="file.delete.delay.ms",
    doc="time between removing a segment from the log and deleting its files",
)
LOG_INDEX_SIZE_MAX_BYTES: Final = integer(
    "log.index.size.max.bytes",
    10_485_760,
    least=4,
    scope=Scope.CLUSTER_WIDE,
    topic="segment.index.bytes",
    doc="size of an index file",
)
LOG_INDEX_INTERVAL_BYTES: Final = integer(
    "log.index.interval.bytes",
    4_096,
    least=0,
    scope=Scope.CLUSTER_WIDE,
    topic="index.interval.bytes",
    doc="bytes of records between two index entries",
)
LOG_FLUSH_INTERVAL_MESSAGES: Final = long(
    "log.flush.interval.messages",
    LONG_MAX,
    least=1,
    scope=Scope.CLUSTER_WIDE,
    topic="flush.messages",
    doc="records after which a partition is flushed to the disk",
)
LOG_FLUSH_SCHEDULER_INTERVAL_MS: Final = long(
    "log.flush.scheduler.interval.ms", LONG_MAX, doc="how often the broker checks for partitions to flush"
)
LOG_FLUSH_INTERVAL_MS: Final = long(
    "log.flush.interval.ms",
    None,
    scope=Scope.CLUSTER_WIDE,
    least=0,
    topic="flush.ms",
    fallbacks=((LOG_FLUSH_SCHEDULER_INTERVAL_MS, 1),),
    doc="longest time before a record is flushed",
)
LOG_FLUSH_OFFSET_CHECKPOINT_INTERVAL_MS: Final = integer(
    "log.flush.offset.checkpoint.interval.ms", 60_000, least=0, doc="how often recovery points are written"
)
LOG_FLUSH_START_OFFSET_CHECKPOINT_INTERVAL_MS: Final = integer(
    "log.flush.start.offset.checkpoint.interval.ms", 60_000, least=0, doc="how often log start offsets are written"
)
LOG_PREALLOCATE: Final = flag(
    "log.preallocate",
    False,
    scope=Scope.CLUSTER_WIDE,
    topic="preallocate",
    doc="whether the file of a new segment is preallocated",
)
LOG_MESSAGE_TIMESTAMP_TYPE: Final = string(
    "log.message.timestamp.type",
    "CreateTime",
    choices=("CreateTime", "LogAppendTime"),
    scope=Scope.CLUSTER_WIDE,
    topic="message.timestamp.type",
    doc="the timestamp of a record: CreateTime from the producer, or LogAppendTime from the broker",
)
LOG_MESSAGE_TIMESTAMP_BEFORE_MAX_MS: Final = long(
    "log.message.timestamp.before.max.ms",
    LONG_MAX,
    least=0,
    scope=Scope.CLUSTER_WIDE,
    topic="message.timestamp.before.max.ms",
    doc="how far a record's timestamp may be behind the broker's clock",
)
LOG_MESSAGE_TIMESTAMP_AFTER_MAX_MS: Final = long(
    "log.message.timestamp.after.max.ms",
    3_600_000,
    least=0,
    scope=Scope.CLUSTER_WIDE,
    topic="message.timestamp.after.max.ms",
    doc="how far a record's timestamp may be ahead of the broker's clock",
)
LOG_LOCAL_RETENTION_MS: Final = long(
    "log.local.retention.ms",
    -2,
    least=-2,
    scope=Scope.CLUSTER_WIDE,
    topic="local.retention.ms",
    doc="how long segments stay on the disk that are in remote storage, too",
)
LOG_LOCAL_RETENTION_BYTES: Final = long(
    "log.local.retention.bytes",
    -2,
    least=-2,
    scope=Scope.CLUSTER_WIDE,
    topic="local.retention.bytes",
    doc="bytes that stay on the disk of what is in remote storage, too",
)
LOG_INITIAL_TASK_DELAY_MS: Final = long(
    "log.initial.task.delay.ms",
    30_000,
    least=0,
    doc="delay of retention, flushes and checkpoints after the start",
)
LOG_CLEANER_ENABLE: Final = flag("log.cleaner.enable", True, doc="whether compaction runs")
LOG_CLEANER_THREADS: Final = integer(
    "log.cleaner.threads", 1, least=0, scope=Scope.CLUSTER_WIDE, doc="threads of compaction"
)
LOG_CLEANER_DEDUPE_BUFFER_SIZE: Final = long(
    "log.cleaner.dedupe.buffer.size",
    134_217_728,
    scope=Scope.CLUSTER_WIDE,
    doc="memory for the keys of compaction, all threads together",
)
LOG_CLEANER_IO_BUFFER_SIZE: Final = integer(
    "log.cleaner.io.buffer.size",
    524_288,
    least=0,
    scope=Scope.CLUSTER_WIDE,
    doc="memory for reading and writing in compaction, all threads together",
)
LOG_CLEANER_IO_BUFFER_LOAD_FACTOR: Final = double(
    "log.cleaner.io.buffer.load.factor", 0.9, scope=Scope.CLUSTER_WIDE, doc="how full the map of keys may get"
)
LOG_CLEANER_IO_MAX_BYTES_PER_SECOND: Final = double(
    "log.cleaner.io.max.bytes.per.second",
    DOUBLE_MAX,
    scope=Scope.CLUSTER_WIDE,
    doc="bytes per second that compaction may read and write",
)
LOG_CLEANER_BACKOFF_MS: Final = long(
    "log.cleaner.backoff.ms",
    15_000,
    least=0,
    scope=Scope.CLUSTER_WIDE,
    doc="pause of compaction when no log needs it",
)
LOG_CLEANER_MIN_CLEANABLE_RATIO: Final = double(
    "log.cleaner.min.cleanable.ratio",
    0.5,
    least=0,
    most=1,
    scope=Scope.CLUSTER_WIDE,
    topic="min.cleanable.dirty.ratio",
    doc="share of a log that must be dirty before it is compacted",
)
LOG_CLEANER_DELETE_RETENTION_MS: Final = long(
    "log.cleaner.delete.retention.ms",
    86_400_000,
    least=0,
    scope=Scope.CLUSTER_WIDE,
    topic="delete.retention.ms",
    doc="how long a compacted log keeps tombstones",
)
LOG_CLEANER_MIN_COMPACTION_LAG_MS: Final = long(
    "log.cleaner.min.compaction.lag.ms",
    0,
    least=0,
    scope=Scope.CLUSTER_WIDE,
    topic="min.compaction.lag.ms",
    doc="age below which compaction keeps every record",
)
LOG_CLEANER_MAX_COMPACTION_LAG_MS: Final = long(
    "log.cleaner.max.compaction.lag.ms",
    LONG_MAX,
    least=1,
    scope=Scope.CLUSTER_WIDE,
    topic="max.compaction.lag.ms",
    doc="age beyond which a record must be compacted",
)
MESSAGE_MAX_BYTES: Final = integer(
    "message.max.bytes",
    1_048_588,
    least=0,
    scope=Scope.CLUSTER_WIDE,
    topic="max.message.bytes",
    doc="size of the largest accepted batch",
)
COMPRESSION_TYPE: Final = string(
    "compression.type",
    "producer",
    choices=("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
    scope=Scope.CLUSTER_WIDE,
    topic="compression.type",
    doc="codec in which records are stored; producer: the producer's codec",
)
COMPRESSION_GZIP_LEVEL: Final = integer(
    "compression.gzip.level",
    -1,
    least=1,
    most=9,
    also=-1,
    scope=Scope.CLUSTER_WIDE,
    topic="compression.gzip.level",
    doc="level if the broker itself compresses with gzip; -1: zlib's default",
)
COMPRESSION_LZ4_LEVEL: Final = integer(
    "compression.lz4.level",
    9,
    least=1,
    most=17,
    scope=Scope.CLUSTER_WIDE,
    topic="compression.lz4.level",
    doc="level if the broker itself compresses with lz4",
)
COMPRESSION_ZSTD_LEVEL: Final = integer(
    "compression.zstd.level",
    3,
    least=-131_072,
    most=22,
    scope=Scope.CLUSTER_WIDE,
    topic="compression.zstd.level",
    doc="level if the broker itself compresses with zstd",
)
NUM_RECOVERY_THREADS_PER_DATA_DIR: Final = integer(
    "num.recovery.threads.per.data.dir",
    1,
    least=1,
    scope=Scope.CLUSTER_WIDE,
    doc="threads per log directory that open logs after an unclean stop",
)
NUM_REPLICA_ALTER_LOG_DIRS_THREADS: Final = optional_integer(
    "num.replica.alter.log.dirs.threads",
    doc="threads that move replicas between log directories; default: one per directory",
)
DELIVERY_DELAY_TOPICS: Final = string(
    "delivery.delay.topics",
    "",
    doc="delay of topics without delivery.delay.mode: PATTERN:record or PATTERN:fixed:MS, separated by semicolons",
)
PRODUCER_ID_EXPIRATION_MS: Final = integer(
    "producer.id.expiration.ms",
    86_400_000,
    least=1,
    scope=Scope.CLUSTER_WIDE,
    doc="time after which an idle producer id expires",
)
PRODUCER_ID_EXPIRATION_CHECK_INTERVAL_MS: Final = integer(
    "producer.id.expiration.check.interval.ms",
    600_000,
    least=1,
    doc="how often the broker checks for idle producer ids",
)
