"""All ACL rules of a cluster, and which of them decides, with Kafka's semantics.

May `principal` do `operation` on the resource (`kind`, `name`) from `host`?

1. A super user may.
2. Take the rules of the resource: those of the literal pattern with its name, of every prefixed pattern that its name
   starts with, and of the literal pattern `*`.
3. If there are none, allow.everyone.if.no.acl.found decides.
4. Keep the rules for the principal or `User:*`, the host or `*`, and the operation or All. If one of them denies, the
   answer is no.
5. If one of them allows, the answer is yes. For Describe, a rule that allows Read, Write, Delete or Alter is enough;
   for DescribeConfigs, one that allows AlterConfigs.
6. Otherwise the answer is no.

    ALLOW Read to User:alice on Topic:PREFIXED:pay       alice may read and describe payments
    DENY  All  to User:alice on Topic:LITERAL:payroll    but neither read nor describe payroll
    ALLOW Write to User:*    on Topic:LITERAL:*          every user may write to, and so describe, the other topics

Rules are stored by resource, then by principal, so a decision does not depend on the number of rules of other
principals. Not thread-safe: only the event loop uses it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from ixion.language.model.acl_binding import Binding, Entry, Filter, ResourcePattern, same_host
from ixion.language.model.acl_names import EVERYBODY, WILDCARD, Operation, PatternKind, Permission, ResourceKind

IMPLY: Final = {
    Operation.DESCRIBE: (Operation.DESCRIBE, Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER),
    Operation.DESCRIBE_CONFIGS: (Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS),
}

ByPrincipal = dict[str, list[Entry]]


class Decision(NamedTuple):
    allowed: bool
    why: str  # the rule that decided


class Rules:
    def __init__(self, super_users: Iterable[str] = (), allow_if_none: bool = False) -> None:
        self.super_users: frozenset[str] = frozenset(super_users)
        self.allow_if_none: bool = allow_if_none
        self.version = 0  # grows with every change, which makes earlier decisions invalid
        self.resources: dict[ResourcePattern, tuple[Entry, ...]] = {}
        self.count = 0
        self._by_name: dict[tuple[int, int, str], ByPrincipal] = {}  # kind, pattern, name
        self._prefix_sizes: dict[int, dict[int, int]] = {}  # by kind: the number of prefixes of each length

    def put(self, resource: ResourcePattern, entries: Iterable[Entry]) -> None:
        """Replace all rules of a resource pattern; no entries remove it."""
        wanted = tuple(dict.fromkeys(entries))
        before = self.resources.get(resource, ())
        if before == wanted:
            return
        self.version += 1
        self.count += len(wanted) - len(before)
        key = (int(resource.kind), int(resource.pattern), resource.name)
        if resource.pattern == PatternKind.PREFIXED and bool(before) != bool(wanted):
            sizes = self._prefix_sizes.setdefault(key[0], {})
            size = len(resource.name)
            sizes[size] = sizes.get(size, 0) + (1 if wanted else -1)
            if sizes[size] == 0:
                del sizes[size]
        if not wanted:
            del self.resources[resource]
            del self._by_name[key]
            return
        self.resources[resource] = wanted
        by_principal: ByPrincipal = {}
        for entry in wanted:
            by_principal.setdefault(entry.principal, []).append(entry._replace(host=same_host(entry.host)))
        self._by_name[key] = by_principal

    def decide(self, principal: str, host: str, operation: int, kind: int, name: str) -> Decision:
        """`host` in the spelling of `same_host`."""
        if principal in self.super_users:
            return Decision(True, f"{principal} is a super user")
        about = self._about(kind, name)
        if not about:
            return Decision(self.allow_if_none, "the resource has no rules")
        allowing: Binding | None = None
        implied = IMPLY.get(Operation(operation), (operation,))
        for resource, by_principal in about:
            for who in (principal, EVERYBODY):
                for entry in by_principal.get(who, ()):
                    if entry.host not in (WILDCARD, host):
                        continue
                    if entry.permission == Permission.DENY:
                        if entry.operation in (Operation.ALL, operation):
                            return Decision(False, str(Binding(resource, entry)))
                    elif allowing is None and (entry.operation == Operation.ALL or entry.operation in implied):
                        allowing = Binding(resource, entry)
        if allowing is not None:
            return Decision(True, str(allowing))
        return Decision(False, "no rule allows it")

    def decide_for_any(self, principal: str, host: str, operation: int, kind: int) -> bool:
        """Whether the principal may do the operation on at least one resource of the kind, existing or not.

        As in Kafka (KIP-679), other operations do not imply this one here.
        """
        if principal in self.super_users:
            return True
        allowed: list[ResourcePattern] = []
        denied: set[ResourcePattern] = set()
        for resource, entries in self.resources.items():
            if resource.kind != kind:
                continue
            for entry in entries:
                if (
                    entry.principal in (principal, EVERYBODY)
                    and same_host(entry.host) in (WILDCARD, host)
                    and entry.operation in (Operation.ALL, operation)
                ):
                    if entry.permission == Permission.DENY:
                        denied.add(resource)
                    else:
                        allowed.append(resource)
        kind = ResourceKind(kind)
        if ResourcePattern(kind, WILDCARD) in denied:
            return False
        if self.allow_if_none:
            return True
        sizes = {len(resource.name) for resource in denied if resource.pattern == PatternKind.PREFIXED}
        return any(
            resource == ResourcePattern(kind, WILDCARD)
            or not (
                (resource.pattern == PatternKind.LITERAL and resource in denied)
                or any(ResourcePattern(kind, resource.name[:size], PatternKind.PREFIXED) in denied for size in sizes)
            )
            for resource in allowed
        )

    def matching(self, wanted: Filter) -> Iterator[Binding]:
        for resource, entries in self.resources.items():
            if wanted.matches_resource(resource):
                for entry in entries:
                    if wanted.matches_entry(entry):
                        yield Binding(resource, entry)

    def _about(self, kind: int, name: str) -> list[tuple[ResourcePattern, ByPrincipal]]:
        found: list[tuple[ResourcePattern, ByPrincipal]] = []
        wanted = [(int(PatternKind.LITERAL), name)]
        sizes = [size for size in self._prefix_sizes.get(kind, ()) if size <= len(name)]
        wanted += [(int(PatternKind.PREFIXED), name[:size]) for size in sizes]
        if name != WILDCARD:
            wanted.append((int(PatternKind.LITERAL), WILDCARD))
        for pattern, text in wanted:
            by_principal = self._by_name.get((kind, pattern, text))
            if by_principal is not None:
                found.append((ResourcePattern(ResourceKind(kind), text, PatternKind(pattern)), by_principal))
        return found
