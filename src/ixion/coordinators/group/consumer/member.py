"""A member of a consumer group."""

from __future__ import annotations

from dataclasses import dataclass, field

from ixion.coordinators.group.consumer.reconcile import Current


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassicSide:
    """What is remembered of a member that speaks the classic protocol (a group that is being migrated)."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """What a member says of itself and what it wants to read; replaced as a whole when that changes."""

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
        """Everything in it that is as long as the member likes, but for what it offers as a classic one."""
        others = (self.instance_id, self.rack_id, self.client_id, self.client_host, self.regex, self.assignor)
        return [*self.topics, *filter(None, others)]


@dataclass(slots=True, kw_only=True)
class ConsumerMember:
    member_id: str
    subscription: Subscription = field(default_factory=Subscription)
    current: Current = field(default_factory=Current)

    @property
    def epoch(self) -> int:
        return self.current.epoch

    @property
    def is_classic(self) -> bool:
        return self.subscription.classic is not None
