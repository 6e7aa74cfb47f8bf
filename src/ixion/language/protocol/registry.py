"""The one list of API keys and versions. ApiVersions and the support page are made from it.

Versions are those that Kafka 4.3 serves, with ApiVersions 5, TxnOffsetCommit 6 and DeleteGroups 3 of 4.4; keys 4 to 7,
which it no longer has, are those of 3.9. Each key's table is in `messages`, under its `stem`, and is imported at the
first use of the key.
"""

from __future__ import annotations

from enum import Enum, IntEnum
from importlib import import_module
from typing import Final

from ixion.language.protocol import resolve
from ixion.language.protocol.codec.message import MessageCodec
from ixion.language.protocol.flaws import UnsupportedVersionError
from ixion.language.protocol.notation import StructMeta

NEVER: Final = 1 << 15  # the first flexible version of an API that has none


class Audience(Enum):
    """The senders of an API's requests: clients, brokers or the controller."""

    CLIENTS = "clients"
    BROKERS = "brokers"
    CONTROLLER = "controller and brokers"


class ApiKey(IntEnum):
    """Key, Kafka's name, oldest and newest version, first flexible version, senders."""

    title: str
    oldest: int
    newest: int
    flexible_from: int
    audience: Audience

    def __new__(
        cls,
        key: int,
        title: str = "",
        oldest: int = 0,
        newest: int = 0,
        flexible_from: int = NEVER,
        audience: Audience = Audience.CLIENTS,
    ) -> ApiKey:
        member = int.__new__(cls, key)
        member._value_ = key
        member.title = title
        member.oldest = oldest
        member.newest = newest
        member.flexible_from = flexible_from
        member.audience = audience
        return member

    @property
    def advertised_from(self) -> int:
        """The oldest version in ApiVersions. Old librdkafka compresses only if it sees Produce version 0 there."""
        return 0 if self is ApiKey.PRODUCE else self.oldest

    @property
    def stem(self) -> str:
        """The name of the table's module, of the handler's and of their tests: `k00_produce`."""
        return f"k{self:02d}_{self.name.lower()}"

    @property
    def request_table(self) -> StructMeta:
        return self._table("Request")

    @property
    def response_table(self) -> StructMeta:
        return self._table("Response")

    def _table(self, direction: str) -> StructMeta:
        table = getattr(import_module(f"ixion.language.protocol.messages.{self.stem}"), self.title + direction)
        assert isinstance(table, StructMeta)
        return table

    def is_flexible(self, version: int) -> bool:
        return version >= self.flexible_from

    def request_header_version(self, version: int) -> int:
        if self is ApiKey.CONTROLLED_SHUTDOWN and version == 0:
            return 0
        return 2 if self.is_flexible(version) else 1

    def response_header_version(self, version: int) -> int:
        if self is ApiKey.API_VERSIONS:
            return 0
        return 1 if self.is_flexible(version) else 0

    def request(self, version: int) -> MessageCodec:
        return _codec(_requests, self, version, "Request")

    def response(self, version: int) -> MessageCodec:
        return _codec(_responses, self, version, "Response")

    PRODUCE = 0, "Produce", 3, 13, 9
    FETCH = 1, "Fetch", 4, 18, 12
    LIST_OFFSETS = 2, "ListOffsets", 1, 11, 6
    METADATA = 3, "Metadata", 0, 13, 9
    LEADER_AND_ISR = 4, "LeaderAndIsr", 0, 7, 4, Audience.CONTROLLER
    STOP_REPLICA = 5, "StopReplica", 0, 4, 2, Audience.CONTROLLER
    UPDATE_METADATA = 6, "UpdateMetadata", 0, 8, 6, Audience.CONTROLLER
    CONTROLLED_SHUTDOWN = 7, "ControlledShutdown", 0, 3, 3, Audience.CONTROLLER
    OFFSET_COMMIT = 8, "OffsetCommit", 2, 10, 8
    OFFSET_FETCH = 9, "OffsetFetch", 1, 10, 6
    FIND_COORDINATOR = 10, "FindCoordinator", 0, 6, 3
    JOIN_GROUP = 11, "JoinGroup", 0, 9, 6
    HEARTBEAT = 12, "Heartbeat", 0, 4, 4
    LEAVE_GROUP = 13, "LeaveGroup", 0, 5, 4
    SYNC_GROUP = 14, "SyncGroup", 0, 5, 4
    DESCRIBE_GROUPS = 15, "DescribeGroups", 0, 6, 5
    LIST_GROUPS = 16, "ListGroups", 0, 5, 3
    SASL_HANDSHAKE = 17, "SaslHandshake", 0, 1, NEVER
    API_VERSIONS = 18, "ApiVersions", 0, 5, 3
    CREATE_TOPICS = 19, "CreateTopics", 2, 7, 5
    DELETE_TOPICS = 20, "DeleteTopics", 1, 6, 4
    DELETE_RECORDS = 21, "DeleteRecords", 0, 2, 2
    INIT_PRODUCER_ID = 22, "InitProducerId", 0, 5, 2
    OFFSET_FOR_LEADER_EPOCH = 23, "OffsetForLeaderEpoch", 2, 4, 4
    ADD_PARTITIONS_TO_TXN = 24, "AddPartitionsToTxn", 0, 5, 3
    ADD_OFFSETS_TO_TXN = 25, "AddOffsetsToTxn", 0, 4, 3
    END_TXN = 26, "EndTxn", 0, 5, 3
    WRITE_TXN_MARKERS = 27, "WriteTxnMarkers", 1, 2, 1, Audience.BROKERS
    TXN_OFFSET_COMMIT = 28, "TxnOffsetCommit", 0, 6, 3
    DESCRIBE_ACLS = 29, "DescribeAcls", 1, 3, 2
    CREATE_ACLS = 30, "CreateAcls", 1, 3, 2
    DELETE_ACLS = 31, "DeleteAcls", 1, 3, 2
    DESCRIBE_CONFIGS = 32, "DescribeConfigs", 1, 4, 4
    ALTER_CONFIGS = 33, "AlterConfigs", 0, 2, 2
    ALTER_REPLICA_LOG_DIRS = 34, "AlterReplicaLogDirs", 1, 2, 2
    DESCRIBE_LOG_DIRS = 35, "DescribeLogDirs", 1, 5, 2
    SASL_AUTHENTICATE = 36, "SaslAuthenticate", 0, 2, 2
    CREATE_PARTITIONS = 37, "CreatePartitions", 0, 3, 2
    CREATE_DELEGATION_TOKEN = 38, "CreateDelegationToken", 1, 3, 2
    RENEW_DELEGATION_TOKEN = 39, "RenewDelegationToken", 1, 2, 2
    EXPIRE_DELEGATION_TOKEN = 40, "ExpireDelegationToken", 1, 2, 2
    DESCRIBE_DELEGATION_TOKEN = 41, "DescribeDelegationToken", 1, 3, 2
    DELETE_GROUPS = 42, "DeleteGroups", 0, 3, 2
    ELECT_LEADERS = 43, "ElectLeaders", 0, 2, 2
    INCREMENTAL_ALTER_CONFIGS = 44, "IncrementalAlterConfigs", 0, 1, 1
    ALTER_PARTITION_REASSIGNMENTS = 45, "AlterPartitionReassignments", 0, 1, 0
    LIST_PARTITION_REASSIGNMENTS = 46, "ListPartitionReassignments", 0, 0, 0
    OFFSET_DELETE = 47, "OffsetDelete", 0, 0, NEVER
    DESCRIBE_CLIENT_QUOTAS = 48, "DescribeClientQuotas", 0, 1, 1
    ALTER_CLIENT_QUOTAS = 49, "AlterClientQuotas", 0, 1, 1
    DESCRIBE_USER_SCRAM_CREDENTIALS = 50, "DescribeUserScramCredentials", 0, 0, 0
    ALTER_USER_SCRAM_CREDENTIALS = 51, "AlterUserScramCredentials", 0, 0, 0
    DESCRIBE_QUORUM = 55, "DescribeQuorum", 0, 2, 0
    ALTER_PARTITION = 56, "AlterPartition", 2, 3, 0, Audience.CONTROLLER
    UPDATE_FEATURES = 57, "UpdateFeatures", 0, 2, 0
    DESCRIBE_CLUSTER = 60, "DescribeCluster", 0, 2, 0
    DESCRIBE_PRODUCERS = 61, "DescribeProducers", 0, 0, 0
    DESCRIBE_TRANSACTIONS = 65, "DescribeTransactions", 0, 0, 0
    LIST_TRANSACTIONS = 66, "ListTransactions", 0, 2, 0
    ALLOCATE_PRODUCER_IDS = 67, "AllocateProducerIds", 0, 0, 0, Audience.CONTROLLER
    CONSUMER_GROUP_HEARTBEAT = 68, "ConsumerGroupHeartbeat", 0, 1, 0
    CONSUMER_GROUP_DESCRIBE = 69, "ConsumerGroupDescribe", 0, 1, 0
    GET_TELEMETRY_SUBSCRIPTIONS = 71, "GetTelemetrySubscriptions", 0, 0, 0
    PUSH_TELEMETRY = 72, "PushTelemetry", 0, 0, 0
    LIST_CONFIG_RESOURCES = 74, "ListConfigResources", 0, 1, 0
    DESCRIBE_TOPIC_PARTITIONS = 75, "DescribeTopicPartitions", 0, 0, 0
    SHARE_GROUP_HEARTBEAT = 76, "ShareGroupHeartbeat", 1, 1, 0
    SHARE_GROUP_DESCRIBE = 77, "ShareGroupDescribe", 1, 1, 0
    SHARE_FETCH = 78, "ShareFetch", 1, 2, 0
    SHARE_ACKNOWLEDGE = 79, "ShareAcknowledge", 1, 2, 0
    INITIALIZE_SHARE_GROUP_STATE = 83, "InitializeShareGroupState", 0, 0, 0, Audience.BROKERS
    READ_SHARE_GROUP_STATE = 84, "ReadShareGroupState", 0, 0, 0, Audience.BROKERS
    WRITE_SHARE_GROUP_STATE = 85, "WriteShareGroupState", 0, 1, 0, Audience.BROKERS
    DELETE_SHARE_GROUP_STATE = 86, "DeleteShareGroupState", 0, 0, 0, Audience.BROKERS
    READ_SHARE_GROUP_STATE_SUMMARY = 87, "ReadShareGroupStateSummary", 0, 1, 0, Audience.BROKERS
    STREAMS_GROUP_HEARTBEAT = 88, "StreamsGroupHeartbeat", 0, 0, 0
    STREAMS_GROUP_DESCRIBE = 89, "StreamsGroupDescribe", 0, 0, 0
    DESCRIBE_SHARE_GROUP_OFFSETS = 90, "DescribeShareGroupOffsets", 0, 1, 0
    ALTER_SHARE_GROUP_OFFSETS = 91, "AlterShareGroupOffsets", 0, 0, 0
    DELETE_SHARE_GROUP_OFFSETS = 92, "DeleteShareGroupOffsets", 0, 0, 0


_requests: dict[tuple[int, int], MessageCodec] = {}
_responses: dict[tuple[int, int], MessageCodec] = {}
_keys: Final = {int(key): key for key in ApiKey}


def api_key(key: int, version: int) -> ApiKey:
    """The API of a request that names `key` and `version`."""
    api = _keys.get(key)
    if api is None:
        raise UnsupportedVersionError(key, version)
    return api


def _codec(known: dict[tuple[int, int], MessageCodec], api: ApiKey, version: int, direction: str) -> MessageCodec:
    codec = known.get((api, version))
    if codec is None:
        if not api.oldest <= version <= api.newest:
            raise UnsupportedVersionError(api, version)
        table = api.request_table if direction == "Request" else api.response_table
        codec = resolve.message(table.__name__, table, version, api.is_flexible(version))
        known[api, version] = codec
    return codec
