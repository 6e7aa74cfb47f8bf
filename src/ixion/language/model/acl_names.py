"""The numbers and names of Kafka's ACLs: resources, patterns, operations, permissions.

Requests contain the numbers, metadata nodes the names. UNKNOWN, ANY and MATCH are for filters only.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

CLUSTER_NAME: Final = "kafka-cluster"  # the one resource of type CLUSTER
WILDCARD: Final = "*"  # every resource of a type, every principal of a type, every host
EVERYBODY: Final = "User:*"


class Named(IntEnum):
    @property
    def title(self) -> str:
        """Kafka's spelling in nodes and tools: TransactionalId, AlterConfigs, Deny."""
        return "".join(part.capitalize() for part in self.name.split("_"))


class ResourceKind(Named):
    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternKind(Named):
    UNKNOWN = 0
    ANY = 1
    MATCH = 2  # every pattern that matches a name: literal, prefixed and the wildcard
    LITERAL = 3
    PREFIXED = 4


class Operation(Named):
    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class Permission(Named):
    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


SPECIFIC_KINDS: Final = tuple(kind for kind in ResourceKind if kind > ResourceKind.ANY)

# The operations that apply to each kind of resource; authorized operations in responses are among these.
APPLY_TO: Final = {
    ResourceKind.TOPIC: (
        *(Operation.READ, Operation.WRITE, Operation.CREATE, Operation.DELETE, Operation.ALTER, Operation.DESCRIBE),
        *(Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS),
    ),
    ResourceKind.GROUP: (
        *(Operation.READ, Operation.DELETE, Operation.DESCRIBE),
        *(Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS),
    ),
    ResourceKind.CLUSTER: (
        *(Operation.CREATE, Operation.ALTER, Operation.DESCRIBE, Operation.CLUSTER_ACTION),
        *(Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS, Operation.IDEMPOTENT_WRITE),
    ),
    ResourceKind.TRANSACTIONAL_ID: (Operation.WRITE, Operation.DESCRIBE, Operation.TWO_PHASE_COMMIT),
    ResourceKind.DELEGATION_TOKEN: (Operation.DESCRIBE,),
    ResourceKind.USER: (Operation.CREATE_TOKENS, Operation.DESCRIBE_TOKENS),
}
