"""A member of a streams group: a thread of a Kafka Streams application."""

from __future__ import annotations

from dataclasses import dataclass, field
from sys import getsizeof
from typing import Final

from ixion.broker.coordinators.group.streams.reconcile import Current

BYTES_PER_MEMBER: Final = 1_500
BYTES_PER_TEXT: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Who a member is; replaced as a whole when anything changes."""

    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topology_epoch: int = -1
    process_id: str = ""
    endpoint: tuple[str, int] | None = None  # where its state can be asked for
    tags: tuple[tuple[str, str], ...] = ()

    def texts(self) -> list[str]:
        """All texts whose length the member chooses."""
        others = (self.instance_id, self.rack_id, self.client_id, self.client_host, self.process_id)
        host = () if self.endpoint is None else (self.endpoint[0],)
        return [*filter(None, others), *host, *(text for tag in self.tags for text in tag)]


@dataclass(slots=True, kw_only=True)
class StreamsMember:
    member_id: str
    profile: Profile = field(default_factory=Profile)
    current: Current = field(default_factory=Current)

    @property
    def epoch(self) -> int:
        return self.current.epoch


def bytes_of(member_id: str, profile: Profile) -> int:
    texts = profile.texts()
    return BYTES_PER_MEMBER + getsizeof(member_id) + sum(map(getsizeof, texts)) + len(texts) * BYTES_PER_TEXT
