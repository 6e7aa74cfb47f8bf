"""Which right a command lacks when the cluster refuses it: the error codes of Kafka name the resource only."""

from __future__ import annotations

from typing import Final

from ixion.language.model.errors import ErrorCode

RESOURCES: Final = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "topic",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "group",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "cluster",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "transactional id",
}
# By command: the operations on each resource, by Kafka's names.
NEEDED: Final = {
    "produce": {"topic": "Write (and Create, if it is new)", "cluster": "Write on the topic, or IdempotentWrite"},
    "consume": {"topic": "Read", "group": "Read"},
    "read": {"topic": "Read"},
    "topic create": {"topic": "Create", "cluster": "Create"},
    "topic list": {"topic": "Describe"},
    "topic describe": {"topic": "Describe and DescribeConfigs"},
    "topic offsets": {"topic": "Describe"},
    "topic alter": {"topic": "Alter for partitions, AlterConfigs for settings"},
    "topic delete-records": {"topic": "Delete"},
    "topic delete": {"topic": "Delete"},
    "group list": {"cluster": "Describe"},
    "group describe": {"group": "Describe", "topic": "Describe"},
    "group reset": {"group": "Read", "topic": "Read"},
    "group dead-letters": {"topic": "Read (and Write, to send again)", "group": "DescribeConfigs (and Read)"},
    "group delete": {"group": "Delete"},
    "schedule list": {"topic": "Read"},
    "schedule cancel": {"topic": "Read and Write"},
    "schedule purge": {"topic": "Read and Write"},
    "config get": dict.fromkeys(("topic", "group", "cluster"), "DescribeConfigs"),
    "config set": dict.fromkeys(("topic", "group", "cluster"), "AlterConfigs"),
    "config unset": dict.fromkeys(("topic", "group", "cluster"), "AlterConfigs"),
    "cluster describe": {"cluster": "Describe"},
    "cluster log-dirs": {"cluster": "Describe"},
    "cluster reassign": {"cluster": "Alter"},
    "cluster drain": {"cluster": "Alter"},
    "cluster elect": {"cluster": "Alter"},
    "transaction list": {"transactional id": "Describe"},
    "transaction describe": {"transactional id": "Describe"},
    "transaction hanging": {"topic": "Read", "transactional id": "Describe"},
    "transaction abort": {"cluster": "Alter", "topic": "Read"},
    "user list": {"cluster": "Describe"},
    "user add": {"cluster": "Alter"},
    "user remove": {"cluster": "Alter"},
    "acl list": {"cluster": "Describe"},
    "acl check": {"cluster": "Describe"},
    "acl add": {"cluster": "Alter"},
    "acl remove": {"cluster": "Alter"},
    "perf produce": {"topic": "Write", "cluster": "Write on the topic, or IdempotentWrite"},
    "perf consume": {"topic": "Read"},
}


def missing_right(command: str, code: ErrorCode) -> str:
    """`; ixion produce needs Write on the topic`, after a refusal of the authorizer; otherwise nothing."""
    resource = RESOURCES.get(code, "")
    operations = NEEDED.get(command, {}).get(resource)
    return f"; ixion {command} needs {operations} on the {resource}" if operations else ""
