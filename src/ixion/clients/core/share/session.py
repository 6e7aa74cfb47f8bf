"""A share session with one broker: which partitions it knows that we want, and what it has acquired for us.

    epoch 0    t0 t1             opens the session: all partitions are named
    epoch 1    accept 5..9       t0 and t1 are still wanted; acknowledgements ride along
    epoch 2    t2, forget t0
    epoch -1                     closes it, and releases what was not acknowledged

The broker counts with us and takes one request of a session at a time. A session belongs to its connection: when that
ends, or when both sides disagree about the epoch, the broker releases all that it had acquired for us. Then the next
fetch opens a new session, and what was not acknowledged before is lost: by now another member may have it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Final

from ixion.clients.core.connection import NEVER, ConnectionMachine
from ixion.clients.core.share.acquisition import Acquisition
from ixion.clients.core.share.portion import Entry, Key, Portion
from ixion.clients.metadata import TopicPartition

OPENING: Final = 0
CLOSING: Final = -1
LAST_EPOCH: Final = 2**31 - 1

Ids = dict[TopicPartition, bytes]  # topic ids


class ShareSession:
    def __init__(self, node_id: int) -> None:
        self.node_id = node_id
        self.epoch = OPENING
        self.line: ConnectionMachine | None = None  # the connection that it belongs to
        self.is_flying = False  # a request is in flight
        self.is_fetching = False  # and it is a fetch
        self.acquisitions: list[Acquisition] = []
        self.again: deque[Portion] = deque()  # acknowledgements to be sent again
        self.again_s = 0.0  # not before
        self.due_s = NEVER  # when unsent acknowledgements are sent, if no fetch takes them along
        self.not_before_s = 0.0  # after a fault
        self.failures = 0
        self._known: Ids = {}

    @property
    def is_open(self) -> bool:
        return self.epoch != OPENING

    def is_over(self, now_s: float) -> bool:
        """Whether nothing is left to be done with it, nor a pause to be kept."""
        return now_s >= self.not_before_s and not (self.is_open or self.is_flying or self.acquisitions or self.again)

    @property
    def knows_some(self) -> bool:
        """Whether the broker believes that we want something."""
        return bool(self._known)

    @property
    def has_unsent(self) -> bool:
        return bool(self.again) or any(each.has_unsent for each in self.acquisitions)

    @property
    def has_renewals(self) -> bool:
        return any(each.renewals for each in self.acquisitions)

    def change_to(self, wanted: Mapping[TopicPartition, bytes]) -> tuple[Ids, Ids]:
        """What the next fetch must name, and what it must forget, so that the session is exactly `wanted`."""
        known = {} if self.epoch == OPENING else self._known
        added = {place: topic_id for place, topic_id in wanted.items() if known.get(place) != topic_id}
        gone = {place: topic_id for place, topic_id in known.items() if wanted.get(place) != topic_id}
        self._known = dict(wanted)
        return added, gone

    def advance(self) -> None:
        """The broker has carried out a request."""
        self.epoch = 1 if self.epoch == LAST_EPOCH else self.epoch + 1
        self.failures = 0

    def end(self) -> None:
        """The broker has no such session any more."""
        self.epoch = OPENING
        self.line = None
        self._known = {}

    def take_unsent(self, now_s: float) -> tuple[dict[Key, Portion], list[Entry]]:
        """The acknowledgements of the next request, then those that are too late. A portion that is sent again goes
        without anything else of its partition, which might be to blame."""
        portions: dict[Key, Portion] = {}
        late: list[Entry] = []
        waiting: deque[Portion] = deque()
        blocked: set[Key] = set()
        for portion in self.again:
            if now_s < self.again_s or portion.key in portions:
                waiting.append(portion)
                blocked.add(portion.key)
            else:
                portions[portion.key] = portion
        self.again = waiting
        entries: dict[Key, list[Entry]] = {}
        for acquisition in self.acquisitions:
            key = (acquisition.topic_id, acquisition.place.partition)
            if acquisition.has_unsent and key not in portions and key not in blocked:
                sent, missed = acquisition.take_unsent(now_s)
                late += missed
                if sent:
                    entries.setdefault(key, []).extend(sent)
        for (topic_id, number), some in entries.items():
            place = some[0].acquisition.place
            portions[topic_id, number] = Portion(place, topic_id, some)
        return portions, late

    def tidy(self, now_s: float) -> None:
        """Drop acquisitions of which nothing is left."""
        for acquisition in self.acquisitions:
            acquisition.lapse(now_s)
        self.acquisitions = [each for each in self.acquisitions if not each.is_over]
