"""The rights of one principal from one host, cached until a rule changes.

A client may ask about any number of names, each of up to 32,767 bytes. So all caches together have one budget in bytes
(`Memory`): when it is used up, all of them are emptied and fill again.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

from sys import getsizeof
from typing import Final

from ixion.broker.acl.audit import Audit
from ixion.broker.acl.numbers import CLUSTER
from ixion.broker.acl.rules import Rules
from ixion.language.model.acl_names import CLUSTER_NAME

MOST_BYTES: Final = 16 << 20
DECISION_BYTES: Final = 110  # of an entry, beside its name


class Memory:
    """What the rights of all principals remember together."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self.most_bytes: Final = most_bytes
        self.bytes = 0
        self._filled: list[Rights] = []  # those that remember something

    def take(self, rights: Rights, size: int, first: bool) -> None:
        """`first`: these rights remembered nothing before."""
        self.bytes += size
        if first:
            self._filled.append(rights)
        if self.bytes > self.most_bytes:
            filled, self._filled = self._filled, []
            for each in filled:
                each.is_filled = False
                each.forget()
            self.bytes = 0


class Rights:
    def __init__(self, rules: Rules, audit: Audit, principal: str, host: str, memory: Memory) -> None:
        self.principal: Final = principal
        self.host: Final = host
        self._rules: Final = rules
        self._audit: Final = audit
        self._version = rules.version
        self._known: dict[int, dict[str, bool]] = {}  # by operation and kind, then by name
        self._any: dict[int, bool] = {}  # by operation and kind: decisions of `may_for_any`
        self._memory: Final = memory
        self.is_filled = False

    @property
    def version(self) -> int:
        """The version of the rules; if it changes, the rights may have changed."""
        return self._rules.version

    def may(self, operation: int, kind: int, name: str) -> bool:
        """Whether the operation is allowed. Logs a refusal in the audit log."""
        if self.sees(operation, kind, name):
            return True
        decision = self._rules.decide(self.principal, self.host, operation, kind, name)
        self._audit.note_refused(self.principal, self.host, operation, kind, name, decision.why)
        return False

    def sees(self, operation: int, kind: int, name: str) -> bool:
        """As `may`, without the audit log: to filter what a client sees."""
        if self._version != self._rules.version:
            self.forget()
        known = self._known.get(operation * 16 + kind)
        if known is None:
            known = self._known[operation * 16 + kind] = {}
        allowed = known.get(name)
        if allowed is not None:
            return allowed
        decision = self._rules.decide(self.principal, self.host, operation, kind, name)
        if decision.allowed:
            self._audit.note_granted(self.principal, self.host, operation, kind, name, decision.why)
        known[name] = decision.allowed
        first = not self.is_filled
        self.is_filled = True
        self._memory.take(self, DECISION_BYTES + getsizeof(name), first)
        return decision.allowed

    def may_in_cluster(self, operation: int) -> bool:
        return self.may(operation, CLUSTER, CLUSTER_NAME)

    def sees_in_cluster(self, operation: int) -> bool:
        return self.sees(operation, CLUSTER, CLUSTER_NAME)

    def may_for_any(self, operation: int, kind: int) -> bool:
        """Whether the operation is allowed on at least one resource of the kind."""
        if self._version != self._rules.version:
            self.forget()
        allowed = self._any.get(operation * 16 + kind)
        if allowed is None:
            allowed = self._rules.decide_for_any(self.principal, self.host, operation, kind)
            self._any[operation * 16 + kind] = allowed
        return allowed

    def forget(self) -> None:
        """Decide anew. The memory goes on counting what was here until it is used up."""
        self._known.clear()
        self._any.clear()
        self._version = self._rules.version
