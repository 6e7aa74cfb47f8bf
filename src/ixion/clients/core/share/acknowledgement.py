"""The acknowledgement of one record, and what became of it."""

from __future__ import annotations

from typing import Final, NamedTuple

from ixion._native import mypyc_attr
from ixion.clients.metadata import TopicPartition
from ixion.language.model.errors import KafkaError

GAP: Final = 0  # there is no record at that offset
ACCEPT: Final = 1
RELEASE: Final = 2
REJECT: Final = 3
RENEW: Final = 4
NAMES: Final = ("gap", "accept", "release", "reject", "renew")


@mypyc_attr(allow_interpreted_subclasses=True)
class Acknowledgement:
    """`is_done` once the broker has answered, or never will; `error` says why it has no effect."""

    def __init__(self, place: TopicPartition, offset: int, kind: int) -> None:
        self.place = place
        self.offset = offset
        self.kind = kind
        self.is_done = False
        self.error: KafkaError | None = None

    @property
    def name(self) -> str:
        """accept, release, reject or renew."""
        return NAMES[self.kind]

    def settle(self, error: KafkaError | None) -> None:
        if not self.is_done:
            self.is_done = True
            self.error = error


class Acknowledged(NamedTuple):
    """The outcome of acknowledgements of a range of offsets, for the callback of a share consumer."""

    topic: str
    partition: int
    first_offset: int
    last_offset: int
    kind: str  # accept, release, reject or renew
    error: KafkaError | None
