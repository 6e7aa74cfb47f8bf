"""What a member says about records that it has acquired, and what a share partition makes of it."""

from __future__ import annotations

from typing import Final, NamedTuple

from ixion.language.model.errors import ErrorCode, KafkaError

GAP: Final = 0  # there is no such record: archived
ACCEPT: Final = 1
RELEASE: Final = 2  # to be delivered again
REJECT: Final = 3  # never to be delivered again
RENEW: Final = 4  # the member needs more time

NAMES: Final = ("gap", "accept", "release", "reject", "renew")


class Acknowledgement(NamedTuple):
    """One batch of a request: one type for all of its offsets, or one for each."""

    first: int
    last: int
    types: tuple[int, ...]
    delay_ms: int = 0  # of what is released: not to be delivered again before (our own clients)

    def type_of(self, offset: int) -> int:
        return self.types[0] if len(self.types) == 1 else self.types[offset - self.first]


class Change(NamedTuple):
    """Offsets with a new state, which is stored before it counts."""

    first: int
    last: int
    state: int
    deliveries: int
    due_ms: int = 0


def check(batches: list[Acknowledgement], renews: bool) -> None:
    """KafkaError (INVALID_REQUEST) for batches that no client may send. `renews`: whether RENEW is allowed."""
    before = -1
    for batch in batches:
        if batch.first <= before or batch.last < batch.first:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"offsets {batch.first} to {batch.last} are not in order")
        before = batch.last
        if len(batch.types) not in {1, batch.last - batch.first + 1}:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"{len(batch.types)} types for offsets {batch.first} to {batch.last}",
            )
        for kind in set(batch.types):
            if not GAP <= kind <= (RENEW if renews else REJECT):
                raise KafkaError(ErrorCode.INVALID_REQUEST, f"{kind} is no type of acknowledgement here")
