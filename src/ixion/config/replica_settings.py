"""Replication: in-sync replicas, followers, elections."""

from __future__ import annotations

from typing import Final

from ixion.config.setting import Scope, flag, integer, long, optional_string

MIN_INSYNC_REPLICAS: Final = integer(
    "min.insync.replicas",
    1,
    least=1,
    scope=Scope.CLUSTER_WIDE,
    topic="min.insync.replicas",
    doc="replicas that must be in sync for a produce with acks=all",
)
UNCLEAN_LEADER_ELECTION_ENABLE: Final = flag(
    "unclean.leader.election.enable",
    False,
    scope=Scope.CLUSTER_WIDE,
    topic="unclean.leader.election.enable",
    doc="whether an out-of-sync replica may become leader if no other can, which loses records",
)
REPLICA_LAG_TIME_MAX_MS: Final = long(
    "replica.lag.time.max.ms", 30_000, doc="time behind the leader after which a follower is out of sync"
)
REPLICA_SOCKET_TIMEOUT_MS: Final = integer(
    "replica.socket.timeout.ms", 30_000, doc="how long a follower's request may take"
)
REPLICA_SOCKET_RECEIVE_BUFFER_BYTES: Final = integer(
    "replica.socket.receive.buffer.bytes", 65_536, doc="SO_RCVBUF of a follower's connection"
)
REPLICA_FETCH_MAX_BYTES: Final = integer(
    "replica.fetch.max.bytes", 1_048_576, least=0, doc="bytes per partition in a follower's fetch"
)
REPLICA_FETCH_WAIT_MAX_MS: Final = integer(
    "replica.fetch.wait.max.ms", 500, doc="longest time that a follower's fetch waits at the leader"
)
REPLICA_FETCH_MIN_BYTES: Final = integer("replica.fetch.min.bytes", 1, doc="bytes that a follower's fetch waits for")
REPLICA_FETCH_RESPONSE_MAX_BYTES: Final = integer(
    "replica.fetch.response.max.bytes", 10_485_760, least=0, doc="bytes in the response to a follower's fetch"
)
REPLICA_FETCH_BACKOFF_MS: Final = integer(
    "replica.fetch.backoff.ms", 1_000, least=0, doc="how long a follower waits after an error"
)
REPLICA_HIGH_WATERMARK_CHECKPOINT_INTERVAL_MS: Final = long(
    "replica.high.watermark.checkpoint.interval.ms", 5_000, doc="how often high watermarks are written"
)
LEADER_SELECTOR: Final = "org.apache.kafka.common.replica.LeaderSelector"
RACK_AWARE_SELECTOR: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
REPLICA_SELECTOR_CLASS: Final = optional_string(
    "replica.selector.class", doc="the class that selects the replica for a consumer; default: the leader"
)
NUM_REPLICA_FETCHERS: Final = integer("num.replica.fetchers", 1, scope=Scope.CLUSTER_WIDE, doc="fetchers per leader")
