"""Kafka's error codes, with Kafka's names, and the exception for them.

`retriable`: the same request can succeed later. `stale_metadata`: it can succeed only after the client has refreshed
its metadata. With all other codes the client must change something first.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

# What a client does about a code. REFRESH includes RETRY.
NEITHER: Final = 0
RETRY: Final = 1
REFRESH: Final = 3


class ErrorCode(IntEnum):
    """One line per code: its meaning, and what the client does about it."""

    explanation: str
    advice: int

    def __new__(cls, code: int, explanation: str = "", advice: int = NEITHER) -> ErrorCode:
        member = int.__new__(cls, code)
        member._value_ = code
        member.explanation = explanation
        member.advice = advice
        return member

    @property
    def retriable(self) -> bool:
        return self.advice & RETRY != 0

    @property
    def stale_metadata(self) -> bool:
        return self.advice == REFRESH

    UNKNOWN_SERVER_ERROR = -1, "an unexpected error in the broker"
    NONE = 0, "no error"
    OFFSET_OUT_OF_RANGE = 1, "the offset is below the log start or beyond the log end"
    CORRUPT_MESSAGE = 2, "a batch is damaged: bad CRC, bad size, or no key where compaction needs one", RETRY
    UNKNOWN_TOPIC_OR_PARTITION = 3, "no such topic or partition on this broker", REFRESH
    INVALID_FETCH_SIZE = 4, "the fetch size makes no sense"
    LEADER_NOT_AVAILABLE = 5, "the partition has no leader yet; an election is going on", REFRESH
    NOT_LEADER_OR_FOLLOWER = 6, "this broker does not lead the partition, or holds no replica of it", REFRESH
    REQUEST_TIMED_OUT = 7, "the request timed out", RETRY
    BROKER_NOT_AVAILABLE = 8, "the broker is not reachable"
    REPLICA_NOT_AVAILABLE = 9, "this broker holds no usable replica of the partition", REFRESH
    MESSAGE_TOO_LARGE = 10, "the batch is larger than the topic accepts"
    STALE_CONTROLLER_EPOCH = 11, "the controller that sent this has been replaced"
    OFFSET_METADATA_TOO_LARGE = 12, "the metadata kept with a committed offset is too long"
    NETWORK_EXCEPTION = 13, "the connection broke before the response", REFRESH
    COORDINATOR_LOAD_IN_PROGRESS = 14, "the coordinator is still reading its state", RETRY
    COORDINATOR_NOT_AVAILABLE = 15, "no coordinator is available", RETRY
    NOT_COORDINATOR = 16, "another broker coordinates this group or transaction", RETRY
    INVALID_TOPIC_EXCEPTION = 17, "the topic name is not allowed here"
    RECORD_LIST_TOO_LARGE = 18, "the batch does not fit into one log segment"
    NOT_ENOUGH_REPLICAS = 19, "fewer replicas are in sync than min.insync.replicas; nothing was written", RETRY
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = (
        20,
        "written, but fewer replicas are in sync than min.insync.replicas",
        RETRY,
    )
    INVALID_REQUIRED_ACKS = 21, "acks must be -1, 0 or 1"
    ILLEGAL_GENERATION = 22, "the group has moved to another generation"
    INCONSISTENT_GROUP_PROTOCOL = 23, "the member shares no protocol with the rest of the group"
    INVALID_GROUP_ID = 24, "the group id is not acceptable"
    UNKNOWN_MEMBER_ID = 25, "the group does not know this member"
    INVALID_SESSION_TIMEOUT = 26, "the session timeout is outside the limits of the broker"
    REBALANCE_IN_PROGRESS = 27, "the group is rebalancing; join again"
    INVALID_COMMIT_OFFSET_SIZE = 28, "the offset commit is too large to store"
    TOPIC_AUTHORIZATION_FAILED = 29, "the principal may not do this on the topic"
    GROUP_AUTHORIZATION_FAILED = 30, "the principal may not do this on the group"
    CLUSTER_AUTHORIZATION_FAILED = 31, "the principal may not do this on the cluster"
    INVALID_TIMESTAMP = 32, "a timestamp is too far from the clock of the broker"
    UNSUPPORTED_SASL_MECHANISM = 33, "the broker offers no such SASL mechanism"
    ILLEGAL_SASL_STATE = 34, "this request does not belong to this step of the SASL exchange"
    UNSUPPORTED_VERSION = 35, "the broker does not support this version of the API"
    TOPIC_ALREADY_EXISTS = 36, "a topic with this name exists"
    INVALID_PARTITIONS = 37, "the number of partitions is not acceptable"
    INVALID_REPLICATION_FACTOR = 38, "the replication factor is below one or above the number of brokers"
    INVALID_REPLICA_ASSIGNMENT = 39, "the given assignment of replicas is not acceptable"
    INVALID_CONFIG = 40, "a configuration key or value is not acceptable"
    NOT_CONTROLLER = 41, "another broker is the controller", RETRY
    INVALID_REQUEST = 42, "the request contradicts itself or the protocol"
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43, "the record format of the log does not support this"
    POLICY_VIOLATION = 44, "a policy of the cluster forbids this"
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45, "a producer's sequence has a gap"
    DUPLICATE_SEQUENCE_NUMBER = 46, "this batch was written before"
    INVALID_PRODUCER_EPOCH = 47, "the producer's epoch is old"
    INVALID_TXN_STATE = 48, "the transaction is not in a state that allows this"
    INVALID_PRODUCER_ID_MAPPING = 49, "this producer id is not the one of the transactional id"
    INVALID_TRANSACTION_TIMEOUT = 50, "the transaction timeout is above transaction.max.timeout.ms"
    CONCURRENT_TRANSACTIONS = 51, "another change of the same transaction is in progress", RETRY
    TRANSACTION_COORDINATOR_FENCED = 52, "the coordinator that sent the marker has been replaced"
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53, "the principal may not use the transactional id"
    SECURITY_DISABLED = 54, "no authorizer is configured"
    OPERATION_NOT_ATTEMPTED = 55, "not tried, because another part of the request failed"
    KAFKA_STORAGE_ERROR = 56, "the disk under the log failed", REFRESH
    LOG_DIR_NOT_FOUND = 57, "the broker has no such log directory"
    SASL_AUTHENTICATION_FAILED = 58, "the credentials were refused"
    UNKNOWN_PRODUCER_ID = 59, "the partition does not know this producer id, or no longer"
    REASSIGNMENT_IN_PROGRESS = 60, "the partition is being reassigned"
    DELEGATION_TOKEN_AUTH_DISABLED = 61, "delegation tokens are switched off"
    DELEGATION_TOKEN_NOT_FOUND = 62, "no such delegation token"
    DELEGATION_TOKEN_OWNER_MISMATCH = 63, "the principal neither owns nor may renew the token"
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64, "tokens are not issued over this kind of connection"
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65, "the principal may not do this with the token"
    DELEGATION_TOKEN_EXPIRED = 66, "the delegation token has expired"
    INVALID_PRINCIPAL_TYPE = 67, "the kind of principal is not supported"
    NON_EMPTY_GROUP = 68, "the group still has members"
    GROUP_ID_NOT_FOUND = 69, "no such group"
    FETCH_SESSION_ID_NOT_FOUND = 70, "the broker does not have this fetch session", RETRY
    INVALID_FETCH_SESSION_EPOCH = 71, "the fetch session is at another epoch", RETRY
    LISTENER_NOT_FOUND = 72, "the leader has no listener of this name", REFRESH
    TOPIC_DELETION_DISABLED = 73, "topics cannot be deleted on this cluster"
    FENCED_LEADER_EPOCH = 74, "the leader epoch in the request is older than the broker's", REFRESH
    UNKNOWN_LEADER_EPOCH = 75, "the leader epoch in the request is newer than the broker's", RETRY
    UNSUPPORTED_COMPRESSION_TYPE = 76, "the client cannot read the compression of this partition"
    STALE_BROKER_EPOCH = 77, "the broker registered again since this request was made"
    OFFSET_NOT_AVAILABLE = 78, "the high watermark of a new leader has not caught up yet", RETRY
    MEMBER_ID_REQUIRED = 79, "join again with the member id in this response"
    PREFERRED_LEADER_NOT_AVAILABLE = 80, "the preferred leader is not in sync or not alive", REFRESH
    GROUP_MAX_SIZE_REACHED = 81, "the group is full"
    FENCED_INSTANCE_ID = 82, "another member with the same group.instance.id took over"
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83, "no replica may become leader", REFRESH
    ELECTION_NOT_NEEDED = 84, "the wanted leader leads already", REFRESH
    NO_REASSIGNMENT_IN_PROGRESS = 85, "the partition is not being reassigned"
    GROUP_SUBSCRIBED_TO_TOPIC = 86, "the group is still subscribed to the topic"
    INVALID_RECORD = 87, "a record breaks a rule of the topic"
    UNSTABLE_OFFSET_COMMIT = 88, "the partition has offsets of an open transaction", RETRY
    THROTTLING_QUOTA_EXCEEDED = 89, "above the quota; slow down", RETRY
    PRODUCER_FENCED = 90, "a newer producer uses the transactional id"
    RESOURCE_NOT_FOUND = 91, "the named resource does not exist"
    DUPLICATE_RESOURCE = 92, "the request names the same resource twice"
    UNACCEPTABLE_CREDENTIAL = 93, "the credential is not acceptable"
    INCONSISTENT_VOTER_SET = 94, "sender or receiver is not one of the voters"
    INVALID_UPDATE_VERSION = 95, "the feature version is not acceptable"
    FEATURE_UPDATE_FAILED = 96, "the features could not be changed"
    PRINCIPAL_DESERIALIZATION_FAILURE = 97, "the forwarded principal could not be read"
    SNAPSHOT_NOT_FOUND = 98, "no such snapshot"
    POSITION_OUT_OF_RANGE = 99, "the position is outside the snapshot"
    UNKNOWN_TOPIC_ID = 100, "no topic with this id on this broker", REFRESH
    DUPLICATE_BROKER_REGISTRATION = 101, "a live broker uses this id"
    BROKER_ID_NOT_REGISTERED = 102, "no broker is registered under this id"
    INCONSISTENT_TOPIC_ID = 103, "the log belongs to a topic with another id", REFRESH
    INCONSISTENT_CLUSTER_ID = 104, "the request is meant for another cluster"
    TRANSACTIONAL_ID_NOT_FOUND = 105, "no such transactional id"
    FETCH_SESSION_TOPIC_ID_ERROR = 106, "the fetch session mixed topic names and ids", RETRY
    INELIGIBLE_REPLICA = 107, "a replica may not join the ISR"
    NEW_LEADER_ELECTED = 108, "the change was made and elected another leader"
    OFFSET_MOVED_TO_TIERED_STORAGE = 109, "the offset has moved to remote storage"
    FENCED_MEMBER_EPOCH = 110, "the member was fenced; give up all partitions and join again"
    UNRELEASED_INSTANCE_ID = 111, "a member with this instance id has not left yet"
    UNSUPPORTED_ASSIGNOR = 112, "the group cannot use this assignor"
    STALE_MEMBER_EPOCH = 113, "the member's epoch is old; retry after the next heartbeat"
    MISMATCHED_ENDPOINT_TYPE = 114, "the request went to the wrong kind of endpoint"
    UNSUPPORTED_ENDPOINT_TYPE = 115, "this kind of endpoint is not supported"
    UNKNOWN_CONTROLLER_ID = 116, "no such controller"
    UNKNOWN_SUBSCRIPTION_ID = 117, "the telemetry subscription is unknown or old"
    TELEMETRY_TOO_LARGE = 118, "the telemetry is larger than telemetry.max.bytes"
    INVALID_REGISTRATION = 119, "the controller refuses the registration of the broker"
    TRANSACTION_ABORTABLE = 120, "the transaction failed; abort it and continue"
    INVALID_RECORD_STATE = 121, "the record is not in a state that can be acknowledged"
    SHARE_SESSION_NOT_FOUND = 122, "the broker does not have this share session", RETRY
    INVALID_SHARE_SESSION_EPOCH = 123, "the share session is at another epoch", RETRY
    FENCED_STATE_EPOCH = 124, "the state of the share group is at another epoch"
    INVALID_VOTER_KEY = 125, "the voter key belongs to another replica"
    DUPLICATE_VOTER = 126, "the replica is a voter already"
    VOTER_NOT_FOUND = 127, "the replica is not a voter"
    INVALID_REGULAR_EXPRESSION = 128, "the regular expression cannot be compiled"
    REBOOTSTRAP_REQUIRED = 129, "the client's view of the cluster is too old; start from the bootstrap servers"
    STREAMS_INVALID_TOPOLOGY = 130, "the topology is not acceptable"
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131, "the topology epoch is not acceptable"
    STREAMS_TOPOLOGY_FENCED = 132, "the topology epoch is old"
    SHARE_SESSION_LIMIT_REACHED = 133, "the broker serves as many share sessions as it may", RETRY


class KafkaError(Exception):
    """An error code for a request, or for a part of one.

    The message says what is wrong, with the value; without one, the explanation of the code is used.
    """

    def __init__(self, code: ErrorCode, message: str = "") -> None:
        super().__init__(code, message)
        self.code: Final = code
        self.message: Final = message or code.explanation

    def __str__(self) -> str:
        return f"{self.code.name}: {self.message}"
