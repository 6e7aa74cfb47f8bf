"""A consumer without I/O: `tick` fetches, finds positions and stays in the group; the caller takes records.

    machine = ConsumerMachine(bootstrap, group, ConsumerSettings(), random, now_s, wall_ms=…)
    machine.assign([place])                 # or: subscribe, and the duties of `next_duty`
    machine.tick(now_s)                     # then write what the connections have unsent
    machine.wake_s                          # when to tick again if no socket stirs
    machine.has_news                        # whether poll has something to do
    machine.buffer.take(500)                # records; positions move behind them

A caller waits for an `Errand`, which is started here and ticked until it is done.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from ixion.clients.address import Address
from ixion.clients.core.backoff import Random
from ixion.clients.core.checks import check_long, check_place, check_topic
from ixion.clients.core.client import Client
from ixion.clients.core.connection import NEVER
from ixion.clients.core.consumer.buffer import Buffer
from ixion.clients.core.consumer.commits import Commit, Committed, OffsetAndMetadata, OnCommit, as_offset
from ixion.clients.core.consumer.coordinator import Coordinator
from ixion.clients.core.consumer.errand import Errand
from ixion.clients.core.consumer.errors import CommitFailedError, ConsumerUseError, RebalanceInProgressError
from ixion.clients.core.consumer.fetcher import Fetcher
from ixion.clients.core.consumer.lookups import OffsetLookup
from ixion.clients.core.consumer.membership import check_pattern, new_member
from ixion.clients.core.consumer.positions import Positions
from ixion.clients.core.consumer.reset import read_policy
from ixion.clients.core.consumer.settings import ConsumerSettings, client_settings
from ixion.clients.core.consumer.subscription import EARLIEST, LATEST, Subscription
from ixion.clients.core.security import PLAINTEXT, Security
from ixion.clients.faults import DisconnectedError, TimedOutError
from ixion.clients.log import log_refused_commit, log_uncommitted
from ixion.clients.metadata import TopicPartition
from ixion.language.model.errors import KafkaError

if TYPE_CHECKING:
    from ixion.clients.core.consumer.group import Duty, Group
    from ixion.clients.core.producer.group_offsets import GroupMetadata

TURN_S: Final = 0.005  # longest time between two ticks of a caller that polls
LEAST_S: Final = 0.001  # between two automatic commits
ENDS: Final = (EARLIEST, LATEST)


class ConsumerMachine:
    def __init__(
        self,
        bootstrap: Sequence[Address],
        group: str | None,
        settings: ConsumerSettings,
        random: Random,
        now_s: float,
        *,
        security: Security = PLAINTEXT,
        wall_ms: Callable[[], int],
    ) -> None:
        self.settings = settings
        self.client = Client(bootstrap, client_settings(settings, security), random)
        self.subscription = Subscription()
        self.buffer = Buffer(self.subscription)
        self.coordinator = None if group is None else Coordinator(self.client, group)
        self.group: Group | None = None  # once topics are subscribed to
        self.faults: deque[KafkaError] = deque()  # for the caller
        self.told: deque[Commit] = deque()  # finished commits, for interceptors and callbacks
        self.read_committed = settings.isolation_level == "read_committed"
        self.committed: dict[TopicPartition, int] = {}  # what we have committed last
        self.fetcher = Fetcher(self.client, self.subscription, self.buffer, settings, self._tell)
        self.positions = Positions(
            self.client,
            self.subscription,
            self.buffer,
            self.coordinator,
            policy=read_policy(settings.auto_offset_reset),
            wall_ms=wall_ms,
            read_committed=self.read_committed,
            tell=self._tell,
        )
        self._errands: list[Errand] = []
        self._auto_commit: Commit | None = None  # under way
        self._refusal = ""  # of automatic commits, as last logged
        self._finished = 0  # fetches that had been read at the last tick
        self._ticked_s = now_s
        self._is_inside = False  # the caller polls
        self._handed = 0  # records that the caller had got when it began to poll, and has processed since
        self._commits = settings.enable_auto_commit and group is not None
        self._commit_s = now_s + settings.auto_commit_interval_ms / 1000 if self._commits else NEVER

    # What to read

    def subscribe(
        self, topics: Sequence[str] | re.Pattern[str] | None, pattern: str | re.Pattern[str] | None, now_s: float
    ) -> None:
        """Topics by name, or all whose names match. KafkaError, ConsumerUseError or ValueError if it cannot."""
        if isinstance(topics, re.Pattern):
            pattern = topics
            topics = None  # apart: mypyc gives both the type of the None
        if isinstance(pattern, str):
            check_pattern(pattern)
        if pattern is None and (isinstance(topics, str) or not topics):
            raise ValueError(f"topics must be a list of names, not {topics!r}")
        if pattern is not None and topics:
            raise ValueError("subscribe to topics or to a pattern, not to both")
        if self.group is None and self.subscription.assigned:
            raise ConsumerUseError("this consumer reads partitions of its choice; it cannot subscribe as well")
        for topic in topics or ():
            check_topic(topic)
        group = self._the_group(now_s)
        if pattern is not None:
            group.match(pattern)
        else:
            group.subscribe(topics or ())

    def choose(self, places: Iterable[TopicPartition]) -> None:
        """The caller chooses the partitions."""
        if self.group is not None:
            raise ConsumerUseError("this consumer has subscribed to topics; the group assigns their partitions")
        self.assign([check_place(each) for each in places])

    def assign(self, places: Iterable[TopicPartition]) -> None:
        """Read these and no others. Those that stay keep their positions."""
        wanted = list(dict.fromkeys(places))
        for place in set(self.subscription.assigned) - set(wanted):
            self.buffer.drop(place)
            self.committed.pop(place, None)
        self.subscription.assign(wanted)

    def seek(self, place: TopicPartition, offset: int) -> None:
        check_long("an offset", offset)
        self.subscription.place(place, offset)
        self.buffer.drop(place)

    def reset(self, places: Sequence[TopicPartition], to: int) -> None:
        """Move positions to one of the ends; of all assigned partitions if none is named."""
        for place in places or self.subscription.partitions:
            self.subscription.ask_reset(place, to)
            self.buffer.drop(place)

    # The caller

    def check_poll(self, timeout_s: float) -> None:
        """Step 3: a negative timeout, or nothing to read."""
        if not timeout_s >= 0:
            raise ValueError(f"a timeout must not be negative: {timeout_s:g}")
        if self.group is None and not self.subscription.assigned:
            raise ConsumerUseError("there is nothing to read: subscribe() to topics, or assign() partitions")

    def enter(self, now_s: float) -> None:
        """The caller polls."""
        self._is_inside = True
        self._handed = self.buffer.records
        self._try_to_get_in()
        if now_s >= self._commit_s:
            self.commit_automatically(now_s)
        if self.group is not None:
            self.group.enter(now_s)

    def exit(self, now_s: float) -> None:
        self._is_inside = False
        if self.group is not None:
            self.group.exit(now_s)

    def next_duty(self, now_s: float) -> Duty | None:
        """The next call of the rebalance listener (steps 5 and 12). KafkaError for a fault of the group."""
        return None if self.group is None else self.group.next_duty(now_s)

    def done(self, duty: Duty) -> None:
        if self.group is not None:  # the listener has not unsubscribed
            self.group.done(duty)

    def check(self) -> None:
        """Raise faults that the caller must see, once the buffer is empty."""
        if self.client.denied is not None:
            raise self.client.denied
        if self.faults:
            raise self.faults.popleft()
        fault = self.positions.fault()
        if fault is not None:
            raise fault

    @property
    def has_news(self) -> bool:
        """Whether poll has something to do."""
        if self.faults or self.told or self.client.denied is not None or self.buffer.has_next:
            return True
        if self.group is not None and self.group.needs_caller:
            return True
        return self.positions.fault() is not None

    # Errands

    def start(self, errand: Errand) -> None:
        self._try_to_get_in()
        self._errands.append(errand)

    def abandon(self, errand: Errand) -> None:
        """Drop an errand that the caller no longer waits for."""
        if errand in self._errands:
            self._errands.remove(errand)
        errand.finish()

    def list_offsets(self, times: Mapping[TopicPartition, int]) -> OffsetLookup:
        asked = {
            check_place(place): check_long("a time", time) if time not in ENDS else time
            for place, time in times.items()
        }
        lookup = OffsetLookup(self.client, asked, read_committed=self.read_committed)
        self.start(lookup)
        return lookup

    def stored_offsets(self, places: Iterable[TopicPartition]) -> Committed:
        errand = Committed(self._the_coordinator(), [check_place(each) for each in places])
        self.start(errand)
        return errand

    def commit(
        self,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None,
        *,
        retries: bool = True,
        on_commit: OnCommit | None = None,
    ) -> Commit:
        """Commit the positions, or these offsets."""
        coordinator = self._the_coordinator()
        chosen = self.consumed()
        if offsets is not None:
            chosen = {check_place(place): as_offset(each) for place, each in offsets.items()}
        member = None if self.group is None else self.group.member
        errand = Commit(coordinator, chosen, member, retries=retries, on_commit=on_commit)
        self.start(errand)
        return errand

    def commit_automatically(self, now_s: float, *, latest: bool = False) -> Commit | None:
        """Commit positions that are not committed yet; None if there are none, or automatic commits are off. `latest`:
        partitions are about to be revoked, so a running commit of older positions is not enough, and the commit is
        retried: there will be no next one."""
        if not self._commits:
            return None
        self._commit_s = now_s + max(self.settings.auto_commit_interval_ms / 1000, LEAST_S)
        changed = {place: at for place, at in self.consumed().items() if self.committed.get(place) != at.offset}
        under_way = self._auto_commit
        is_enough = not latest or (
            under_way is not None and all(under_way.offsets.get(place) == at for place, at in changed.items())
        )
        if under_way is not None and not under_way.is_done and is_enough:
            under_way.retries = under_way.retries or latest
            return under_way
        if not changed or (self.group is not None and self.group.member.generation < 0):
            return None
        self._auto_commit = self.commit(changed, retries=latest)
        self._auto_commit.is_automatic = True
        return self._auto_commit

    def consumed(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """The positions to commit."""
        return {
            place: OffsetAndMetadata(state.position, "", state.position_epoch)
            for place, state in self.subscription.assigned.items()
            if state.position is not None
        }

    # Time

    def is_due(self, now_s: float) -> bool:
        """Whether a poll that has records should tick before it returns: there may be room for a fetch, or time has
        passed. Small polls out of one fetch need not."""
        return self.buffer.finished != self._finished or now_s - self._ticked_s >= TURN_S

    def tick(self, now_s: float) -> None:
        """Deliver answers, do what is due, send what can be sent."""
        self._finished = self.buffer.finished
        self._ticked_s = now_s
        self.client.tick(now_s)
        self._want_topics(now_s)
        if self._may_commit and now_s >= self._commit_s:
            self.commit_automatically(now_s)
        if self.group is not None:
            self.group.tick(now_s)
        for errand in list(self._errands):
            if self.client.denied is not None:
                errand.finish(self.client.denied)
            errand.tick(now_s)
            if errand.is_done:
                self._errands.remove(errand)
                if isinstance(errand, Commit):
                    self._end_commit(errand, now_s)
        self.positions.tick(now_s)
        self.fetcher.tick(now_s)
        self.client.tick(now_s)  # topics that were wanted just now

    @property
    def wake_s(self) -> float:
        """When `tick` has something to do even if no socket is ready."""
        wake_s = min(self.client.wake_s, self.positions.wake_s, self.fetcher.wake_s)
        for errand in self._errands:
            wake_s = min(wake_s, errand.wake_s)
        if self.group is not None:
            wake_s = min(wake_s, self.group.wake_s)
        return min(wake_s, self._commit_s) if self._may_commit else wake_s

    @property
    def _may_commit(self) -> bool:
        """Whether the caller has processed all records that it was handed: it polls, and this poll has taken none yet.
        Positions are past records that poll has taken but not returned; a commit of them could lose these records."""
        return self._is_inside and self.buffer.records == self._handed

    def stop_committing(self) -> None:
        """Stop automatic commits: the caller failed, perhaps with the last records that it got."""
        self._commits = False

    def leave(self, now_s: float, says_so: bool | None) -> None:
        """Leave the group; `is_leaving` until the coordinator knows. `says_so`: see `Member.leave`."""
        if self.group is not None:
            self.group.member.leave(now_s, "the consumer was closed", says_so=says_so)

    @property
    def is_leaving(self) -> bool:
        return self.group is not None and self.group.member.is_leaving

    @property
    def is_committing(self) -> bool:
        """Whether a commit is under way."""
        return any(isinstance(errand, Commit) and not errand.is_done for errand in self._errands)

    def last_duty(self) -> Duty | None:
        """The last call of the listener, when the consumer is closed."""
        return None if self.group is None else self.group.last_duty()

    def forget_group(self) -> None:
        """Drop the subscription and the group."""
        self.group = None
        self.client.cluster.wants_all = False
        self.assign(())

    def group_metadata(self) -> GroupMetadata:
        from ixion.clients.core.producer.group_offsets import GroupMetadata  # imported only with transactions

        coordinator = self._the_coordinator()
        if self.group is None:
            return GroupMetadata(coordinator.group)
        member = self.group.member
        return GroupMetadata(coordinator.group, member.generation, member.member_id, member.instance_id)

    def late_position(self, place: TopicPartition, seconds: float) -> KafkaError:
        """The fault of a position that was not found in time."""
        reason = self.positions.reason or self.client.fault
        because = "" if reason is None else f"; {reason.message}"
        return TimedOutError(f"the position of {place}: not found within {seconds:.3g} s{because}")

    def close(self, now_s: float) -> None:
        fault = DisconnectedError("the consumer was closed")
        for errand in self._errands:
            errand.finish(fault)
            if isinstance(errand, Commit):
                self._end_commit(errand, now_s)
        self._errands.clear()
        self.client.close(fault, now_s)

    unacknowledged: Final = 0  # it sends no records

    def let_go(self) -> bool:
        """Called when the client was garbage-collected: there is nothing to send."""
        return True

    def recover(self, now_s: float) -> None:
        """After an interrupt in the middle of something (step 11.7): drop all connections and ask again."""
        self.client.drop_connections(DisconnectedError("interrupted by an exception"), now_s)
        self.fetcher.forget_questions()
        self.positions.forget_questions()
        for errand in self._errands:
            errand.forget_questions()
        if self.coordinator is not None:
            self.coordinator.forget_question()
        if self.group is not None:
            self.group.member.forget_question()

    @property
    def trouble(self) -> KafkaError | None:
        """Why no records arrive at the moment, if brokers are the reason."""
        if any(machine.ready for machine in self.client.machines):
            return self.fetcher.trouble
        return self.client.fault

    def metrics(self) -> dict[str, int]:
        """Counters and gauges at this moment, by Kafka's names where it has one."""
        return {
            "records-consumed-total": self.buffer.records,
            "fetch-total": self.fetcher.requests,
            "buffered-bytes": int(self.buffer.bytes),
            "assigned-partitions": len(self.subscription.assigned),
            "requests-in-flight": sum([machine.in_flight for machine in self.client.machines]),
            "connection-count": len(self.client.machines),
        }

    def _try_to_get_in(self) -> None:
        """Try brokers again that refused us, because the caller wants something."""
        if self.client.denied is not None:
            self.client.denied = None
            self.client.cluster.mark_stale()

    def _tell(self, fault: KafkaError) -> None:
        """Keep a fault for the caller, each distinct fault once."""
        if all(fault.message != known.message for known in self.faults):
            self.faults.append(fault)

    def _the_coordinator(self) -> Coordinator:
        if self.coordinator is None:
            raise ConsumerUseError("committing offsets needs a group: name one (group=…)")
        return self.coordinator

    def _the_group(self, now_s: float) -> Group:
        if self.coordinator is None:
            raise ConsumerUseError("subscribing needs a group: name one (group=…), or assign() partitions")
        if self.group is None:
            from ixion.clients.core.consumer.group import Group

            self.group = Group(
                new_member(self.client, self.coordinator, self.settings),
                self.subscription,
                take_over=self.assign,
                commit=partial(self.commit_automatically, latest=True),
                max_poll_s=self.settings.max_poll_interval_ms / 1000,
                now_s=now_s,
            )
        return self.group

    def _want_topics(self, now_s: float) -> None:
        """Keep metadata of exactly the topics that are read or subscribed to."""
        topics = {place.topic for place in self.subscription.assigned}
        if self.group is not None:
            topics.update(self.group.topics)
        for errand in self._errands:
            if isinstance(errand, OffsetLookup):
                topics.update([place.topic for place in errand.times])
        self.client.cluster.want_only(topics, now_s)

    def _note_refusal(self, fault: KafkaError | None) -> None:
        """Log each refusal of automatic commits once, until one succeeds: no call raises it."""
        message = "" if fault is None else fault.message
        if fault is not None and message != self._refusal:
            log_refused_commit(fault)
        self._refusal = message

    def _end_commit(self, errand: Commit, now_s: float) -> None:
        if errand is self._auto_commit:
            self._auto_commit = None
            if errand.fault is not None and errand.retries:  # the last one before a revocation, or at close
                log_uncommitted(errand.fault)
            elif errand.fault is not None and errand.fault.code.retriable:
                self._commit_s = min(self._commit_s, now_s + self.client.settings.retry_backoff_s)
            elif not isinstance(errand.fault, CommitFailedError | RebalanceInProgressError):
                self._note_refusal(errand.fault)
        if errand.fault is None:
            for place, committed in errand.offsets.items():
                if place in self.subscription.assigned:
                    self.committed[place] = committed.offset
        elif errand.on_commit is None:
            return
        self.told.append(errand)
