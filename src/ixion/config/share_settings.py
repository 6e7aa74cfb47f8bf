"""Share groups (KIP-932) and their coordinator."""

from __future__ import annotations

from typing import Final

from ixion.config.setting import Kind, Scope, flag, integer, string, words

GROUP_SHARE_HEARTBEAT_INTERVAL_MS: Final = integer(
    "group.share.heartbeat.interval.ms", 5_000, least=1, doc="heartbeat interval of members of share groups"
)
GROUP_SHARE_MIN_HEARTBEAT_INTERVAL_MS: Final = integer(
    "group.share.min.heartbeat.interval.ms", 5_000, least=1, doc="lowest heartbeat interval that a share group may set"
)
GROUP_SHARE_MAX_HEARTBEAT_INTERVAL_MS: Final = integer(
    "group.share.max.heartbeat.interval.ms",
    15_000,
    least=1,
    doc="highest heartbeat interval that a share group may set",
)
GROUP_SHARE_SESSION_TIMEOUT_MS: Final = integer(
    "group.share.session.timeout.ms", 45_000, least=1, doc="session timeout of members of share groups"
)
GROUP_SHARE_MIN_SESSION_TIMEOUT_MS: Final = integer(
    "group.share.min.session.timeout.ms", 45_000, least=1, doc="lowest session timeout that a share group may set"
)
GROUP_SHARE_MAX_SESSION_TIMEOUT_MS: Final = integer(
    "group.share.max.session.timeout.ms", 60_000, least=1, doc="highest session timeout that a share group may set"
)
GROUP_SHARE_MAX_SIZE: Final = integer(
    "group.share.max.size", 200, least=1, most=1_000, doc="most members of a share group"
)
GROUP_SHARE_ASSIGNORS: Final = words(
    "group.share.assignors", ("simple",), choices=("simple",), doc="assignors of share groups; the first is used"
)
GROUP_SHARE_ASSIGNMENT_INTERVAL_MS: Final = integer(
    "group.share.assignment.interval.ms",
    1_000,
    scope=Scope.CLUSTER_WIDE,
    least=0,
    doc="shortest time between two assignments of a share group",
)
GROUP_SHARE_MIN_ASSIGNMENT_INTERVAL_MS: Final = integer(
    "group.share.min.assignment.interval.ms", 0, least=0, doc="lowest assignment interval that a share group may set"
)
GROUP_SHARE_MAX_ASSIGNMENT_INTERVAL_MS: Final = integer(
    "group.share.max.assignment.interval.ms",
    15_000,
    least=0,
    doc="highest assignment interval that a share group may set",
)
GROUP_SHARE_RECORD_LOCK_DURATION_MS: Final = integer(
    "group.share.record.lock.duration.ms", 30_000, least=1_000, doc="how long a member holds a record it has fetched"
)
GROUP_SHARE_MIN_RECORD_LOCK_DURATION_MS: Final = integer(
    "group.share.min.record.lock.duration.ms", 15_000, least=1_000, doc="lowest lock duration that a group may set"
)
GROUP_SHARE_MAX_RECORD_LOCK_DURATION_MS: Final = integer(
    "group.share.max.record.lock.duration.ms", 60_000, least=1_000, doc="highest lock duration that a group may set"
)
GROUP_SHARE_DELIVERY_COUNT_LIMIT: Final = integer(
    "group.share.delivery.count.limit", 5, least=2, doc="deliveries of a record before it is archived"
)
GROUP_SHARE_MIN_DELIVERY_COUNT_LIMIT: Final = integer(
    "group.share.min.delivery.count.limit", 2, least=2, doc="lowest delivery limit that a group may set"
)
GROUP_SHARE_MAX_DELIVERY_COUNT_LIMIT: Final = integer(
    "group.share.max.delivery.count.limit", 10, least=2, doc="highest delivery limit that a group may set"
)
GROUP_SHARE_PARTITION_MAX_RECORD_LOCKS: Final = integer(
    "group.share.partition.max.record.locks", 2_000, least=100, doc="records in flight in a share partition"
)
GROUP_SHARE_MIN_PARTITION_MAX_RECORD_LOCKS: Final = integer(
    "group.share.min.partition.max.record.locks", 100, least=100, doc="lowest number of locks that a group may set"
)
GROUP_SHARE_MAX_PARTITION_MAX_RECORD_LOCKS: Final = integer(
    "group.share.max.partition.max.record.locks", 4_000, least=100, doc="highest number of locks that a group may set"
)
GROUP_SHARE_MAX_SHARE_SESSIONS: Final = integer(
    "group.share.max.share.sessions", 2_000, least=1, doc="most share sessions on a broker"
)
DEAD_LETTER_CREATES: Final = flag(
    "errors.deadletterqueue.auto.create.topics.enable",
    False,
    scope=Scope.CLUSTER_WIDE,
    doc="whether the topic for the dead letters of a share group is created if it is missing",
)
DEAD_LETTER_PREFIX: Final = string(
    "errors.deadletterqueue.topic.name.prefix",
    "dlq.",
    scope=Scope.CLUSTER_WIDE,
    doc="how the names of topics for dead letters must begin; empty: as they like",
)
SHARE_FETCH_PURGATORY_PURGE_INTERVAL_REQUESTS: Final = integer(
    "share.fetch.purgatory.purge.interval.requests",
    1_000,
    doc="completed share fetches that are purged from their lists together",
)
SHARE_COORDINATOR_STATE_TOPIC_NUM_PARTITIONS: Final = integer(
    "share.coordinator.state.topic.num.partitions",
    50,
    least=1,
    doc="partitions of the share state topic; do not change it afterwards",
)
SHARE_COORDINATOR_STATE_TOPIC_REPLICATION_FACTOR: Final = integer(
    "share.coordinator.state.topic.replication.factor", 3, Kind.SHORT, least=1, doc="replicas of the share state topic"
)
SHARE_COORDINATOR_STATE_TOPIC_MIN_ISR: Final = integer(
    "share.coordinator.state.topic.min.isr",
    2,
    Kind.SHORT,
    least=1,
    doc="replicas of the share state topic that must be in sync",
)
SHARE_COORDINATOR_STATE_TOPIC_SEGMENT_BYTES: Final = integer(
    "share.coordinator.state.topic.segment.bytes", 104_857_600, least=1, doc="segment size of the share state topic"
)
SHARE_COORDINATOR_SNAPSHOT_UPDATE_RECORDS_PER_SNAPSHOT: Final = integer(
    "share.coordinator.snapshot.update.records.per.snapshot",
    500,
    least=0,
    doc="updates of a share partition between two snapshots",
)
SHARE_COORDINATOR_WRITE_TIMEOUT_MS: Final = integer(
    "share.coordinator.write.timeout.ms", 5_000, least=1, doc="how long a leader tries to store a change of a group"
)
SHARE_COORDINATOR_STATE_TOPIC_PRUNE_INTERVAL_MS: Final = integer(
    "share.coordinator.state.topic.prune.interval.ms",
    300_000,
    least=1,
    doc="how often old records of the share state topic are deleted",
)
SHARE_COORDINATOR_COLD_PARTITION_SNAPSHOT_INTERVAL_MS: Final = integer(
    "share.coordinator.cold.partition.snapshot.interval.ms",
    300_000,
    least=1,
    doc="age at which the snapshot of a share partition may be written again so that older records can be deleted",
)
