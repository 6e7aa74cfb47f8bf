"""Rules of the APIs about the whole cluster: without the operation on the cluster, the whole request is refused."""

from __future__ import annotations

from typing import Any, Final, cast

from ixion.acl.numbers import ALTER, ALTER_CONFIGS, CLUSTER_ACTION, DESCRIBE, DESCRIBE_CONFIGS
from ixion.apis.guards.guard import Guard
from ixion.apis.guards.shapes import in_cluster, refused_topics
from ixion.model.errors import ErrorCode
from ixion.protocol.messages.k04_leader_and_isr import LeaderAndIsrResponse
from ixion.protocol.messages.k05_stop_replica import StopReplicaResponse
from ixion.protocol.messages.k06_update_metadata import UpdateMetadataResponse
from ixion.protocol.messages.k07_controlled_shutdown import ControlledShutdownResponse
from ixion.protocol.messages.k29_describe_acls import DescribeAclsResponse
from ixion.protocol.messages.k30_create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse
from ixion.protocol.messages.k31_delete_acls import DeleteAclsFilterResult, DeleteAclsRequest, DeleteAclsResponse
from ixion.protocol.messages.k34_alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from ixion.protocol.messages.k35_describe_log_dirs import DescribeLogDirsResponse
from ixion.protocol.messages.k43_elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from ixion.protocol.messages.k45_alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from ixion.protocol.messages.k46_list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from ixion.protocol.messages.k48_describe_client_quotas import DescribeClientQuotasResponse
from ixion.protocol.messages.k49_alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    ResponseEntryData,
)
from ixion.protocol.messages.k50_describe_user_scram_credentials import DescribeUserScramCredentialsResponse
from ixion.protocol.messages.k51_alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from ixion.protocol.messages.k55_describe_quorum import DescribeQuorumResponse
from ixion.protocol.messages.k56_alter_partition import AlterPartitionResponse
from ixion.protocol.messages.k57_update_features import UpdateFeaturesResponse
from ixion.protocol.messages.k67_allocate_producer_ids import AllocateProducerIdsResponse
from ixion.protocol.messages.k74_list_config_resources import ListConfigResourcesResponse
from ixion.protocol.notation import Struct
from ixion.timer.turns import Steps, map_steps

CODE: Final = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
TEXT: Final = CODE.explanation


def refused_with(operation: int, answer: Struct) -> Guard:
    """A guard whose refusal is always the same response."""

    def refuse(_request: Any, _version: int) -> Steps[Struct]:
        yield
        return answer

    return in_cluster(operation, refuse)


def _refused_creations(request: CreateAclsRequest, _version: int) -> Steps[Struct]:
    yield
    line = AclCreationResult(error_code=CODE, error_message=TEXT)
    return CreateAclsResponse(results=(line,) * len(request.creations))


def _refused_deletions(request: DeleteAclsRequest, _version: int) -> Steps[Struct]:
    yield
    line = DeleteAclsFilterResult(error_code=CODE, error_message=TEXT, matching_acls=())
    return DeleteAclsResponse(filter_results=(line,) * len(request.filters))


def _refused_moves(request: AlterReplicaLogDirsRequest, _version: int) -> Steps[Struct]:
    numbers: dict[str, dict[int, None]] = {}
    for place in request.dirs:
        for topic in place.topics:
            numbers.setdefault(topic.name, {}).update(dict.fromkeys(topic.partitions))
            yield
    results: list[AlterReplicaLogDirTopicResult] = []
    for name, partitions in numbers.items():
        lines = yield from map_steps(
            lambda number: AlterReplicaLogDirPartitionResult(partition_index=number, error_code=CODE), partitions
        )
        results.append(AlterReplicaLogDirTopicResult(topic_name=name, partitions=tuple(lines)))
    return AlterReplicaLogDirsResponse(results=tuple(results))


def _refused_elections(request: ElectLeadersRequest, version: int) -> Steps[Struct]:
    topics = yield from refused_topics(
        request.topic_partitions or (),
        lambda number: PartitionResult(partition_id=number, error_code=CODE, error_message=TEXT),
        lambda topic, lines: ReplicaElectionResult(topic=topic.topic, partition_result=lines),
    )
    return ElectLeadersResponse(
        error_code=CODE if version >= 1 else ErrorCode.NONE,
        replica_election_results=cast(tuple[ReplicaElectionResult, ...], tuple(topics)),
    )


def _refused_reassignments(request: AlterPartitionReassignmentsRequest, _version: int) -> Steps[Struct]:
    topics = yield from refused_topics(
        request.topics,
        lambda each: ReassignablePartitionResponse(
            partition_index=each.partition_index, error_code=CODE, error_message=TEXT
        ),
        lambda topic, lines: ReassignableTopicResponse(name=topic.name, partitions=lines),
    )
    return AlterPartitionReassignmentsResponse(
        error_code=CODE,
        error_message=TEXT,
        responses=cast(tuple[ReassignableTopicResponse, ...], tuple(topics)),
    )


def _refused_listing(request: ListPartitionReassignmentsRequest, _version: int) -> Steps[Struct]:
    """As in Kafka, the response lists the requested partitions without any details."""
    topics = yield from refused_topics(
        request.topics or (),
        lambda number: OngoingPartitionReassignment(
            partition_index=number, replicas=(), adding_replicas=(), removing_replicas=()
        ),
        lambda topic, lines: OngoingTopicReassignment(name=topic.name, partitions=lines),
        "partition_indexes",
    )
    return ListPartitionReassignmentsResponse(
        error_code=CODE, error_message=TEXT, topics=cast(tuple[OngoingTopicReassignment, ...], tuple(topics))
    )


def _refused_quotas(request: AlterClientQuotasRequest, _version: int) -> Steps[Struct]:
    lines = yield from map_steps(
        lambda entry: ResponseEntryData(error_code=CODE, error_message=TEXT, entity=entry.entity), request.entries
    )
    return AlterClientQuotasResponse(entries=tuple(lines))


def _refused_credentials(request: AlterUserScramCredentialsRequest, _version: int) -> Steps[Struct]:
    users = dict.fromkeys([*(each.name for each in request.deletions), *(each.name for each in request.upsertions)])
    lines = yield from map_steps(
        lambda user: AlterUserScramCredentialsResult(user=user, error_code=CODE, error_message=TEXT), users
    )
    return AlterUserScramCredentialsResponse(results=tuple(lines))


# Requests that only brokers send.
leader_and_isr = refused_with(CLUSTER_ACTION, LeaderAndIsrResponse(error_code=CODE, partition_errors=(), topics=()))
stop_replica = refused_with(CLUSTER_ACTION, StopReplicaResponse(error_code=CODE, partition_errors=()))
update_metadata = refused_with(CLUSTER_ACTION, UpdateMetadataResponse(error_code=CODE))
controlled_shutdown = refused_with(CLUSTER_ACTION, ControlledShutdownResponse(error_code=CODE, remaining_partitions=()))
alter_partition = refused_with(CLUSTER_ACTION, AlterPartitionResponse(error_code=CODE, topics=()))
allocate_producer_ids = refused_with(
    CLUSTER_ACTION,
    AllocateProducerIdsResponse(error_code=CODE, producer_id_start=0, producer_id_len=0),
)

describe_acls = refused_with(DESCRIBE, DescribeAclsResponse(error_code=CODE, error_message=TEXT, resources=()))
create_acls = in_cluster(ALTER, _refused_creations)
delete_acls = in_cluster(ALTER, _refused_deletions)
alter_replica_log_dirs = in_cluster(ALTER, _refused_moves)
describe_log_dirs = refused_with(DESCRIBE, DescribeLogDirsResponse(error_code=CODE, results=()))
elect_leaders = in_cluster(ALTER, _refused_elections)
alter_partition_reassignments = in_cluster(ALTER, _refused_reassignments)
list_partition_reassignments = in_cluster(DESCRIBE, _refused_listing)
describe_client_quotas = refused_with(
    DESCRIBE_CONFIGS,
    DescribeClientQuotasResponse(error_code=CODE, error_message=TEXT, entries=None),
)
alter_client_quotas = in_cluster(ALTER_CONFIGS, _refused_quotas)
describe_user_scram_credentials = refused_with(
    DESCRIBE,
    DescribeUserScramCredentialsResponse(error_code=CODE, error_message=TEXT, results=()),
)
alter_user_scram_credentials = in_cluster(ALTER, _refused_credentials)
describe_quorum = refused_with(
    DESCRIBE, DescribeQuorumResponse(error_code=CODE, error_message=TEXT, topics=(), nodes=())
)
update_features = refused_with(ALTER, UpdateFeaturesResponse(error_code=CODE, error_message=TEXT, results=()))
list_config_resources = refused_with(
    DESCRIBE_CONFIGS, ListConfigResourcesResponse(error_code=CODE, config_resources=())
)
