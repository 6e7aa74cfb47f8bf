"""Bounds on the memory that groups take for their members.

Any client can make a broker remember protocols and subscriptions (a request carries up to 100 MB), and member ids that
no member ever uses. `classic.rules.has_memory_for` bounds one classic group. This module bounds all groups together:

    memory    256 MiB: a protocol of a classic member counts its name, its metadata and 100 bytes, and a
              member its names; a consumer group and its members count everything they hold (see `consumer.demand`),
              a streams group its topology and its tasks, too
    ids       128 MiB: member ids that wait for their member, of 2 KB each at most

Beyond that, new members get COORDINATOR_NOT_AVAILABLE and retry: sessions end and ids expire, which makes room. (Kafka
sets no bound.) A member of a consumer group is also bounded by the size of one record. That is checked before anything
changes, because after a change that cannot be stored the whole partition is loaded again. And a member names at most
`MOST_TOPICS` topics, because its subscription is processed in one turn of the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

from ixion.broker.coordinators.group.classic.group import ClassicGroup
from ixion.broker.coordinators.group.classic.member import Protocols, size_of
from ixion.broker.coordinators.group.consumer.demand import bytes_of
from ixion.broker.coordinators.group.consumer.group import ConsumerGroup
from ixion.broker.coordinators.group.consumer.member import Subscription
from ixion.language.model.errors import ErrorCode, KafkaError

MOST_BYTES: Final = 256 << 20
ID_BYTES: Final = 2_000  # the id, up to 300 characters of 4 bytes, and the operation that waits for its member
MOST_IDS: Final = (128 << 20) // ID_BYTES
MOST_TOPICS: Final = 20_000  # named by one member, which take some 30 ms; a pattern may match more
BESIDES: Final = 1_000  # overhead of a record and of the batch around it, in bytes


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
        """Count the group again after a change."""
        self.hold(group.group_id, group.metadata_bytes, len(group.pending_members))

    def forget(self, group: ClassicGroup) -> None:
        self.hold(group.group_id, 0)

    def hold(self, group_id: str, held_bytes: int, ids: int = 0) -> None:
        """Set what the group holds."""
        before_bytes, before_ids = self._noted.pop(group_id, (0, 0))
        self.held_bytes += held_bytes - before_bytes
        self.ids += ids - before_ids
        if held_bytes or ids:
            self._noted[group_id] = (held_bytes, ids)

    def has_room_for(self, group: ClassicGroup, member_id: str, protocols: Protocols) -> bool:
        """Whether this member may join. A member of the group always may; one with an id needs no second id."""
        if member_id in group.members:
            return True
        has_id = bool(member_id) or self.ids < self.most_ids
        return has_id and self._has_bytes_for(size_of(protocols))

    def check_offer(self, protocols: Protocols) -> None:
        """KafkaError if the protocols of a classic member do not fit into one record."""
        size, most = stored_offer_bytes(protocols), self._record_bytes()
        if size + BESIDES > most:
            raise KafkaError(
                ErrorCode.UNKNOWN_SERVER_ERROR, f"a subscription of {size} bytes does not fit into a record of {most}"
            )

    def check_subscription(self, group: ConsumerGroup, member_id: str, wanted: Subscription) -> None:
        """KafkaError if there is no room for the subscription of a member of a consumer group."""
        known = group.members.get(member_id)
        if known is not None and known.subscription == wanted:
            return
        check_topics(len(wanted.topics))
        size, most = stored_bytes(group.group_id, member_id, wanted), self._record_bytes()
        if size + BESIDES > most:
            raise KafkaError(
                ErrorCode.UNKNOWN_SERVER_ERROR, f"a subscription of {size} bytes does not fit into a record of {most}"
            )
        more = bytes_of(member_id, wanted) - (0 if known is None else bytes_of(member_id, known.subscription))
        # The topics that a new pattern matches are counted once they are known, and may then exceed the bound.
        grows = more > 0 or (bool(wanted.regex) and wanted.regex not in group.regexes)
        if grows and not self._has_bytes_for(max(more, 0)):
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "the groups of this broker have used up their memory")

    def check_texts(self, texts: Collection[str], more: int) -> None:
        """KafkaError if these names of a member do not fit into a record, or `more` bytes into memory."""
        self.check_record("subscription", sum(map(len, map(str.encode, texts))) + 2 * len(texts), more)

    def check_record(self, what: str, size: int, more: int) -> None:
        """KafkaError if a record of `size` bytes is too large, or `more` bytes of memory are too many."""
        most = self._record_bytes()
        if size + BESIDES > most:
            raise KafkaError(
                ErrorCode.UNKNOWN_SERVER_ERROR, f"a {what} of {size} bytes does not fit into a record of {most}"
            )
        if more > 0 and not self._has_bytes_for(more):
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "the groups of this broker have used up their memory")

    def _has_bytes_for(self, more: int) -> bool:
        return self.held_bytes + more <= self.most_bytes


def check_topics(count: int) -> None:
    if count > MOST_TOPICS:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"a member may name {MOST_TOPICS} topics, not {count}; a pattern may match any number",
        )


def stored_bytes(group_id: str, member_id: str, subscription: Subscription) -> int:
    """Bytes that the subscription takes in a record."""
    texts = [group_id, member_id, *subscription.texts()]
    protocols = () if subscription.classic is None else subscription.classic.protocols
    return sum(map(len, map(str.encode, texts))) + 2 * len(texts) + stored_offer_bytes(protocols)


def stored_offer_bytes(protocols: Protocols) -> int:
    return sum(len(name) + len(data) + 8 for name, data in protocols)
