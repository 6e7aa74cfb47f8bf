"""One ACL rule: an entry (principal, host, operation, allow or deny) on a resource pattern."""

from __future__ import annotations

from typing import NamedTuple

from ixion.language.model.acl_names import WILDCARD, Operation, PatternKind, Permission, ResourceKind


class ResourcePattern(NamedTuple):
    kind: ResourceKind
    name: str
    pattern: PatternKind = PatternKind.LITERAL

    def __str__(self) -> str:
        return f"{self.kind.title}:{self.pattern.name}:{self.name}"


class Entry(NamedTuple):
    principal: str  # User:alice
    host: str  # an address, or *
    operation: Operation
    permission: Permission

    def __str__(self) -> str:
        return f"{self.permission.name} {self.operation.title} to {self.principal} from {self.host}"


class Binding(NamedTuple):
    resource: ResourcePattern
    entry: Entry

    def __str__(self) -> str:
        return f"{self.entry} on {self.resource}"


class Filter(NamedTuple):
    """Selects rules. None as name, principal or host matches all."""

    kind: ResourceKind = ResourceKind.ANY
    name: str | None = None
    pattern: PatternKind = PatternKind.ANY
    principal: str | None = None
    host: str | None = None
    operation: Operation = Operation.ANY
    permission: Permission = Permission.ANY

    @property
    def is_unknown(self) -> bool:
        return 0 in (self.kind, self.pattern, self.operation, self.permission)

    def matches_resource(self, resource: ResourcePattern) -> bool:
        if self.kind not in (ResourceKind.ANY, resource.kind):
            return False
        if self.pattern not in (PatternKind.ANY, PatternKind.MATCH, resource.pattern):
            return False
        name = self.name
        if name is None:
            return True
        if self.pattern != PatternKind.MATCH:
            return name == resource.name
        if resource.pattern == PatternKind.PREFIXED:
            return name.startswith(resource.name)
        return resource.name in (name, WILDCARD)

    def matches_entry(self, entry: Entry) -> bool:
        return (
            self.principal in (None, entry.principal)
            and self.host in (None, entry.host)
            and self.operation in (Operation.ANY, entry.operation)
            and self.permission in (Permission.ANY, entry.permission)
        )


def same_host(host: str) -> str:
    """One spelling of an address, so that ::1 and 0:0:0:0:0:0:0:1 are the same host; other text does not change."""
    from ipaddress import ip_address  # only a broker with an authorizer needs it

    try:
        address = ip_address(host)
    except ValueError:
        return host
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address)
