"""The rights that each API requires, in one table. A served key without a rule fails a test, and its requests fail too.

| rule         | means                                                                                     |
|--------------|-------------------------------------------------------------------------------------------|
| a guard      | checked before the handler, as in Kafka (`guards.topics` and the files beside it)         |
| `IN_HANDLER` | the handler checks `Call.rights`                                                          |
| `EVERYBODY`  | no right is needed                                                                        |
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ixion.acl.authorizer import Authorizer
from ixion.apis.call import Handle
from ixion.apis.guards import cluster, configs, groups, topics, transactions
from ixion.apis.guards.guard import Guard, guarded
from ixion.apis.k11_join_group import NO_PROTOCOL_FROM
from ixion.apis.services import Services
from ixion.coordinators.group.classic.answers import join_error, sync_error
from ixion.model.errors import ErrorCode
from ixion.protocol.messages.k12_heartbeat import HeartbeatResponse
from ixion.protocol.messages.k13_leave_group import LeaveGroupResponse
from ixion.protocol.notation import Struct
from ixion.protocol.registry import ApiKey

IN_HANDLER: Final = "in the handler"
EVERYBODY: Final = "everybody"


def _refused_join(code: ErrorCode, version: int) -> Struct:
    answer = join_error(code)
    return answer.replace(protocol_name="") if version < NO_PROTOCOL_FROM else answer


Rule = Guard | str
Make = Callable[[Services], Guard]

RULES: Final[dict[ApiKey, Rule]] = {
    ApiKey.PRODUCE: IN_HANDLER,  # WRITE topic; transactional records: WRITE transactional id
    ApiKey.FETCH: IN_HANDLER,  # READ topic; followers: CLUSTER_ACTION
    ApiKey.LIST_OFFSETS: topics.list_offsets,
    ApiKey.LEADER_AND_ISR: cluster.leader_and_isr,
    ApiKey.STOP_REPLICA: cluster.stop_replica,
    ApiKey.UPDATE_METADATA: cluster.update_metadata,
    ApiKey.CONTROLLED_SHUTDOWN: cluster.controlled_shutdown,
    ApiKey.FIND_COORDINATOR: groups.find_coordinator,
    ApiKey.JOIN_GROUP: groups.in_group(_refused_join),
    ApiKey.HEARTBEAT: groups.in_group(lambda code, _: HeartbeatResponse(error_code=code)),
    ApiKey.LEAVE_GROUP: groups.in_group(lambda code, _: LeaveGroupResponse(error_code=code)),
    ApiKey.SYNC_GROUP: groups.in_group(lambda code, _: sync_error(code)),
    ApiKey.DESCRIBE_GROUPS: groups.describe_groups,
    ApiKey.LIST_GROUPS: groups.list_groups,
    ApiKey.SASL_HANDSHAKE: EVERYBODY,
    ApiKey.API_VERSIONS: EVERYBODY,
    ApiKey.CREATE_TOPICS: topics.create_topics,
    ApiKey.DELETE_RECORDS: topics.delete_records,
    ApiKey.INIT_PRODUCER_ID: transactions.init_producer_id,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: topics.offset_for_leader_epoch,
    ApiKey.ADD_PARTITIONS_TO_TXN: transactions.add_partitions_to_txn,
    ApiKey.ADD_OFFSETS_TO_TXN: transactions.add_offsets_to_txn,
    ApiKey.END_TXN: transactions.end_txn,
    ApiKey.WRITE_TXN_MARKERS: transactions.write_txn_markers,
    ApiKey.TXN_OFFSET_COMMIT: transactions.txn_offset_commit,
    ApiKey.DESCRIBE_ACLS: cluster.describe_acls,
    ApiKey.CREATE_ACLS: cluster.create_acls,
    ApiKey.DELETE_ACLS: cluster.delete_acls,
    ApiKey.DESCRIBE_CONFIGS: configs.describe_configs,
    ApiKey.ALTER_CONFIGS: configs.alter_configs,
    ApiKey.ALTER_REPLICA_LOG_DIRS: cluster.alter_replica_log_dirs,
    ApiKey.DESCRIBE_LOG_DIRS: cluster.describe_log_dirs,
    ApiKey.SASL_AUTHENTICATE: EVERYBODY,
    ApiKey.CREATE_PARTITIONS: topics.create_partitions,
    ApiKey.CREATE_DELEGATION_TOKEN: IN_HANDLER,  # for another owner: CREATE_TOKENS user
    ApiKey.RENEW_DELEGATION_TOKEN: EVERYBODY,  # the token lists the principals that may
    ApiKey.EXPIRE_DELEGATION_TOKEN: EVERYBODY,
    ApiKey.DESCRIBE_DELEGATION_TOKEN: IN_HANDLER,  # of others: DESCRIBE token or DESCRIBE_TOKENS user
    ApiKey.DELETE_GROUPS: groups.delete_groups,
    ApiKey.ELECT_LEADERS: cluster.elect_leaders,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: configs.incremental_alter_configs,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: cluster.alter_partition_reassignments,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: cluster.list_partition_reassignments,
    ApiKey.OFFSET_DELETE: groups.offset_delete,
    ApiKey.DESCRIBE_CLIENT_QUOTAS: cluster.describe_client_quotas,
    ApiKey.ALTER_CLIENT_QUOTAS: cluster.alter_client_quotas,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: cluster.describe_user_scram_credentials,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: cluster.alter_user_scram_credentials,
    ApiKey.DESCRIBE_QUORUM: cluster.describe_quorum,
    ApiKey.ALTER_PARTITION: cluster.alter_partition,
    ApiKey.UPDATE_FEATURES: cluster.update_features,
    ApiKey.DESCRIBE_CLUSTER: EVERYBODY,  # Metadata also lists the brokers; the operations are the client's own
    ApiKey.DESCRIBE_PRODUCERS: topics.describe_producers,
    ApiKey.DESCRIBE_TRANSACTIONS: transactions.describe_transactions,
    ApiKey.LIST_TRANSACTIONS: transactions.list_transactions,
    ApiKey.ALLOCATE_PRODUCER_IDS: cluster.allocate_producer_ids,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: groups.consumer_group_heartbeat,
    ApiKey.CONSUMER_GROUP_DESCRIBE: groups.consumer_group_describe,
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: EVERYBODY,
    ApiKey.PUSH_TELEMETRY: EVERYBODY,
    ApiKey.LIST_CONFIG_RESOURCES: cluster.list_config_resources,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: IN_HANDLER,  # DESCRIBE topic, before the response is split into pages
}
# Guards that need the cluster image: the names of topic ids, topics that would be created.
MADE: Final[dict[ApiKey, Make]] = {
    ApiKey.METADATA: lambda services: topics.metadata(services.image, services.config),
    ApiKey.OFFSET_COMMIT: lambda services: groups.offset_commit(services.image),
    ApiKey.OFFSET_FETCH: lambda services: groups.offset_fetch(services.image),
    ApiKey.DELETE_TOPICS: lambda services: topics.delete_topics(services.image, services.config),
}


def checked(key: ApiKey, handle: Handle, services: Services, authorizer: Authorizer) -> Handle:
    """`handle` with the rule of its key. KeyError if the key has no rule: then no client may call it."""
    made = MADE.get(key)
    rule = RULES[key] if made is None else made(services)
    return guarded(handle, None if isinstance(rule, str) else rule, authorizer)
