"""For each API key that is served: requests that name another user's topic, group and transactional id, or ask for all.

A new API needs an entry here; `test_walk` fails without.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ixion.language.model.ids import ZERO_ID
from ixion.language.model.resource_type import ResourceType
from ixion.language.protocol.envelope import exchange
from ixion.language.protocol.messages import k33_alter_configs as k33
from ixion.language.protocol.messages import k43_elect_leaders as k43
from ixion.language.protocol.messages import k44_incremental_alter_configs as k44
from ixion.language.protocol.messages import k49_alter_client_quotas as k49
from ixion.language.protocol.messages import k55_describe_quorum as k55
from ixion.language.protocol.messages import k61_describe_producers as k61
from ixion.language.protocol.messages import k75_describe_topic_partitions as k75
from ixion.language.protocol.messages import k78_share_fetch as k78
from ixion.language.protocol.messages import k79_share_acknowledge as k79
from ixion.language.protocol.messages import k83_initialize_share_group_state as k83
from ixion.language.protocol.messages import k84_read_share_group_state as k84
from ixion.language.protocol.messages import k85_write_share_group_state as k85
from ixion.language.protocol.messages import k86_delete_share_group_state as k86
from ixion.language.protocol.messages import k87_read_share_group_state_summary as k87
from ixion.language.protocol.messages import k88_streams_group_heartbeat as k88
from ixion.language.protocol.messages import k90_describe_share_group_offsets as k90
from ixion.language.protocol.messages import k91_alter_share_group_offsets as k91
from ixion.language.protocol.messages import k92_delete_share_group_offsets as k92
from ixion.language.protocol.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ixion.language.protocol.messages.k01_fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from ixion.language.protocol.messages.k02_list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ixion.language.protocol.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from ixion.language.protocol.messages.k04_leader_and_isr import LeaderAndIsrRequest
from ixion.language.protocol.messages.k05_stop_replica import StopReplicaRequest
from ixion.language.protocol.messages.k06_update_metadata import UpdateMetadataRequest
from ixion.language.protocol.messages.k07_controlled_shutdown import ControlledShutdownRequest
from ixion.language.protocol.messages.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ixion.language.protocol.messages.k09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from ixion.language.protocol.messages.k10_find_coordinator import FindCoordinatorRequest
from ixion.language.protocol.messages.k11_join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ixion.language.protocol.messages.k12_heartbeat import HeartbeatRequest
from ixion.language.protocol.messages.k13_leave_group import LeaveGroupRequest, MemberIdentity
from ixion.language.protocol.messages.k14_sync_group import SyncGroupRequest
from ixion.language.protocol.messages.k15_describe_groups import DescribeGroupsRequest
from ixion.language.protocol.messages.k16_list_groups import ListGroupsRequest
from ixion.language.protocol.messages.k18_api_versions import ApiVersionsRequest
from ixion.language.protocol.messages.k19_create_topics import CreatableTopic, CreateTopicsRequest
from ixion.language.protocol.messages.k20_delete_topics import DeleteTopicsRequest, DeleteTopicState
from ixion.language.protocol.messages.k21_delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from ixion.language.protocol.messages.k22_init_producer_id import InitProducerIdRequest
from ixion.language.protocol.messages.k23_offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from ixion.language.protocol.messages.k24_add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from ixion.language.protocol.messages.k25_add_offsets_to_txn import AddOffsetsToTxnRequest
from ixion.language.protocol.messages.k26_end_txn import EndTxnRequest
from ixion.language.protocol.messages.k27_write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from ixion.language.protocol.messages.k28_txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from ixion.language.protocol.messages.k29_describe_acls import DescribeAclsRequest
from ixion.language.protocol.messages.k30_create_acls import AclCreation, CreateAclsRequest
from ixion.language.protocol.messages.k31_delete_acls import DeleteAclsFilter, DeleteAclsRequest
from ixion.language.protocol.messages.k32_describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ixion.language.protocol.messages.k34_alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from ixion.language.protocol.messages.k35_describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from ixion.language.protocol.messages.k37_create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ixion.language.protocol.messages.k38_create_delegation_token import CreateDelegationTokenRequest
from ixion.language.protocol.messages.k39_renew_delegation_token import RenewDelegationTokenRequest
from ixion.language.protocol.messages.k40_expire_delegation_token import ExpireDelegationTokenRequest
from ixion.language.protocol.messages.k41_describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from ixion.language.protocol.messages.k42_delete_groups import DeleteGroupsRequest
from ixion.language.protocol.messages.k45_alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from ixion.language.protocol.messages.k46_list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from ixion.language.protocol.messages.k47_offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from ixion.language.protocol.messages.k48_describe_client_quotas import DescribeClientQuotasRequest
from ixion.language.protocol.messages.k50_describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from ixion.language.protocol.messages.k51_alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
)
from ixion.language.protocol.messages.k56_alter_partition import AlterPartitionRequest
from ixion.language.protocol.messages.k57_update_features import FeatureUpdateKey, UpdateFeaturesRequest
from ixion.language.protocol.messages.k60_describe_cluster import DescribeClusterRequest
from ixion.language.protocol.messages.k65_describe_transactions import DescribeTransactionsRequest
from ixion.language.protocol.messages.k66_list_transactions import ListTransactionsRequest
from ixion.language.protocol.messages.k67_allocate_producer_ids import AllocateProducerIdsRequest
from ixion.language.protocol.messages.k68_consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ixion.language.protocol.messages.k69_consumer_group_describe import ConsumerGroupDescribeRequest
from ixion.language.protocol.messages.k71_get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from ixion.language.protocol.messages.k72_push_telemetry import PushTelemetryRequest
from ixion.language.protocol.messages.k74_list_config_resources import ListConfigResourcesRequest
from ixion.language.protocol.messages.k76_share_group_heartbeat import ShareGroupHeartbeatRequest
from ixion.language.protocol.messages.k77_share_group_describe import ShareGroupDescribeRequest
from ixion.language.protocol.messages.k89_streams_group_describe import StreamsGroupDescribeRequest
from ixion.language.protocol.notation import Struct
from ixion.language.protocol.registry import ApiKey
from ixion.language.records.builder import BatchBuilder


@dataclass(frozen=True)
class Names:
    topic: str
    topic_id: bytes
    group: str
    transactional_id: str


def reading(topic: str) -> k88.Subtopology:
    return k88.Subtopology(
        subtopology_id="0",
        source_topics=(topic,),
        source_topic_regex=(),
        state_changelog_topics=(),
        repartition_sink_topics=(),
        repartition_source_topics=(),
        copartition_groups=(),
    )


def requests(key: ApiKey, names: Names, version: int) -> list[Struct]:
    """Those of `REQUESTS`, without what the version cannot carry."""
    structure = exchange(int(key), version).request.structure
    return [
        request.replace(**{missing.name: missing.default for missing in structure.guarded})
        for request in REQUESTS[key](names, version)
    ]


def batch(producer_id: int = -1, transactional: bool = False) -> bytes:
    if producer_id < 0:
        builder = BatchBuilder()
    else:
        builder = BatchBuilder(
            producer_id=producer_id, producer_epoch=0, base_sequence=0, is_transactional=transactional
        )
    builder.append(b"key", b"value", timestamp=0)
    return bytes(builder.build())


def produce(names: Names, version: int) -> list[Struct]:
    def one(records: bytes, transactional_id: str | None) -> ProduceRequest:
        data = PartitionProduceData(index=0, records=records)
        topic = TopicProduceData(name=names.topic, topic_id=names.topic_id, partition_data=(data,))
        return ProduceRequest(transactional_id=transactional_id, acks=-1, timeout_ms=1_000, topic_data=(topic,))

    return [one(batch(), None), one(batch(1, True), names.transactional_id)]


def fetch(names: Names, version: int) -> list[Struct]:
    def one(replica: int, session_epoch: int) -> FetchRequest:
        part = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1_000)
        return FetchRequest(
            replica_id=replica if version < 15 else -1,
            replica_state=ReplicaState(replica_id=replica if version >= 15 else -1),
            max_wait_ms=0,
            min_bytes=0,
            session_epoch=session_epoch,
            topics=(FetchTopic(topic=names.topic, topic_id=names.topic_id, partitions=(part,)),),
        )

    return [one(-1, -1), one(0, -1), one(-2, -1)]


def metadata(names: Names, version: int) -> list[Struct]:
    by_name = MetadataRequestTopic(name=names.topic, topic_id=ZERO_ID)
    asked = [MetadataRequest(topics=(by_name,), allow_auto_topic_creation=False)]
    asked.append(MetadataRequest(topics=() if version == 0 else None))
    if version >= 12:
        asked.append(MetadataRequest(topics=(MetadataRequestTopic(name=None, topic_id=names.topic_id),)))
    return list(asked)


def offset_fetch(names: Names, version: int) -> list[Struct]:
    if version < 8:
        topic = OffsetFetchRequestTopic(name=names.topic, partition_indexes=(0,))
        asked = [OffsetFetchRequest(group_id=names.group, topics=(topic,))]
        return [*asked, OffsetFetchRequest(group_id=names.group, topics=None)] if version >= 2 else list(asked)
    topics = OffsetFetchRequestTopics(name=names.topic, topic_id=names.topic_id, partition_indexes=(0,))
    return [
        OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=names.group, topics=some),))
        for some in ((topics,), None)
    ]


def find_coordinator(names: Names, version: int) -> list[Struct]:
    asked: list[Struct] = [FindCoordinatorRequest(key=names.group, coordinator_keys=(names.group,))]
    if version >= 1:
        key = names.transactional_id
        asked.append(FindCoordinatorRequest(key=key, key_type=1, coordinator_keys=(key,)))
    return asked


def delete_topics(names: Names, version: int) -> list[Struct]:
    if version < 6:
        return [DeleteTopicsRequest(topic_names=(names.topic,), timeout_ms=1_000)]
    return [
        DeleteTopicsRequest(topics=(DeleteTopicState(name=names.topic, topic_id=ZERO_ID),), timeout_ms=1_000),
        DeleteTopicsRequest(topics=(DeleteTopicState(name=None, topic_id=names.topic_id),), timeout_ms=1_000),
    ]


def add_partitions(names: Names, version: int) -> list[Struct]:
    topic = AddPartitionsToTxnTopic(name=names.topic, partitions=(0,))
    one = AddPartitionsToTxnTransaction(
        transactional_id=names.transactional_id, producer_id=0, producer_epoch=0, topics=(topic,)
    )
    return [
        AddPartitionsToTxnRequest(
            transactions=(one, one.replace(verify_only=True)),
            v3_and_below_transactional_id=names.transactional_id,
            v3_and_below_producer_id=0,
            v3_and_below_producer_epoch=0,
            v3_and_below_topics=(topic,),
        )
    ]


def configs(names: Names) -> list[tuple[int, str]]:
    return [
        (ResourceType.TOPIC, names.topic),
        (ResourceType.GROUP, names.group),
        (ResourceType.BROKER, "1"),
        (ResourceType.BROKER_LOGGER, "1"),
    ]


def consumer_heartbeats(names: Names, version: int) -> list[Struct]:
    asked: list[Struct] = [
        ConsumerGroupHeartbeatRequest(
            group_id=names.group,
            member_id="m",
            member_epoch=0,
            rebalance_timeout_ms=1_000,
            subscribed_topic_names=(names.topic,),
            topic_partitions=(),
        )
    ]
    if version >= 1:
        asked.append(
            ConsumerGroupHeartbeatRequest(
                group_id="own-of-bob",
                member_id="m",
                member_epoch=0,
                rebalance_timeout_ms=1_000,
                subscribed_topic_regex=".*",
                topic_partitions=(),
            )
        )
    return asked


REQUESTS: dict[ApiKey, Callable[[Names, int], list[Struct]]] = {
    ApiKey.PRODUCE: produce,
    ApiKey.FETCH: fetch,
    ApiKey.LIST_OFFSETS: lambda names, _: [
        ListOffsetsRequest(
            replica_id=replica,
            topics=(
                ListOffsetsTopic(name=names.topic, partitions=(ListOffsetsPartition(partition_index=0, timestamp=-1),)),
            ),
        )
        for replica in (-1, 0)
    ],
    ApiKey.METADATA: metadata,
    ApiKey.LEADER_AND_ISR: lambda _names, _: [
        LeaderAndIsrRequest(controller_id=0, controller_epoch=9, live_leaders=())
    ],
    ApiKey.STOP_REPLICA: lambda _names, _: [StopReplicaRequest(controller_id=0, controller_epoch=9)],
    ApiKey.UPDATE_METADATA: lambda _names, _: [
        UpdateMetadataRequest(controller_id=0, controller_epoch=9, live_brokers=())
    ],
    ApiKey.CONTROLLED_SHUTDOWN: lambda _names, _: [ControlledShutdownRequest(broker_id=0, broker_epoch=1)],
    ApiKey.ALTER_PARTITION: lambda _names, _: [AlterPartitionRequest(broker_id=0, broker_epoch=1, topics=())],
    ApiKey.ALLOCATE_PRODUCER_IDS: lambda _names, _: [AllocateProducerIdsRequest(broker_id=0, broker_epoch=1)],
    ApiKey.OFFSET_COMMIT: lambda names, _: [
        OffsetCommitRequest(
            group_id=names.group,
            member_id="",
            topics=(
                OffsetCommitRequestTopic(
                    name=names.topic,
                    topic_id=names.topic_id,
                    partitions=(
                        OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata=""),
                    ),
                ),
            ),
        )
    ],
    ApiKey.OFFSET_FETCH: offset_fetch,
    ApiKey.FIND_COORDINATOR: find_coordinator,
    ApiKey.JOIN_GROUP: lambda names, _: [
        JoinGroupRequest(
            group_id=names.group,
            session_timeout_ms=10_000,
            member_id="",
            protocol_type="consumer",
            protocols=(JoinGroupRequestProtocol(name="range", metadata=b""),),
        )
    ],
    ApiKey.HEARTBEAT: lambda names, _: [HeartbeatRequest(group_id=names.group, generation_id=1, member_id="m")],
    ApiKey.LEAVE_GROUP: lambda names, _: [
        LeaveGroupRequest(group_id=names.group, member_id="m", members=(MemberIdentity(member_id="m"),))
    ],
    ApiKey.SYNC_GROUP: lambda names, _: [
        SyncGroupRequest(
            group_id=names.group,
            generation_id=1,
            member_id="m",
            protocol_type="consumer",
            protocol_name="range",
            assignments=(),
        )
    ],
    ApiKey.DESCRIBE_GROUPS: lambda names, _: [DescribeGroupsRequest(groups=(names.group,))],
    ApiKey.LIST_GROUPS: lambda _names, _: [ListGroupsRequest()],
    ApiKey.SASL_HANDSHAKE: lambda _names, _: [],  # `test_gate` has the sequences of SASL
    ApiKey.API_VERSIONS: lambda _names, _: [ApiVersionsRequest(client_software_name="a", client_software_version="1")],
    ApiKey.CREATE_TOPICS: lambda names, _: [
        CreateTopicsRequest(
            topics=(
                CreatableTopic(name=names.topic, num_partitions=1, replication_factor=1, assignments=(), configs=()),
            ),
            validate_only=validate_only,
        )
        for validate_only in (True, False)
    ],
    ApiKey.DELETE_TOPICS: delete_topics,
    ApiKey.DELETE_RECORDS: lambda names, _: [
        DeleteRecordsRequest(
            topics=(
                DeleteRecordsTopic(name=names.topic, partitions=(DeleteRecordsPartition(partition_index=0, offset=1),)),
            ),
            timeout_ms=1_000,
        )
    ],
    ApiKey.INIT_PRODUCER_ID: lambda names, _: [
        InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=1_000)
        for name in (names.transactional_id, None)
    ],
    ApiKey.OFFSET_FOR_LEADER_EPOCH: lambda names, _: [
        OffsetForLeaderEpochRequest(
            replica_id=-1,
            topics=(
                OffsetForLeaderTopic(
                    topic=names.topic, partitions=(OffsetForLeaderPartition(partition=0, leader_epoch=0),)
                ),
            ),
        )
    ],
    ApiKey.ADD_PARTITIONS_TO_TXN: add_partitions,
    ApiKey.ADD_OFFSETS_TO_TXN: lambda names, _: [
        AddOffsetsToTxnRequest(
            transactional_id=names.transactional_id, producer_id=0, producer_epoch=0, group_id=names.group
        )
    ],
    ApiKey.END_TXN: lambda names, _: [
        EndTxnRequest(transactional_id=names.transactional_id, producer_id=0, producer_epoch=0, committed=True)
    ],
    ApiKey.WRITE_TXN_MARKERS: lambda names, _: [
        WriteTxnMarkersRequest(
            markers=(
                WritableTxnMarker(
                    producer_id=0,
                    producer_epoch=0,
                    transaction_result=True,
                    topics=(WritableTxnMarkerTopic(name=names.topic, partition_indexes=(0,)),),
                    coordinator_epoch=0,
                ),
            )
        )
    ],
    ApiKey.TXN_OFFSET_COMMIT: lambda names, _: [
        TxnOffsetCommitRequest(
            transactional_id=names.transactional_id,
            group_id=names.group,
            producer_id=0,
            producer_epoch=0,
            topics=(
                TxnOffsetCommitRequestTopic(
                    name=names.topic,
                    partitions=(
                        TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata=""),
                    ),
                ),
            ),
        )
    ],
    ApiKey.DESCRIBE_ACLS: lambda _names, _: [
        DescribeAclsRequest(
            resource_type_filter=1,
            resource_name_filter=None,
            pattern_type_filter=1,
            principal_filter=None,
            host_filter=None,
            operation=1,
            permission_type=1,
        )
    ],
    ApiKey.CREATE_ACLS: lambda names, _: [
        CreateAclsRequest(
            creations=(
                AclCreation(
                    resource_type=2,
                    resource_name=names.topic,
                    principal="User:bob",
                    host="*",
                    operation=2,
                    permission_type=3,
                ),
            )
        )
    ],
    ApiKey.DELETE_ACLS: lambda names, _: [
        DeleteAclsRequest(
            filters=(
                DeleteAclsFilter(
                    resource_type_filter=2,
                    resource_name_filter=names.topic,
                    principal_filter=None,
                    host_filter=None,
                    operation=1,
                    permission_type=1,
                ),
            )
        )
    ],
    ApiKey.DESCRIBE_CONFIGS: lambda names, _: [
        DescribeConfigsRequest(
            resources=(DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None),)
        )
        for kind, name in configs(names)
    ],
    ApiKey.ALTER_CONFIGS: lambda names, _: [
        k33.AlterConfigsRequest(
            resources=(k33.AlterConfigsResource(resource_type=kind, resource_name=name, configs=()),),
            validate_only=False,
        )
        for kind, name in configs(names)
    ],
    ApiKey.ALTER_REPLICA_LOG_DIRS: lambda names, _: [
        AlterReplicaLogDirsRequest(
            dirs=(
                AlterReplicaLogDir(
                    path="/nowhere", topics=(AlterReplicaLogDirTopic(name=names.topic, partitions=(0,)),)
                ),
            )
        )
    ],
    ApiKey.DESCRIBE_LOG_DIRS: lambda names, _: [
        DescribeLogDirsRequest(topics=topics)
        for topics in (None, (DescribableLogDirTopic(topic=names.topic, partitions=(0,)),))
    ],
    ApiKey.SASL_AUTHENTICATE: lambda _names, _: [],
    ApiKey.CREATE_PARTITIONS: lambda names, _: [
        CreatePartitionsRequest(
            topics=(CreatePartitionsTopic(name=names.topic, count=3, assignments=None),),
            timeout_ms=1_000,
            validate_only=False,
        )
    ],
    ApiKey.DELETE_GROUPS: lambda names, _: [DeleteGroupsRequest(groups_names=(names.group,))],
    ApiKey.ELECT_LEADERS: lambda names, _: [
        k43.ElectLeadersRequest(topic_partitions=topics)
        for topics in (None, (k43.TopicPartitions(topic=names.topic, partitions=(0,)),))
    ],
    ApiKey.INCREMENTAL_ALTER_CONFIGS: lambda names, _: [
        k44.IncrementalAlterConfigsRequest(
            resources=(k44.AlterConfigsResource(resource_type=kind, resource_name=name, configs=()),),
            validate_only=False,
        )
        for kind, name in configs(names)
    ],
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: lambda names, _: [
        AlterPartitionReassignmentsRequest(
            topics=(
                ReassignableTopic(
                    name=names.topic, partitions=(ReassignablePartition(partition_index=0, replicas=(0,)),)
                ),
            )
        )
    ],
    ApiKey.LIST_PARTITION_REASSIGNMENTS: lambda names, _: [
        ListPartitionReassignmentsRequest(topics=topics)
        for topics in (None, (ListPartitionReassignmentsTopics(name=names.topic, partition_indexes=(0,)),))
    ],
    ApiKey.OFFSET_DELETE: lambda names, _: [
        OffsetDeleteRequest(
            group_id=names.group,
            topics=(
                OffsetDeleteRequestTopic(
                    name=names.topic, partitions=(OffsetDeleteRequestPartition(partition_index=0),)
                ),
            ),
        )
    ],
    ApiKey.DESCRIBE_CLIENT_QUOTAS: lambda _names, _: [DescribeClientQuotasRequest(components=(), strict=False)],
    ApiKey.ALTER_CLIENT_QUOTAS: lambda _names, _: [
        k49.AlterClientQuotasRequest(
            entries=(
                k49.EntryData(
                    entity=(k49.EntityData(entity_type="user", entity_name="alice"),),
                    ops=(k49.OpData(key="producer_byte_rate", value=1.0, remove=False),),
                ),
            ),
            validate_only=False,
        )
    ],
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: lambda _names, _: [DescribeUserScramCredentialsRequest(users=None)],
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: lambda _names, _: [
        AlterUserScramCredentialsRequest(deletions=(ScramCredentialDeletion(name="alice", mechanism=1),), upsertions=())
    ],
    ApiKey.DESCRIBE_QUORUM: lambda _names, _: [
        k55.DescribeQuorumRequest(
            topics=(k55.TopicData(topic_name="__cluster_metadata", partitions=(k55.PartitionData(partition_index=0),)),)
        )
    ],
    ApiKey.UPDATE_FEATURES: lambda _names, _: [
        UpdateFeaturesRequest(feature_updates=(FeatureUpdateKey(feature="group.version", max_version_level=0),))
    ],
    ApiKey.DESCRIBE_CLUSTER: lambda _names, _: [
        DescribeClusterRequest(include_cluster_authorized_operations=asked) for asked in (True, False)
    ],
    ApiKey.DESCRIBE_PRODUCERS: lambda names, _: [
        k61.DescribeProducersRequest(topics=(k61.TopicRequest(name=names.topic, partition_indexes=(0,)),))
    ],
    ApiKey.DESCRIBE_TRANSACTIONS: lambda names, _: [
        DescribeTransactionsRequest(transactional_ids=(names.transactional_id,))
    ],
    ApiKey.LIST_TRANSACTIONS: lambda _names, _: [ListTransactionsRequest(state_filters=(), producer_id_filters=())],
    ApiKey.CONSUMER_GROUP_HEARTBEAT: consumer_heartbeats,
    ApiKey.CONSUMER_GROUP_DESCRIBE: lambda names, _: [
        ConsumerGroupDescribeRequest(group_ids=(names.group,), include_authorized_operations=True)
    ],
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: lambda _names, _: [
        GetTelemetrySubscriptionsRequest(client_instance_id=b"0123456789abcdef")
    ],
    ApiKey.PUSH_TELEMETRY: lambda _names, _: [
        PushTelemetryRequest(
            client_instance_id=b"0123456789abcdef",
            subscription_id=0,
            terminating=False,
            compression_type=0,
            metrics=b"",
        )
    ],
    ApiKey.CREATE_DELEGATION_TOKEN: lambda _names, version: [
        CreateDelegationTokenRequest(
            owner_principal_type="User" if version >= 3 else None,
            owner_principal_name="alice" if version >= 3 else None,
            renewers=(),
            max_lifetime_ms=-1,
        )
    ],
    ApiKey.RENEW_DELEGATION_TOKEN: lambda _names, _: [RenewDelegationTokenRequest(hmac=b"x", renew_period_ms=1)],
    ApiKey.EXPIRE_DELEGATION_TOKEN: lambda _names, _: [
        ExpireDelegationTokenRequest(hmac=b"x", expiry_time_period_ms=1)
    ],
    ApiKey.DESCRIBE_DELEGATION_TOKEN: lambda _names, _: [
        DescribeDelegationTokenRequest(owners=owners)
        for owners in (None, (DescribeDelegationTokenOwner(principal_type="User", principal_name="alice"),))
    ],
    ApiKey.LIST_CONFIG_RESOURCES: lambda _names, _: [ListConfigResourcesRequest()],
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: lambda names, _: [
        k75.DescribeTopicPartitionsRequest(topics=topics) for topics in ((), (k75.TopicRequest(name=names.topic),))
    ],
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: lambda names, _: [
        k83.InitializeShareGroupStateRequest(
            group_id=names.group,
            topics=(
                k83.InitializeStateData(
                    topic_id=names.topic_id,
                    partitions=(k83.PartitionData(partition=0, state_epoch=1, start_offset=-1),),
                ),
            ),
        )
    ],
    ApiKey.READ_SHARE_GROUP_STATE: lambda names, _: [
        k84.ReadShareGroupStateRequest(
            group_id=names.group,
            topics=(
                k84.ReadStateData(
                    topic_id=names.topic_id, partitions=(k84.PartitionData(partition=0, leader_epoch=0),)
                ),
            ),
        )
    ],
    ApiKey.WRITE_SHARE_GROUP_STATE: lambda names, _: [
        k85.WriteShareGroupStateRequest(
            group_id=names.group,
            topics=(
                k85.WriteStateData(
                    topic_id=names.topic_id,
                    partitions=(
                        k85.PartitionData(partition=0, state_epoch=0, leader_epoch=0, start_offset=0, state_batches=()),
                    ),
                ),
            ),
        )
    ],
    ApiKey.DELETE_SHARE_GROUP_STATE: lambda names, _: [
        k86.DeleteShareGroupStateRequest(
            group_id=names.group,
            topics=(k86.DeleteStateData(topic_id=names.topic_id, partitions=(k86.PartitionData(partition=0),)),),
        )
    ],
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: lambda names, _: [
        k87.ReadShareGroupStateSummaryRequest(
            group_id=names.group,
            topics=(
                k87.ReadStateSummaryData(
                    topic_id=names.topic_id, partitions=(k87.PartitionData(partition=0, leader_epoch=0),)
                ),
            ),
        )
    ],
    ApiKey.SHARE_FETCH: lambda names, _: [
        k78.ShareFetchRequest(
            group_id=names.group,
            member_id="m",
            share_session_epoch=0,
            max_wait_ms=0,
            min_bytes=1,
            max_records=1,
            batch_size=1,
            topics=(
                k78.FetchTopic(
                    topic_id=names.topic_id,
                    partitions=(k78.FetchPartition(partition_index=0, acknowledgement_batches=()),),
                ),
            ),
            forgotten_topics_data=(),
        )
    ],
    ApiKey.SHARE_ACKNOWLEDGE: lambda names, _: [
        k79.ShareAcknowledgeRequest(
            group_id=names.group,
            member_id="m",
            share_session_epoch=1,
            topics=(
                k79.AcknowledgeTopic(
                    topic_id=names.topic_id,
                    partitions=(k79.AcknowledgePartition(partition_index=0, acknowledgement_batches=()),),
                ),
            ),
        )
    ],
    ApiKey.SHARE_GROUP_HEARTBEAT: lambda names, _: [
        ShareGroupHeartbeatRequest(group_id=group, member_id="m", member_epoch=0, subscribed_topic_names=(names.topic,))
        for group in (names.group, "own-of-bob")
    ],
    ApiKey.SHARE_GROUP_DESCRIBE: lambda names, _: [
        ShareGroupDescribeRequest(group_ids=(names.group,), include_authorized_operations=True)
    ],
    ApiKey.STREAMS_GROUP_HEARTBEAT: lambda names, _: [
        k88.StreamsGroupHeartbeatRequest(
            group_id=group,
            member_id="m",
            member_epoch=0,
            endpoint_information_epoch=0,
            rebalance_timeout_ms=1_000,
            process_id="p",
            active_tasks=(),
            standby_tasks=(),
            warmup_tasks=(),
            topology=k88.Topology(epoch=0, subtopologies=(reading(names.topic),)),
        )
        for group in (names.group, "own-of-bob")
    ],
    ApiKey.STREAMS_GROUP_DESCRIBE: lambda names, _: [
        StreamsGroupDescribeRequest(group_ids=(names.group,), include_authorized_operations=True)
    ],
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: lambda names, _: [
        k90.DescribeShareGroupOffsetsRequest(
            groups=(k90.DescribeShareGroupOffsetsRequestGroup(group_id=names.group, topics=topics),)
        )
        for topics in (
            None,
            (k90.DescribeShareGroupOffsetsRequestTopic(topic_name=names.topic, partitions=(0,)),),
        )
    ],
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: lambda names, _: [
        k91.AlterShareGroupOffsetsRequest(
            group_id=names.group,
            topics=(
                k91.AlterShareGroupOffsetsRequestTopic(
                    topic_name=names.topic,
                    partitions=(k91.AlterShareGroupOffsetsRequestPartition(partition_index=0, start_offset=0),),
                ),
            ),
        )
    ],
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: lambda names, _: [
        k92.DeleteShareGroupOffsetsRequest(
            group_id=names.group, topics=(k92.DeleteShareGroupOffsetsRequestTopic(topic_name=names.topic),)
        )
    ],
}
