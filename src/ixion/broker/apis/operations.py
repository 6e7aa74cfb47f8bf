"""Authorized operations of a client, as a bit field of the operation numbers of ACLs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ixion.language.model.acl_names import APPLY_TO, CLUSTER_NAME, ResourceKind

if TYPE_CHECKING:
    from ixion.broker.acl.rights import Rights

NOT_ASKED: Final = -(2**31)


def bits(kind: ResourceKind) -> int:
    field = 0
    for operation in APPLY_TO[kind]:
        field |= 1 << operation
    return field


# Without an authorizer: all operations that apply to each kind of resource.
ON_TOPIC: Final = bits(ResourceKind.TOPIC)
ON_GROUP: Final = bits(ResourceKind.GROUP)
ON_CLUSTER: Final = bits(ResourceKind.CLUSTER)


def topic_operations(rights: Rights | None, name: str) -> int:
    """The client's operations on a topic; without an authorizer, all."""
    return ON_TOPIC if rights is None else allowed(rights, ResourceKind.TOPIC, name)


def group_operations(rights: Rights | None, name: str) -> int:
    return ON_GROUP if rights is None else allowed(rights, ResourceKind.GROUP, name)


def cluster_operations(rights: Rights | None) -> int:
    """The client's operations on the cluster; none if it may not describe the cluster."""
    if rights is None:
        return ON_CLUSTER
    known = allowed(rights, ResourceKind.CLUSTER, CLUSTER_NAME)
    return known if known & 1 << 8 else 0


def allowed(rights: Rights, kind: ResourceKind, name: str) -> int:
    field = 0
    for operation in APPLY_TO[kind]:
        if rights.sees(operation, kind, name):
            field |= 1 << operation
    return field
