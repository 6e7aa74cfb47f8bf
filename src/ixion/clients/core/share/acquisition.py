"""The records that one fetch has acquired of one partition: locked for us, each until it is acknowledged.

    fresh     not handed out yet
    held      handed out, and not acknowledged
    missed    held when the lock was lost, until the caller hears that
    unsent    acknowledged, and to be sent to the broker

The lock of all of them ends at `locked_until_s`, counted from the arrival of the answer, so a little later than at the
broker. A renewal moves it. What is acknowledged after that fails at once: the broker has given the record away. All is
lost when the session ends, because the broker releases its records then.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from ixion.clients.core.connection import NEVER
from ixion.clients.core.consumer.errors import ConsumerUseError
from ixion.clients.core.share.acknowledgement import ACCEPT, GAP, REJECT, RELEASE, RENEW, Acknowledgement
from ixion.clients.core.share.errors import LockLostError
from ixion.clients.core.share.portion import Entry, Item
from ixion.clients.core.share.reading import Found, Range
from ixion.clients.metadata import TopicPartition
from ixion.clients.share.record import ShareRecord


class Acquisition:
    def __init__(
        self,
        owner: object,
        place: TopicPartition,
        topic_id: bytes,
        found: Found,
        lock_s: float,
        now_s: float,
        *,
        is_implicit: bool,
    ) -> None:
        """`lock_s` is 0 if the broker does not say how long it locks."""
        self.owner = owner  # a record must not be acknowledged by another consumer
        self.place = place
        self.topic_id = topic_id
        self.fresh: deque[ShareRecord] = deque()
        self.held: dict[int, None] = {}  # offsets, in the order of handing out
        self.missed: dict[int, None] = {}  # likewise, if they are accepted implicitly
        self.unsent: list[Item] = [
            *[Item(first, last, GAP, is_ours=True) for first, last in found.gaps],
            *[Item(first, last, REJECT) for first, last in found.damaged],
            *[Item(first, last, RELEASE) for first, last in found.unread],
        ]
        self.renewals: list[Item] = []  # unsent
        self.flying = 0  # offsets whose acknowledgement is in flight, or waits to be sent again
        self.lost: str | None = None  # why its records are not ours any more
        self.locked_until_s = NEVER
        self.renew_s = NEVER  # when an automatic renewal is due
        self.lock_s = lock_s
        self._is_implicit = is_implicit  # records are accepted by the next poll
        self._renewed: dict[int, float] = {}  # offsets that the caller has renewed: their own ends of the lock
        self.lock_from(now_s, lock_s)
        for record, deliveries in found.records:
            self.fresh.append(ShareRecord(record, deliveries, self))

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to be done for it."""
        return not (self.fresh or self.held or self.missed or self.unsent or self.renewals or self.flying)

    @property
    def has_unsent(self) -> bool:
        return bool(self.unsent or self.renewals)

    def lock_from(self, since_s: float, lock_s: float) -> None:
        """All of it is locked for that long."""
        if lock_s > 0:
            self.lock_s = lock_s
            self.locked_until_s = since_s + lock_s
            self.renew_s = since_s + lock_s / 2

    def renewed(self, offset: int, since_s: float, lock_s: float) -> None:
        """One record is."""
        if lock_s > 0 and offset in self.held:
            self._renewed[offset] = since_s + lock_s

    def has_lock(self, offset: int, now_s: float) -> bool:
        return self.lost is None and now_s < max(self.locked_until_s, self._renewed.get(offset, 0.0))

    def hand_out(self, now_s: float) -> ShareRecord | None:
        """The next fresh record; those whose lock has ended are dropped."""
        if self.fresh and not self.has_lock(-1, now_s):
            self.fresh.clear()
        if not self.fresh:
            return None
        record = self.fresh.popleft()
        self.held[record.offset] = None
        return record

    def give_back(self, record: ShareRecord) -> None:
        """A record that was not handed out after all; the last one first."""
        if record.offset in self.held:
            del self.held[record.offset]
            self.fresh.appendleft(record)

    def accept_held(self) -> list[Range]:
        """Accept everything that was handed out. What is not ours any more."""
        self.unsent += [Item(first, last, ACCEPT) for first, last in ranges_of(self.held)]
        self.held.clear()
        self._renewed.clear()
        missed = ranges_of(self.missed)
        self.missed.clear()
        return missed

    def release_fresh(self) -> None:
        offsets = [record.offset for record in self.fresh]
        self.fresh.clear()
        if self.lost is None:
            self.unsent += [Item(first, last, RELEASE, is_ours=True) for first, last in ranges_of(offsets)]

    def acknowledge(self, result: Acknowledgement, delay_ms: int, now_s: float) -> None:
        """Settles it at once if the record is not ours any more. ConsumerUseError if it was acknowledged before."""
        offset = result.offset
        if offset not in self.held and self.lost is None:
            raise ConsumerUseError(f"the record at offset {offset} of {self.place} was acknowledged already")
        if not self.has_lock(offset, now_s):
            if result.kind != RENEW:  # who only wanted more time may still acknowledge it, and hears the same
                self.held.pop(offset, None)
                self.missed.pop(offset, None)
            reason = self.lost or "its lock has ended"
            result.settle(LockLostError(f"the record at offset {offset} of {self.place}", reason))
            return
        if result.kind == RENEW:
            self.renewals.append(Item(offset, offset, RENEW, result=result))
            return
        del self.held[offset]
        self.unsent.append(Item(offset, offset, result.kind, delay_ms, result))

    def renew_all(self) -> None:
        """Ask for a new lock for all that is fresh or held."""
        self.renew_s = NEVER  # until that is answered
        offsets = sorted([*self.held, *[record.offset for record in self.fresh]])
        self.renewals += [Item(first, last, RENEW, is_ours=True) for first, last in ranges_of(offsets)]

    def take_unsent(self, now_s: float) -> tuple[list[Entry], list[Entry]]:
        """What must be sent, without and with renewals; then what is too late to be sent."""
        sent: list[Entry] = []
        late: list[Entry] = []
        for item in [*self.unsent, *self._needed_renewals()]:
            has_lock = self.lost is None and (now_s < self.locked_until_s or self.has_lock(item.first, now_s))
            (sent if has_lock else late).append(Entry(item, self))
        self.unsent = []
        self.renewals = []
        self.flying += sum([entry.item.size for entry in sent])
        return sent, late

    def _needed_renewals(self) -> list[Item]:
        """Without what was acknowledged since: a broker takes one acknowledgement of a record in a request."""
        if self.lost is not None:
            return self.renewals
        kept = {*self.held, *[record.offset for record in self.fresh]}
        needed: list[Item] = []
        for item in self.renewals:
            result = item.result
            if result is None:
                offsets = [offset for offset in range(item.first, item.last + 1) if offset in kept]
                needed += [item._replace(first=first, last=last) for first, last in ranges_of(offsets)]
            elif item.first in kept:
                needed.append(item)
            else:
                result.settle(None)
        return needed

    @property
    def lapses_s(self) -> float:
        """When nothing of it will be ours any more; NEVER while an answer is awaited or something is to be sent."""
        if self.lost is not None or self.flying or self.has_unsent:
            return NEVER
        return max([self.locked_until_s, *self._renewed.values()])

    def lapse(self, now_s: float) -> None:
        """Forget what nobody acknowledged in time, so that it takes no memory."""
        if now_s >= self.lapses_s:
            self.lose("its lock has ended")

    def lose(self, reason: str) -> None:
        self.lost = reason
        self.fresh.clear()
        if self._is_implicit:
            self.missed.update(self.held)
        self.held.clear()
        self._renewed.clear()
        self.renew_s = NEVER


def ranges_of(offsets: Iterable[int]) -> list[Range]:
    """Ranges of ascending offsets; of others, as many as it takes."""
    found: list[Range] = []
    for offset in offsets:
        if found and found[-1][1] + 1 == offset:
            found[-1] = (found[-1][0], offset)
        else:
            found.append((offset, offset))
    return found
