"""Consumer groups and their offsets."""

from __future__ import annotations

from typing import Final

from ixion.config.setting import INT_MAX, Kind, Scope, integer, long, string, words

GROUP_MIN_SESSION_TIMEOUT_MS: Final = integer(
    "group.min.session.timeout.ms", 6_000, doc="the shortest session timeout that a member may ask for"
)
GROUP_MAX_SESSION_TIMEOUT_MS: Final = integer(
    "group.max.session.timeout.ms", 1_800_000, doc="the longest session timeout that a member may ask for"
)
GROUP_INITIAL_REBALANCE_DELAY_MS: Final = integer(
    "group.initial.rebalance.delay.ms",
    100,  # 3,000 in Kafka. Members that start together still share one rebalance, and a single one hardly waits
    doc="wait for more members before the first rebalance of an empty group",
)
GROUP_MAX_SIZE: Final = integer("group.max.size", INT_MAX, least=1, doc="most members of a group")
GROUP_COORDINATOR_REBALANCE_PROTOCOLS: Final = words(
    "group.coordinator.rebalance.protocols",
    ("classic", "consumer"),  # as in Kafka 4; the default of 3.9 was classic alone
    choices=("consumer", "classic", "share", "unknown"),
    doc="enabled rebalance protocols",
)
GROUP_CONSUMER_SESSION_TIMEOUT_MS: Final = integer(
    "group.consumer.session.timeout.ms", 45_000, least=1, doc="session timeout in the consumer protocol"
)
GROUP_CONSUMER_MIN_SESSION_TIMEOUT_MS: Final = integer(
    "group.consumer.min.session.timeout.ms", 45_000, least=1, doc="lowest session timeout that a group may set"
)
GROUP_CONSUMER_MAX_SESSION_TIMEOUT_MS: Final = integer(
    "group.consumer.max.session.timeout.ms", 60_000, least=1, doc="highest session timeout that a group may set"
)
GROUP_CONSUMER_HEARTBEAT_INTERVAL_MS: Final = integer(
    "group.consumer.heartbeat.interval.ms", 5_000, least=1, doc="heartbeat interval in the consumer protocol"
)
GROUP_CONSUMER_MIN_HEARTBEAT_INTERVAL_MS: Final = integer(
    "group.consumer.min.heartbeat.interval.ms", 5_000, least=1, doc="lowest heartbeat interval that a group may set"
)
GROUP_CONSUMER_MAX_HEARTBEAT_INTERVAL_MS: Final = integer(
    "group.consumer.max.heartbeat.interval.ms", 15_000, least=1, doc="highest heartbeat interval that a group may set"
)
GROUP_CONSUMER_ASSIGNMENT_INTERVAL_MS: Final = integer(  # this and its limits came with Kafka 4.3
    "group.consumer.assignment.interval.ms",
    1_000,
    scope=Scope.CLUSTER_WIDE,
    least=0,
    doc="shortest time between two assignments of a group in the consumer protocol",
)
GROUP_CONSUMER_MIN_ASSIGNMENT_INTERVAL_MS: Final = integer(
    "group.consumer.min.assignment.interval.ms", 0, least=0, doc="lowest assignment interval that a group may set"
)
GROUP_CONSUMER_MAX_ASSIGNMENT_INTERVAL_MS: Final = integer(
    "group.consumer.max.assignment.interval.ms", 15_000, least=0, doc="highest assignment interval that a group may set"
)
GROUP_CONSUMER_MAX_SIZE: Final = integer(
    "group.consumer.max.size", INT_MAX, least=1, doc="most members of a group in the consumer protocol"
)
_ASSIGNOR_CLASSES: Final = "org.apache.kafka.coordinator.group.assignor."  # Kafka 3.9 has class names instead of names
GROUP_CONSUMER_ASSIGNORS: Final = words(
    "group.consumer.assignors",
    ("uniform", "range"),  # as in Kafka 4; class names in 3.9
    choices=("uniform", "range", _ASSIGNOR_CLASSES + "UniformAssignor", _ASSIGNOR_CLASSES + "RangeAssignor"),
    doc="assignors that members in the consumer protocol may choose; the first is the default",
)
GROUP_CONSUMER_MIGRATION_POLICY: Final = string(
    "group.consumer.migration.policy",
    "bidirectional",  # as in Kafka 4; "disabled" in 3.9
    choices=("disabled", "downgrade", "upgrade", "bidirectional"),
    doc="how a group with members may change between the classic and the consumer protocol",
)
OFFSET_METADATA_MAX_BYTES: Final = integer(
    "offset.metadata.max.bytes", 4_096, doc="most bytes of metadata with a committed offset"
)
OFFSETS_LOAD_BUFFER_SIZE: Final = integer(
    "offsets.load.buffer.size", 5_242_880, least=1, doc="bytes read at once when offsets are loaded"
)
OFFSETS_TOPIC_REPLICATION_FACTOR: Final = integer(
    "offsets.topic.replication.factor", 3, Kind.SHORT, least=1, doc="replicas of the offsets topic"
)
OFFSETS_TOPIC_NUM_PARTITIONS: Final = integer(
    "offsets.topic.num.partitions", 50, least=1, doc="partitions of the offsets topic; do not change it afterwards"
)
OFFSETS_TOPIC_SEGMENT_BYTES: Final = integer(
    "offsets.topic.segment.bytes", 104_857_600, least=1, doc="segment size of the offsets topic"
)
OFFSETS_TOPIC_COMPRESSION_CODEC: Final = integer(
    "offsets.topic.compression.codec", 0, doc="codec of the offsets topic, by number"
)
OFFSETS_RETENTION_MINUTES: Final = integer(
    "offsets.retention.minutes", 10_080, least=1, doc="how long the offsets of an empty group are kept"
)
OFFSETS_RETENTION_CHECK_INTERVAL_MS: Final = long(
    "offsets.retention.check.interval.ms", 600_000, least=1, doc="how often the broker looks for old offsets"
)
OFFSETS_COMMIT_TIMEOUT_MS: Final = integer(
    "offsets.commit.timeout.ms", 5_000, least=1, doc="how long a commit waits for the replicas"
)
OFFSETS_COMMIT_REQUIRED_ACKS: Final = integer("offsets.commit.required.acks", -1, Kind.SHORT, doc="acks of a commit")
