"""The rule for repeated entries in every list of every served API. See `ixion.apis.distinct` for the rules.

A test walks the message tables and fails for a list without a rule.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ixion.apis.distinct import AS_SENT, FIRST, ONCE, TWICE, Either, Rule
from ixion.protocol.registry import ApiKey


def once(*key: str, **inner: Rule) -> Rule:
    return Rule(ONCE, key, inner)


def first(*key: str) -> Rule:
    return Rule(FIRST, key, {})


def twice(*key: str, **inner: Rule) -> Rule:
    return Rule(TWICE, key, inner)


def as_sent(**inner: Rule) -> Rule:
    return Rule(AS_SENT, (), inner)


NUMBERS: Final = once()
REPLICAS: Final = {"isr": NUMBERS, "replicas": NUMBERS, "adding_replicas": NUMBERS, "removing_replicas": NUMBERS}
KNOWN_REPLICAS: Final = {"isr": NUMBERS, "replicas": NUMBERS, "offline_replicas": NUMBERS}
RULES: Final[Mapping[ApiKey, Mapping[str, Rule]]] = {
    # Each entry has records. All of them are appended; Kafka would append only the last batch of a partition.
    ApiKey.PRODUCE: {"topic_data": as_sent(partition_data=as_sent())},
    ApiKey.FETCH: {
        "topics": once("topic", "topic_id", partitions=once("partition")),
        "forgotten_topics_data": once("topic", "topic_id", partitions=NUMBERS),
    },
    ApiKey.LIST_OFFSETS: {"topics": once("name", partitions=twice("partition_index"))},
    ApiKey.METADATA: {"topics": Either(ONCE, ("name", "topic_id"), {})},
    ApiKey.LEADER_AND_ISR: {
        "ungrouped_partition_states": once("topic_name", "partition_index", **REPLICAS),
        "topic_states": once("topic_name", "topic_id", partition_states=once("partition_index", **REPLICAS)),
        "live_leaders": once("broker_id"),
    },
    ApiKey.STOP_REPLICA: {
        "ungrouped_partitions": once("topic_name", "partition_index"),
        "topics": once("name", partition_indexes=NUMBERS),
        "topic_states": once("topic_name", partition_states=once("partition_index")),
    },
    ApiKey.UPDATE_METADATA: {
        "ungrouped_partition_states": once("topic_name", "partition_index", **KNOWN_REPLICAS),
        "topic_states": once("topic_name", "topic_id", partition_states=once("partition_index", **KNOWN_REPLICAS)),
        "live_brokers": once("id", endpoints=once("listener")),
    },
    ApiKey.OFFSET_COMMIT: {"topics": once("name", "topic_id", partitions=once("partition_index"))},
    ApiKey.OFFSET_FETCH: {
        "topics": once("name", partition_indexes=NUMBERS),
        "groups": once("group_id", topics=once("name", "topic_id", partition_indexes=NUMBERS)),
    },
    ApiKey.FIND_COORDINATOR: {"coordinator_keys": once()},
    ApiKey.JOIN_GROUP: {"protocols": first("name")},
    ApiKey.LEAVE_GROUP: {"members": twice("member_id", "group_instance_id")},
    ApiKey.SYNC_GROUP: {"assignments": once("member_id")},
    ApiKey.DESCRIBE_GROUPS: {"groups": once()},
    ApiKey.LIST_GROUPS: {"states_filter": once(), "types_filter": once()},
    ApiKey.CREATE_TOPICS: {
        "topics": twice("name", assignments=twice("partition_index", broker_ids=twice()), configs=once("name"))
    },
    ApiKey.DELETE_TOPICS: {"topics": twice("name", "topic_id"), "topic_names": twice()},
    ApiKey.DELETE_RECORDS: {"topics": once("name", partitions=once("partition_index"))},
    ApiKey.OFFSET_FOR_LEADER_EPOCH: {"topics": once("topic", partitions=once("partition"))},
    ApiKey.ADD_PARTITIONS_TO_TXN: {
        "transactions": once(
            "transactional_id",
            "producer_id",
            "producer_epoch",
            "verify_only",
            topics=once("name", partitions=NUMBERS),
        ),
        "v3_and_below_topics": once("name", partitions=NUMBERS),
    },
    ApiKey.WRITE_TXN_MARKERS: {
        "markers": once(
            "producer_id",
            "producer_epoch",
            "transaction_result",
            "coordinator_epoch",
            "transaction_version",
            topics=once("name", partition_indexes=NUMBERS),
        )
    },
    ApiKey.TXN_OFFSET_COMMIT: {"topics": once("name", partitions=once("partition_index"))},
    # Results are in the order of the rules or filters.
    ApiKey.CREATE_ACLS: {"creations": as_sent()},
    ApiKey.DELETE_ACLS: {"filters": as_sent()},
    ApiKey.DESCRIBE_CONFIGS: {"resources": once("resource_type", "resource_name", configuration_keys=once())},
    ApiKey.ALTER_CONFIGS: {"resources": twice("resource_type", "resource_name", configs=twice("name"))},
    ApiKey.ALTER_REPLICA_LOG_DIRS: {"dirs": once("path", topics=once("name", partitions=NUMBERS))},
    ApiKey.DESCRIBE_LOG_DIRS: {"topics": once("topic", partitions=NUMBERS)},
    # Assignments are in the order of the new partitions.
    ApiKey.CREATE_PARTITIONS: {"topics": twice("name", assignments=as_sent(broker_ids=twice()))},
    ApiKey.CREATE_DELEGATION_TOKEN: {"renewers": once("principal_type", "principal_name")},
    ApiKey.DESCRIBE_DELEGATION_TOKEN: {"owners": once("principal_type", "principal_name")},
    ApiKey.DELETE_GROUPS: {"groups_names": once()},
    ApiKey.ELECT_LEADERS: {"topic_partitions": once("topic", partitions=NUMBERS)},
    ApiKey.INCREMENTAL_ALTER_CONFIGS: {"resources": twice("resource_type", "resource_name", configs=twice("name"))},
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: {
        "topics": once("name", partitions=once("partition_index", replicas=twice())),
    },
    ApiKey.LIST_PARTITION_REASSIGNMENTS: {"topics": once("name", partition_indexes=NUMBERS)},
    ApiKey.OFFSET_DELETE: {"topics": once("name", partitions=once("partition_index"))},
    ApiKey.DESCRIBE_CLIENT_QUOTAS: {"components": twice("entity_type")},
    ApiKey.ALTER_CLIENT_QUOTAS: {"entries": as_sent(entity=as_sent(), ops=as_sent())},
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: {"users": twice("name")},
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: {
        "deletions": twice("name", "mechanism"),
        "upsertions": twice("name", "mechanism"),
    },
    ApiKey.DESCRIBE_QUORUM: {"topics": once("topic_name", partitions=once("partition_index"))},
    ApiKey.UPDATE_FEATURES: {"feature_updates": twice("feature")},
    ApiKey.DESCRIBE_PRODUCERS: {"topics": once("name", partition_indexes=NUMBERS)},
    ApiKey.DESCRIBE_TRANSACTIONS: {"transactional_ids": once()},
    ApiKey.LIST_TRANSACTIONS: {"state_filters": once(), "producer_id_filters": once()},
    ApiKey.ALTER_PARTITION: {
        "topics": once(
            "topic_id",
            partitions=once("partition_index", new_isr=NUMBERS, new_isr_with_epochs=once("broker_id")),
        )
    },
    ApiKey.CONSUMER_GROUP_HEARTBEAT: {
        "subscribed_topic_names": once(),
        "topic_partitions": once("topic_id", partitions=NUMBERS),
    },
    ApiKey.CONSUMER_GROUP_DESCRIBE: {"group_ids": once()},
    ApiKey.LIST_CONFIG_RESOURCES: {"resource_types": once()},
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: {"topics": once("name")},
}


def rules_of(key: ApiKey) -> dict[str, Rule]:
    """The rules that can change a request. Those of Produce cannot, so its lists are not walked."""
    return {field: rule for field, rule in RULES.get(key, {}).items() if can_change(rule)}


def can_change(rule: Rule) -> bool:
    return rule.kept != AS_SENT or any(can_change(inner) for inner in rule.inner.values())
