"""`/kafka-acl/Topic/orders` and `/kafka-acl-extended/prefixed/Topic/or`: the ACL rules of one resource pattern.

A change creates a sequential node that names the pattern: `/kafka-acl-changes/acl_changes_` contains `TOPIC:orders` for
literal patterns, `/kafka-acl-extended-changes/acl_changes_` contains JSON for the others.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from ixion.broker.metadata.content import CorruptNodeError, from_json, to_json
from ixion.language.model.acl_binding import Entry, ResourcePattern
from ixion.language.model.acl_names import SPECIFIC_KINDS, Operation, PatternKind, Permission, ResourceKind

LITERAL: Final = "/kafka-acl"
EXTENDED: Final = "/kafka-acl-extended"
PREFIXED: Final = f"{EXTENDED}/prefixed"
LITERAL_CHANGES: Final = "/kafka-acl-changes"
EXTENDED_CHANGES: Final = "/kafka-acl-extended-changes"
CHANGE: Final = "acl_changes_"

ROOTS: Final = {PatternKind.LITERAL: LITERAL, PatternKind.PREFIXED: PREFIXED}
CHANGES: Final = {PatternKind.LITERAL: LITERAL_CHANGES, PatternKind.PREFIXED: EXTENDED_CHANGES}
# Created when an authorizer starts, if they are missing.
BASE: Final = (
    *(f"{root}/{kind.title}" for root in ROOTS.values() for kind in SPECIFIC_KINDS),
    *CHANGES.values(),
)

_KINDS: Final = {kind.title: kind for kind in SPECIFIC_KINDS}
_OPERATIONS: Final = {operation.title: operation for operation in Operation}
_PERMISSIONS: Final = {permission.title: permission for permission in Permission}


def kind_of(title: str) -> ResourceKind | None:
    return _KINDS.get(title)


def path_of(resource: ResourcePattern) -> str:
    return f"{ROOTS[resource.pattern]}/{resource.kind.title}/{resource.name}"


def encode_acls(entries: Iterable[Entry]) -> bytes:
    return to_json(
        {
            "version": 1,
            "acls": [
                {
                    "principal": entry.principal,
                    "permissionType": entry.permission.title,
                    "operation": entry.operation.title,
                    "host": entry.host,
                }
                for entry in entries
            ],
        }
    )


def decode_acls(resource: ResourcePattern, data: bytes) -> tuple[Entry, ...]:
    """An empty node has no rules."""
    if not data:
        return ()

    def read(members: dict[str, Any]) -> tuple[Entry, ...]:
        return tuple(
            Entry(
                str(each["principal"]),
                str(each["host"]),
                _OPERATIONS[each["operation"]],
                _PERMISSIONS[each["permissionType"]],
            )
            for each in members["acls"]
        )

    return from_json(f"the rules of {resource}", data, read)


def encode_acl_change(resource: ResourcePattern) -> bytes:
    if resource.pattern == PatternKind.LITERAL:
        return f"{resource.kind.name}:{resource.name}".encode()
    members = {"version": 1, "resourceType": resource.kind.name, "name": resource.name}
    return to_json({**members, "patternType": resource.pattern.name})


def decode_acl_change(pattern: PatternKind, data: bytes) -> ResourcePattern:
    if pattern == PatternKind.LITERAL:
        kind, colon, name = data.decode(errors="replace").partition(":")
        kinds = {each.name: each for each in SPECIFIC_KINDS} | {
            each.name.replace("_", ""): each for each in _KINDS.values()
        }
        if not colon or kind.upper() not in kinds:
            raise CorruptNodeError(f"the change of rules cannot be read from {data[:200]!r}")
        return ResourcePattern(kinds[kind.upper()], name)

    def read(members: dict[str, Any]) -> ResourcePattern:
        kind = ResourceKind[str(members["resourceType"]).upper()]
        return ResourcePattern(kind, str(members["name"]), PatternKind[str(members["patternType"]).upper()])

    return from_json("the change of rules", data, read)
