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
    100,  # 3,000 in Kafka. Members that start together still share one rebalance, and a lone one does not wait for it
    doc="wait for more members before the first rebalance of an empty group",
)
GROUP_MAX_SIZE: Final = integer("group.max.size", INT_MAX, least=1, doc="members of a group")
GROUP_COORDINATOR_REBALANCE_PROTOCOLS: Final = words(
    "group.coordinator.rebalance.protocols",
    ("classic", "consumer"),  # as Kafka 4 has it; 3.9 offered the second one only when asked
    choices=("consumer", "classic", "share", "unknown"),
    doc="rebalance protocols that are offered",
)
GROUP_CONSUMER_SESSION_TIMEOUT_MS: Final = integer(
    "group.consumer.session.timeout.ms", 45_000, least=1, doc="session timeout of members of the consumer protocol"
)
GROUP_CONSUMER_MIN_SESSION_TIMEOUT_MS: Final = integer(
    "group.consumer.min.session.timeout.ms", 45_000, least=1, doc="the least to which a group may set it"
)
GROUP_CONSUMER_MAX_SESSION_TIMEOUT_MS: Final = integer(
    "group.consumer.max.session.timeout.ms", 60_000, least=1, doc="the most to which a group may set it"
)
GROUP_CONSUMER_HEARTBEAT_INTERVAL_MS: Final = integer(
    "group.consumer.heartbeat.interval.ms", 5_000, least=1, doc="heartbeat interval of members of the consumer protocol"
)
GROUP_CONSUMER_MIN_HEARTBEAT_INTERVAL_MS: Final = integer(
    "group.consumer.min.heartbeat.interval.ms", 5_000, least=1, doc="the least to which a group may set it"
)
GROUP_CONSUMER_MAX_HEARTBEAT_INTERVAL_MS: Final = integer(
    "group.consumer.max.heartbeat.interval.ms", 15_000, least=1, doc="the most to which a group may set it"
)
GROUP_CONSUMER_ASSIGNMENT_INTERVAL_MS: Final = integer(  # this and its limits came with Kafka 4.3
    "group.consumer.assignment.interval.ms",
    1_000,
    scope=Scope.CLUSTER_WIDE,
    least=0,
    doc="how long an assignment of a group of the consumer protocol is in force at least, whatever changes meanwhile",
)
GROUP_CONSUMER_MIN_ASSIGNMENT_INTERVAL_MS: Final = integer(
    "group.consumer.min.assignment.interval.ms", 0, least=0, doc="the least to which a group may set it"
)
GROUP_CONSUMER_MAX_ASSIGNMENT_INTERVAL_MS: Final = integer(
    "group.consumer.max.assignment.interval.ms", 15_000, least=0, doc="the most to which a group may set it"
)
GROUP_CONSUMER_MAX_SIZE: Final = integer(
    "group.consumer.max.size", INT_MAX, least=1, doc="members of a group of the consumer protocol"
)
_ASSIGNOR_CLASSES: Final = "org.apache.kafka.coordinator.group.assignor."  # what Kafka had here before it had names
GROUP_CONSUMER_ASSIGNORS: Final = words(
    "group.consumer.assignors",
    ("uniform", "range"),  # as Kafka 4 has it; class names in 3.9
    choices=("uniform", "range", _ASSIGNOR_CLASSES + "UniformAssignor", _ASSIGNOR_CLASSES + "RangeAssignor"),
    doc="assignors that members of the consumer protocol may name; the first one is for members that name none",
)
GROUP_CONSUMER_MIGRATION_POLICY: Final = string(
    "group.consumer.migration.policy",
    "bidirectional",  # as Kafka 4 has it; "disabled" in 3.9
    choices=("disabled", "downgrade", "upgrade", "bidirectional"),
    doc="how a group with members may change between the classic and the consumer protocol",
)
OFFSET_METADATA_MAX_BYTES: Final = integer(
    "offset.metadata.max.bytes", 4_096, doc="bytes of text that may be kept with a committed offset"
)
OFFSETS_LOAD_BUFFER_SIZE: Final = integer(
    "offsets.load.buffer.size", 5_242_880, least=1, doc="bytes read at once when offsets are loaded"
)
OFFSETS_TOPIC_REPLICATION_FACTOR: Final = integer(
    "offsets.topic.replication.factor", 3, Kind.SHORT, least=1, doc="replicas of the topic of offsets"
)
OFFSETS_TOPIC_NUM_PARTITIONS: Final = integer(
    "offsets.topic.num.partitions", 50, least=1, doc="partitions of the topic of offsets; not to be changed afterwards"
)
OFFSETS_TOPIC_SEGMENT_BYTES: Final = integer(
    "offsets.topic.segment.bytes", 104_857_600, least=1, doc="segment size of the topic of offsets"
)
OFFSETS_TOPIC_COMPRESSION_CODEC: Final = integer(
    "offsets.topic.compression.codec", 0, doc="codec of the topic of offsets, by its number"
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
