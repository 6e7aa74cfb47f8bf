"""What groups may hold in memory for their members.

Any client can make a broker remember things: what members offer or subscribe to (a request carries up to 100 MB), and
member ids that were given out and never used. One classic group is bounded by `classic.rules.has_memory_for`. All
groups together are bounded here:

    offers    256 MiB: a protocol counts its name, its metadata and 100 bytes for being there; a consumer group and its
              members count all that they take (see `consumer.demand`)
    ids       100,000, of some 800 bytes each

Beyond that, new members get COORDINATOR_NOT_AVAILABLE, on which clients try again: sessions end, ids expire, and there
is room again. (Kafka sets no bound.) One member of a consumer group is bounded by the size of a record as well. That is
checked before anything changes, because a change that cannot be stored costs a load of the whole partition. And it
names at most `MOST_TOPICS` topics, because its subscription is looked at in one turn of the loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ixion.coordinators.group.classic.group import ClassicGroup
from ixion.coordinators.group.classic.member import Protocols, size_of
from ixion.coordinators.group.consumer.demand import bytes_of
from ixion.coordinators.group.consumer.group import ConsumerGroup
from ixion.coordinators.group.consumer.member import Subscription
from ixion.model.errors import ErrorCode, KafkaError

MOST_BYTES: Final = 256 << 20
MOST_IDS: Final = 100_000
MOST_TOPICS: Final = 20_000  # named by one member; a pattern may match more. Looking at so many takes some 30 ms.
BESIDES: Final = 1_000  # bytes of a record, alone in a batch, besides the texts in it


class Bounds:
    def __init__(self, record_bytes: Callable[[], int]) -> None:
        """`record_bytes` is the size of the largest record that the log takes."""
        self.most_bytes = MOST_BYTES
        self.most_ids = MOST_IDS
        self.held_bytes = 0
        self.ids = 0
        self._record_bytes = record_bytes
        self._noted: dict[str, tuple[int, int]] = {}  # by group id: bytes, ids

    def note(self, group: ClassicGroup) -> None:
        """The group has changed."""
        self.hold(group.group_id, group.metadata_bytes, len(group.pending_members))

    def forget(self, group: ClassicGroup) -> None:
        self.hold(group.group_id, 0)

    def hold(self, group_id: str, held_bytes: int, ids: int = 0) -> None:
        """From now on the group holds this much."""
        before_bytes, before_ids = self._noted.pop(group_id, (0, 0))
        self.held_bytes += held_bytes - before_bytes
        self.ids += ids - before_ids
        if held_bytes or ids:
            self._noted[group_id] = (held_bytes, ids)

    def has_room_for(self, group: ClassicGroup, member_id: str, protocols: Protocols) -> bool:
        """Whether this member may join. One that is in the group, or has been given an id, takes no further memory."""
        if member_id in group.members:
            return True
        has_id = bool(member_id) or self.ids < self.most_ids
        return has_id and self._has_bytes_for(size_of(protocols))

    def check_offer(self, protocols: Protocols) -> None:
        """KafkaError if no record can hold the protocols of a classic member; the protocols are not read then."""
        size, most = stored_offer_bytes(protocols), self._record_bytes()
        if size + BESIDES > most:
            raise KafkaError(
                ErrorCode.UNKNOWN_SERVER_ERROR, f"A subscription of {size} bytes; the log takes records of {most}."
            )

    def check_subscription(self, group: ConsumerGroup, member_id: str, wanted: Subscription) -> None:
        """KafkaError if there is no room for what a member of a consumer group wants to be remembered."""
        known = group.members.get(member_id)
        if known is not None and known.subscription == wanted:
            return
        check_topics(len(wanted.topics))
        size, most = stored_bytes(group.group_id, member_id, wanted), self._record_bytes()
        if size + BESIDES > most:
            raise KafkaError(
                ErrorCode.UNKNOWN_SERVER_ERROR, f"A subscription of {size} bytes; the log takes records of {most}."
            )
        more = bytes_of(member_id, wanted) - (0 if known is None else bytes_of(member_id, known.subscription))
        # What a new pattern matches is not known yet; it is counted when it is, and may exceed the bound once.
        grows = more > 0 or (bool(wanted.regex) and wanted.regex not in group.regexes)
        if grows and not self._has_bytes_for(max(more, 0)):
            raise KafkaError(
                ErrorCode.COORDINATOR_NOT_AVAILABLE, "the groups of this broker hold as much memory as they may"
            )

    def _has_bytes_for(self, more: int) -> bool:
        return self.held_bytes + more <= self.most_bytes


def check_topics(count: int) -> None:
    if count > MOST_TOPICS:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"A member may name {MOST_TOPICS} topics, not {count}. A pattern may match any number of them.",
        )


def stored_bytes(group_id: str, member_id: str, subscription: Subscription) -> int:
    """In a record."""
    texts = [group_id, member_id, *subscription.texts()]
    protocols = () if subscription.classic is None else subscription.classic.protocols
    return sum(map(len, map(str.encode, texts))) + 2 * len(texts) + stored_offer_bytes(protocols)


def stored_offer_bytes(protocols: Protocols) -> int:
    return sum(len(name) + len(data) + 8 for name, data in protocols)
