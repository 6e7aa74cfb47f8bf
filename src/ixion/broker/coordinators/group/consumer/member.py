"""A member of a consumer group."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ixion.broker.acl.numbers import DESCRIBE, TOPIC
from ixion.broker.coordinators.group.consumer.reconcile import Current

if TYPE_CHECKING:
    from ixion.broker.acl.rights import Rights


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassicSide:
    """The classic side of a member that speaks the classic protocol (in a group that is being migrated)."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """The identity of a member and what it wants to read; replaced as a whole when anything changes."""

    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: frozenset[str] = frozenset()
    regex: str | None = None
    rebalance_timeout_ms: int = -1
    assignor: str | None = None
    classic: ClassicSide | None = None

    def texts(self) -> list[str]:
        """All texts whose length the member chooses, except its classic protocols."""
        others = (self.instance_id, self.rack_id, self.client_id, self.client_host, self.regex, self.assignor)
        return [*self.topics, *filter(None, others)]


@dataclass(slots=True, kw_only=True)
class ConsumerMember:
    member_id: str
    subscription: Subscription = field(default_factory=Subscription)
    current: Current = field(default_factory=Current)
    rights: Rights | None = None  # of its client, at the last heartbeat; None: there is no authorizer, or `is_loaded`
    is_loaded: bool = False  # read from the log, and no heartbeat since: the rights of its client are not known
    _shown: tuple[frozenset[str], Rights | None, int, frozenset[str]] | None = None

    def shown(self, matched: frozenset[str]) -> frozenset[str]:
        """Of the topics that its pattern matches, those that the member may describe."""
        rights = self.rights
        if rights is None:
            return matched
        known = self._shown
        if known is None or known[0] is not matched or known[1] is not rights or known[2] != rights.version:
            visible = frozenset(name for name in matched if rights.sees(DESCRIBE, TOPIC, name))
            known = self._shown = (matched, rights, rights.version, visible)
        return known[3]

    def shown_before_heartbeat(self, matched: frozenset[str], had: frozenset[str]) -> frozenset[str]:
        """As `shown` for a member with `is_loaded`: of the topics that its pattern matches, those that it `had`.

        The log says which topics match the pattern of several members, and not which of them each member may describe;
        but a member got partitions only of topics that its client might describe.
        """
        visible = matched & had
        self._shown = (matched, None, -1, visible)
        return visible

    def sees_other(self, matched: frozenset[str]) -> bool:
        """Whether the member may now describe other topics of `matched` than at the last call: its rights changed."""
        known = self._shown
        return known is not None and known[0] is matched and known[3] != self.shown(matched)

    @property
    def epoch(self) -> int:
        return self.current.epoch

    @property
    def is_classic(self) -> bool:
        return self.subscription.classic is not None
