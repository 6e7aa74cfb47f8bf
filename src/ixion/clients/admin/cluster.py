"""The cluster as a whole: its brokers and controller, its features, the quorum of its controllers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from ixion.clients.address import Address
from ixion.clients.admin.plan import ANY, CONTROLLER, Call, Plan
from ixion.clients.admin.results import Results
from ixion.clients.admin.routes import fault_of, metadata, one
from ixion.clients.metadata import Node
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.registry import ApiKey

UPGRADE: Final = 1
SAFE_DOWNGRADE: Final = 2
UNSAFE_DOWNGRADE: Final = 3


class ClusterDescription(NamedTuple):
    cluster_id: str | None
    controller: int  # node id, -1 if none is known
    nodes: tuple[Node, ...]


class Features(NamedTuple):
    """Ranges of levels by name: those that the broker supports, and those that are finalized in the cluster."""

    supported: dict[str, tuple[int, int]]
    finalized: dict[str, tuple[int, int]]
    epoch: int | None


class QuorumReplica(NamedTuple):
    node_id: int
    log_end_offset: int
    last_fetch_ms: int | None
    last_caught_up_ms: int | None


class Quorum(NamedTuple):
    leader: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[QuorumReplica, ...]
    observers: tuple[QuorumReplica, ...]


def describe_cluster(call: Call) -> Plan[ClusterDescription]:
    """Its id, its controller and its brokers."""
    from ixion.language.protocol.messages.k60_describe_cluster import DescribeClusterRequest, DescribeClusterResponse

    request = DescribeClusterRequest(include_cluster_authorized_operations=False)
    try:
        answer = yield from one(
            call,
            ANY,
            ApiKey.DESCRIBE_CLUSTER,
            lambda _: request,
            DescribeClusterResponse,
            check=lambda found: fault_of(found.error_code, found.error_message, "the cluster"),
        )
    except KafkaError as fault:
        if fault.code != ErrorCode.UNSUPPORTED_VERSION:
            raise
        found = yield from metadata(call, ())
        return ClusterDescription(found.cluster_id, found.controller, tuple(sorted(found.nodes.values())))
    brokers = sorted(Node(each.broker_id, Address(each.host, each.port), each.rack) for each in answer.brokers)
    return ClusterDescription(answer.cluster_id, answer.controller_id, tuple(brokers))


def describe_features(call: Call) -> Plan[Features]:
    from ixion.language.protocol.messages.k18_api_versions import ApiVersionsRequest, ApiVersionsResponse

    request = ApiVersionsRequest(client_software_name="ixion", client_software_version="0")
    answer = yield from one(
        call,
        ANY,
        ApiKey.API_VERSIONS,
        lambda _: request,
        ApiVersionsResponse,
        check=lambda found: fault_of(found.error_code, None, "the features"),
    )
    return Features(
        {each.name: (each.min_version, each.max_version) for each in answer.supported_features},
        {each.name: (each.min_version_level, each.max_version_level) for each in answer.finalized_features},
        answer.finalized_features_epoch if answer.finalized_features_epoch >= 0 else None,
    )


def update_features(
    call: Call, levels: Mapping[str, int], *, kind: int = UPGRADE, validate_only: bool = False
) -> Plan[Results[str, None]]:
    """Finalize features at these levels; 0 removes one."""
    from ixion.language.protocol.messages.k57_update_features import (
        FeatureUpdateKey,
        UpdateFeaturesRequest,
        UpdateFeaturesResponse,
    )

    request = UpdateFeaturesRequest(
        timeout_ms=call.left_ms,
        feature_updates=tuple(
            FeatureUpdateKey(feature=name, max_version_level=level, allow_downgrade=kind != UPGRADE, upgrade_type=kind)
            for name, level in levels.items()
        ),
        validate_only=validate_only,
    )
    answer = yield from one(
        call,
        CONTROLLER,
        ApiKey.UPDATE_FEATURES,
        lambda _: request,
        UpdateFeaturesResponse,
        oldest=1,
        check=lambda found: fault_of(found.error_code, found.error_message, "the features"),
    )
    results: Results[str, None] = Results()
    said = {each.feature: fault_of(each.error_code, each.error_message, each.feature) for each in answer.results}
    for name in levels:
        fault = said.get(name)
        if fault is None:
            results.done[name] = None
        else:
            results.faults[name] = fault
    return results


def describe_metadata_quorum(call: Call) -> Plan[Quorum]:
    """The quorum of KRaft controllers; a broker without them refuses."""
    from ixion.language.protocol.messages.k55_describe_quorum import (
        DescribeQuorumRequest,
        DescribeQuorumResponse,
        PartitionData,
        ReplicaState,
        TopicData,
    )

    topic = TopicData(topic_name="__cluster_metadata", partitions=(PartitionData(partition_index=0),))
    request = DescribeQuorumRequest(topics=(topic,))

    def check(found: DescribeQuorumResponse) -> KafkaError | None:
        return fault_of(found.error_code, found.error_message, "the quorum") or next(
            (
                fault
                for each in found.topics
                for part in each.partitions
                if (fault := fault_of(part.error_code, part.error_message, "the quorum")) is not None
            ),
            None,
        )

    def replica(found: ReplicaState) -> QuorumReplica:
        fetched, caught_up = found.last_fetch_timestamp, found.last_caught_up_timestamp
        return QuorumReplica(
            found.replica_id,
            found.log_end_offset,
            fetched if fetched >= 0 else None,
            caught_up if caught_up >= 0 else None,
        )

    answer = yield from one(call, ANY, ApiKey.DESCRIBE_QUORUM, lambda _: request, DescribeQuorumResponse, check=check)
    part = answer.topics[0].partitions[0]
    return Quorum(
        part.leader_id,
        part.leader_epoch,
        part.high_watermark,
        tuple(map(replica, part.current_voters)),
        tuple(map(replica, part.observers)),
    )
