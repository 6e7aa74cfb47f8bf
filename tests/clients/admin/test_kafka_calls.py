"""Every method of Kafka 4.3's `Admin`: which of our calls does it, or why none does."""

from __future__ import annotations

from ixion.broker.apis.served import SERVED
from ixion.clients.admin.admin import Calls
from ixion.language.protocol.registry import ApiKey

OURS = {
    "abortTransaction": "abort_transaction",
    "alterClientQuotas": "alter_client_quotas",
    "alterConsumerGroupOffsets": "alter_group_offsets",
    "alterPartitionReassignments": "alter_partition_reassignments",
    "alterReplicaLogDirs": "alter_replica_log_dirs",
    "alterStreamsGroupOffsets": "alter_group_offsets",
    "alterUserScramCredentials": "alter_user_scram_credentials",
    "createAcls": "create_acls",
    "createDelegationToken": "create_delegation_token",
    "createPartitions": "create_partitions",
    "createTopics": "create_topics",
    "deleteAcls": "delete_acls",
    "deleteConsumerGroupOffsets": "delete_group_offsets",
    "deleteConsumerGroups": "delete_groups",
    "deleteRecords": "delete_records",
    "deleteStreamsGroupOffsets": "delete_group_offsets",
    "deleteStreamsGroups": "delete_groups",
    "deleteTopics": "delete_topics",
    "describeAcls": "describe_acls",
    "describeClassicGroups": "describe_classic_groups",
    "describeClientQuotas": "describe_client_quotas",
    "describeCluster": "describe_cluster",
    "describeConfigs": "describe_configs",
    "describeConsumerGroups": "describe_consumer_groups",
    "describeDelegationToken": "describe_delegation_tokens",
    "describeFeatures": "describe_features",
    "describeLogDirs": "describe_log_dirs",
    "describeMetadataQuorum": "describe_metadata_quorum",
    "describeProducers": "describe_producers",
    "describeReplicaLogDirs": "describe_replica_log_dirs",
    "describeStreamsGroups": "describe_groups",
    "describeTopics": "describe_topics",
    "describeTransactions": "describe_transactions",
    "describeUserScramCredentials": "describe_user_scram_credentials",
    "electLeaders": "elect_leaders",
    "expireDelegationToken": "expire_delegation_token",
    "fenceProducers": "fence_producers",
    "forceTerminateTransaction": "fence_producers",  # the same request, but for transactions of two phases (KIP-939)
    "incrementalAlterConfigs": "alter_configs",
    "listClientMetricsResources": "list_config_resources",
    "listConfigResources": "list_config_resources",
    "listConsumerGroupOffsets": "list_group_offsets",
    "listConsumerGroups": "list_groups",
    "listGroups": "list_groups",
    "listOffsets": "list_offsets",
    "listPartitionReassignments": "list_partition_reassignments",
    "listStreamsGroupOffsets": "list_group_offsets",
    "listTopics": "list_topics",
    "listTransactions": "list_transactions",
    "removeMembersFromConsumerGroup": "remove_members",
    "renewDelegationToken": "renew_delegation_token",
    "updateFeatures": "update_features",
}
# The API that ixion does not serve. The numbers without a name are APIs that we have no message of.
NOT_SERVED: dict[str, ApiKey | int] = {
    "addRaftVoter": 80,
    "removeRaftVoter": 81,
    "unregisterBroker": 64,
}
# The broker answers them; our administration has no call for them yet.
NOT_YET = {
    "alterShareGroupOffsets",
    "deleteShareGroupOffsets",
    "deleteShareGroups",
    "describeShareGroups",
    "listShareGroupOffsets",
}
# Of the client itself, which pushes no metrics.
OF_THE_CLIENT = {"clientInstanceId", "metrics", "registerMetricForSubscription", "unregisterMetricFromSubscription"}


def test_a_call_that_ixion_answers_is_one_of_ours() -> None:
    assert len(OURS) + len(NOT_SERVED) + len(NOT_YET) + len(OF_THE_CLIENT) == 64
    for kafkas, ours in OURS.items():
        assert hasattr(Calls, ours), kafkas
    served = {int(key) for key in SERVED}
    for kafkas, key in NOT_SERVED.items():
        assert int(key) not in served, f"ixion answers {kafkas} by now"
