"""A share consumer without I/O: `tick` stays in the group, fetches while the caller polls, and sends acknowledgements.

    machine = ShareMachine(bootstrap, group, ShareSettings(), random, now_s)
    machine.subscribe(["jobs"], now_s)
    machine.enter(500, until_s, now_s)      # the caller polls; what it got before is accepted, if that is implicit
    machine.tick(now_s)                     # then write what the connections have unsent
    machine.take(500, now_s)                # records, each locked for us
    machine.exit(now_s)
    machine.acknowledge(record, Acknowledgement(…), 0, now_s)

A caller that does not poll for `max.poll.interval.ms` is taken for stuck: the member leaves, records that it did not
get are released, and locks are renewed no more. What it got before can still be acknowledged while the lock lasts. The
next poll joins again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

from ixion.clients.address import Address
from ixion.clients.core.backoff import Random
from ixion.clients.core.checks import check_most, check_topic
from ixion.clients.core.client import Client
from ixion.clients.core.consumer.coordinator import Coordinator
from ixion.clients.core.consumer.errors import ConsumerUseError
from ixion.clients.core.security import PLAINTEXT, Security
from ixion.clients.core.share.acknowledgement import ACCEPT, NAMES, Acknowledged, Acknowledgement
from ixion.clients.core.share.errors import LockLostError
from ixion.clients.core.share.fetcher import ShareFetcher
from ixion.clients.core.share.member import ShareMember
from ixion.clients.core.share.portion import Entry, what
from ixion.clients.core.share.settings import IMPLICIT, ShareSettings, client_settings
from ixion.clients.faults import DisconnectedError
from ixion.clients.metadata import TopicPartition
from ixion.clients.share.record import ShareRecord
from ixion.language.model.errors import KafkaError


class ShareMachine:
    def __init__(
        self,
        bootstrap: Sequence[Address],
        group: str,
        settings: ShareSettings,
        random: Random,
        now_s: float,
        *,
        security: Security = PLAINTEXT,
    ) -> None:
        self.settings = settings
        self.client = Client(bootstrap, client_settings(settings, security), random)
        self.coordinator = Coordinator(self.client, group)
        self.member = ShareMember(self.client, self.coordinator, settings.client_rack or None)
        self.is_implicit = settings.share_acknowledgement_mode == IMPLICIT
        self.faults: deque[KafkaError] = deque()  # for the caller
        self.told: deque[Acknowledged] = deque()  # outcomes, for its callback
        self.keeps_told = False  # whether there is a callback
        self.settled = 0  # acknowledgements that have an outcome
        self.first_fault: KafkaError | None = None  # of acknowledgements, since the last commit
        self.records = 0  # handed out so far
        self.fetcher = ShareFetcher(self.client, group, self.member.member_id, settings, self._tell, self._settle)
        self._max_poll_s = settings.max_poll_interval_ms / 1000
        self._is_inside = False  # the caller polls
        self._polled_s = now_s
        self._waiting = 0  # callers that wait for acknowledgements

    # What to read

    def subscribe(self, topics: Sequence[str], now_s: float) -> None:
        """Replaces the topics before. KafkaError, TypeError or ValueError for names that cannot be."""
        if isinstance(topics, str) or not topics:
            raise ValueError(f"topics must be a list of names, not {topics!r}")
        for topic in topics:
            check_topic(topic)
        self._polled_s = now_s
        self.member.subscribe(sorted(set(topics)))

    def unsubscribe(self, now_s: float) -> None:
        """Leave the group. Records that were handed out can still be acknowledged."""
        self._part(now_s)
        self.member.topics = ()

    # The caller

    def check_poll(self, timeout_s: float) -> None:
        """A negative timeout, or nothing to read."""
        if not timeout_s >= 0:
            raise ValueError(f"a timeout must not be negative: {timeout_s:g}")
        if not self.member.topics:
            raise ConsumerUseError("there is nothing to read: subscribe() to topics")

    def enter(self, most: int, until_s: float, now_s: float) -> None:
        """The caller polls for at most so many records, until then."""
        check_most(most)
        self._is_inside = True
        if self.client.denied is not None:
            self.client.denied = None
            self.client.cluster.mark_stale()
        if self.is_implicit:
            self.accept_held(now_s)
        self.fetcher.most = most
        self.fetcher.until_s = until_s
        self.fetcher.renews = self.settings.auto_renew

    def exit(self, now_s: float) -> None:
        self._is_inside = False
        self._polled_s = now_s
        self.fetcher.most = 0

    def take(self, most: int, now_s: float) -> list[ShareRecord]:
        """Records that are here already; they are held until they are acknowledged."""
        found: list[ShareRecord] = []
        for acquisition in self.fetcher.acquisitions:
            while len(found) < most and (record := acquisition.hand_out(now_s)) is not None:
                found.append(record)
        self.records += len(found)
        return found

    def take_next(self, now_s: float) -> list[ShareRecord]:
        """The next record that is here already. The one before is accepted, if that is implicit."""
        if self.is_implicit:
            self.accept_held(now_s)
        self._polled_s = now_s
        return self.take(1, now_s)

    def give_back(self, records: Sequence[ShareRecord]) -> None:
        """The caller did not get these after all."""
        for record in reversed(records):
            record.acquisition.give_back(record)
        self.records -= len(records)

    def check(self) -> None:
        """Raise faults that the caller must see."""
        if self.client.denied is not None:
            raise self.client.denied
        fault, self.member.fault = self.member.fault, None
        if fault is not None:
            raise fault
        if self.faults:
            raise self.faults.popleft()

    @property
    def has_news(self) -> bool:
        """Whether poll has something to do."""
        return bool(
            self.faults
            or self.told
            or self.member.fault is not None
            or self.client.denied is not None
            or self.fetcher.has_fresh
        )

    # Acknowledgements

    def acknowledge(self, record: ShareRecord, result: Acknowledgement, delay_ms: int, now_s: float) -> None:
        """ConsumerUseError if it was acknowledged already, or is a record of another consumer."""
        if record.acquisition.owner is not self.fetcher:
            raise ConsumerUseError("this record came from another consumer, which must acknowledge it")
        record.acquisition.acknowledge(result, delay_ms, now_s)
        if result.is_done and result.error is not None:
            self._note(result.place, result.offset, result.offset, result.kind, result.error)
        self.fetcher.noted(now_s)

    def accept_held(self, now_s: float) -> None:
        """Accept everything that was handed out and not acknowledged. What was lost meanwhile fails."""
        for acquisition in self.fetcher.acquisitions:
            place, reason = acquisition.place, acquisition.lost or ""
            for first, last in acquisition.accept_held():
                self._note(place, first, last, ACCEPT, LockLostError(what(place, first, last), reason))
        self.fetcher.noted(now_s)

    @property
    def has_unsettled(self) -> bool:
        """Whether an acknowledgement has no outcome yet."""
        return self.fetcher.has_unsettled

    def hurry(self, now_s: float) -> None:
        """A caller waits for outcomes: acknowledgements are sent at once, until `relax`."""
        del now_s
        self._waiting += 1
        self.fetcher.is_hurried = True

    def relax(self) -> None:
        self._waiting -= 1
        self.fetcher.is_hurried = self._waiting > 0

    def take_first_fault(self) -> KafkaError | None:
        """The first failed acknowledgement since the last call."""
        fault, self.first_fault = self.first_fault, None
        return fault

    # Time

    def tick(self, now_s: float) -> None:
        """Deliver answers, do what is due, send what can be sent."""
        self.client.tick(now_s)
        member = self.member
        self.client.cluster.want_only({*member.topics, *[place.topic for place in self.fetcher.assigned]}, now_s)
        if not self.fetcher.is_closing:
            if not self._is_wanted(now_s) and member.is_wanted:
                self._part(now_s)
            if member.has_lost:
                member.has_lost = False
                self.fetcher.assign([])
            if member.topics and not member.is_wanted and self._is_wanted(now_s):
                member.begin(())
        member.tick(now_s)
        if member.assignment is not None:
            assignment, member.assignment = member.assignment, None
            self.fetcher.assign(assignment)
        self.fetcher.tick(now_s)
        self.client.tick(now_s)  # topics that were wanted just now

    @property
    def wake_s(self) -> float:
        """When `tick` has something to do even if no socket is ready."""
        wake_s = min(self.client.wake_s, self.member.wake_s, self.fetcher.wake_s)
        if not self._is_inside and self.member.is_wanted and not self.fetcher.is_closing:
            wake_s = min(wake_s, self._polled_s + self._max_poll_s)
        return wake_s

    def begin_to_close(self, now_s: float, accepts: bool) -> None:
        """Send what is left, close the sessions and leave; `is_closing` until that is done."""
        if accepts and self.is_implicit:
            self.accept_held(now_s)
        self.fetcher.is_closing = True
        self.fetcher.assign([])
        self.member.leave(now_s, "the consumer was closed")

    @property
    def is_closing(self) -> bool:
        """Whether brokers have still to hear or to answer something. One that cannot be reached is not waited for."""
        if self.member.is_leaving:
            return True
        return any(session.is_open or session.is_flying for session in self.fetcher.sessions.values())

    def close(self, now_s: float) -> None:
        fault = DisconnectedError("the consumer was closed")
        self.client.close(fault, now_s)
        self.fetcher.lose_all(fault, now_s)

    unacknowledged: Final = 0  # it sends no records

    def let_go(self) -> bool:
        """Called when the client was garbage-collected: its connections end, and with them its locks."""
        return True

    def recover(self, now_s: float) -> None:
        """After an interrupt in the middle of something: drop all connections and begin anew."""
        fault = DisconnectedError("interrupted by an exception")
        self.client.drop_connections(fault, now_s)
        self.fetcher.lose_all(fault, now_s)
        self.coordinator.forget_question()
        self.member.forget_question()

    @property
    def trouble(self) -> KafkaError | None:
        """Why no records arrive at the moment, if brokers are the reason."""
        if any(machine.ready for machine in self.client.machines):
            return self.fetcher.trouble
        return self.client.fault

    def metrics(self) -> dict[str, int]:
        """Counters and gauges at this moment, by Kafka's names where it has one."""
        acquisitions = self.fetcher.acquisitions
        return {
            "records-consumed-total": self.records,
            "acknowledgements-total": self.settled,
            "records-held": sum([len(each.held) for each in acquisitions]),
            "records-buffered": sum([len(each.fresh) for each in acquisitions]),
            "request-total": self.fetcher.requests,
            "assigned-partitions": len(self.fetcher.assigned),
            "connection-count": len(self.client.machines),
        }

    def _is_wanted(self, now_s: float) -> bool:
        """Whether the caller still polls."""
        return bool(self.member.topics) and (self._is_inside or now_s - self._polled_s < self._max_poll_s)

    def _part(self, now_s: float) -> None:
        """Leave the group; what the caller did not get is released."""
        self.member.leave(now_s, "the consumer does not poll")
        self.member.has_lost = False
        self.fetcher.assign([])
        self.fetcher.renews = False
        for acquisition in self.fetcher.acquisitions:
            acquisition.release_fresh()
        self.fetcher.noted(now_s)

    def _settle(self, entry: Entry, fault: KafkaError | None) -> None:
        """An acknowledgement has its outcome."""
        item = entry.item
        if item.result is not None:
            item.result.settle(fault)
        if not item.is_ours:
            self._note(entry.acquisition.place, item.first, item.last, item.kind, fault)

    def _note(self, place: TopicPartition, first: int, last: int, kind: int, fault: KafkaError | None) -> None:
        self.settled += last - first + 1
        if fault is not None and self.first_fault is None:
            self.first_fault = fault
        if self.keeps_told:
            self.told.append(Acknowledged(place.topic, place.partition, first, last, NAMES[kind], fault))

    def _tell(self, fault: KafkaError) -> None:
        """Keep a fault for the caller, each distinct fault once."""
        if all(fault.message != known.message for known in self.faults):
            self.faults.append(fault)
