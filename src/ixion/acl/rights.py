"""The rights of one principal from one host, cached until a rule changes."""

from __future__ import annotations

from typing import Final

from ixion.acl.audit import Audit
from ixion.acl.names import CLUSTER_NAME
from ixion.acl.numbers import CLUSTER
from ixion.acl.rules import Rules

MOST: Final = 10_000  # decisions cached per principal; a client may ask about any number of names


class Rights:
    def __init__(self, rules: Rules, audit: Audit, principal: str, host: str) -> None:
        self.principal: Final = principal
        self.host: Final = host
        self._rules: Final = rules
        self._audit: Final = audit
        self._version = rules.version
        self._known: dict[int, dict[str, bool]] = {}  # by operation and kind, then by name
        self._any: dict[int, bool] = {}  # by operation and kind: decisions of `may_for_any`
        self._size = 0

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
            self._forget()
        known = self._known.get(operation * 16 + kind)
        if known is None:
            known = self._known[operation * 16 + kind] = {}
        allowed = known.get(name)
        if allowed is not None:
            return allowed
        decision = self._rules.decide(self.principal, self.host, operation, kind, name)
        if decision.allowed:
            self._audit.note_granted(self.principal, self.host, operation, kind, name, decision.why)
        if self._size >= MOST:
            self._forget()
            known = self._known[operation * 16 + kind] = {}
        known[name] = decision.allowed
        self._size += 1
        return decision.allowed

    def may_in_cluster(self, operation: int) -> bool:
        return self.may(operation, CLUSTER, CLUSTER_NAME)

    def sees_in_cluster(self, operation: int) -> bool:
        return self.sees(operation, CLUSTER, CLUSTER_NAME)

    def may_for_any(self, operation: int, kind: int) -> bool:
        """Whether the operation is allowed on at least one resource of the kind."""
        if self._version != self._rules.version:
            self._forget()
        allowed = self._any.get(operation * 16 + kind)
        if allowed is None:
            allowed = self._rules.decide_for_any(self.principal, self.host, operation, kind)
            self._any[operation * 16 + kind] = allowed
        return allowed

    def _forget(self) -> None:
        self._known.clear()
        self._any.clear()
        self._size = 0
        self._version = self._rules.version
