"""Whether there is room for what a member of a consumer group wants to be remembered.

Asked before anything is changed. A subscription that is too large for a record could not be stored, and whoever finds
that out by trying has to read the whole log again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ixion.coordinators.group.classic.memory import Memory
from ixion.coordinators.group.consumer.demand import bytes_of
from ixion.coordinators.group.consumer.group import ConsumerGroup
from ixion.coordinators.group.consumer.member import Subscription
from ixion.model.errors import ErrorCode, KafkaError

BESIDES: Final = 1_000  # bytes of a record, alone in a batch, besides the texts in it


class Room:
    def __init__(self, memory: Memory, most_bytes: Callable[[], int]) -> None:
        """`most_bytes` is what the log takes of a record."""
        self._memory = memory
        self._most_bytes = most_bytes

    def check(self, group: ConsumerGroup, member_id: str, wanted: Subscription) -> None:
        """KafkaError if not."""
        known = group.members.get(member_id)
        if known is not None and known.subscription == wanted:
            return
        size, most = stored_bytes(group.group_id, member_id, wanted), self._most_bytes()
        if size + BESIDES > most:
            raise KafkaError(
                ErrorCode.UNKNOWN_SERVER_ERROR, f"A subscription of {size} bytes; the log takes records of {most}."
            )
        more = bytes_of(member_id, wanted) - (0 if known is None else bytes_of(member_id, known.subscription))
        if more > 0 and not self._memory.has_bytes_for(more):
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "the groups of this broker hold all that they may")


def stored_bytes(group_id: str, member_id: str, subscription: Subscription) -> int:
    """In a record."""
    texts = sum(len(text.encode()) + 2 for text in (group_id, member_id, *subscription.texts()))
    protocols = () if subscription.classic is None else subscription.classic.protocols
    return texts + sum(len(name) + len(data) + 8 for name, data in protocols)
