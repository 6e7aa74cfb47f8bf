"""A consumer's part in a group: when partitions are revoked and assigned, and when the listener is called.

The caller's listener runs within poll, so the changes of an assignment are handed to the caller one by one, as duties:

    REVOKED     about to be revoked; the automatic commit is done
    LOST        taken away; other members may read them already
    ASSIGNED    ours from now on

With an eager assignor, all partitions are revoked before a join, and assigned ones begin where the group has committed.
With cooperative-sticky alone, a member keeps reading until the group wants partitions back: those are revoked after the
join, and a second join assigns them to their new owners. The consumer protocol (KIP-848) has the same steps, but there
the coordinator assigns.

Heartbeats are sent independently of poll. If the caller does not poll for `max.poll.interval.ms` the member leaves, so
that others get its partitions, and the next poll joins again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from ixion.clients.core.connection import NEVER
from ixion.clients.core.consumer.classic import ClassicMember
from ixion.clients.core.consumer.errand import Errand
from ixion.clients.core.consumer.member import Member
from ixion.clients.core.consumer.served import ServedMember
from ixion.clients.core.consumer.subscription import Subscription
from ixion.clients.metadata import TopicPartition

REVOKED: Final = "revoked"
LOST: Final = "lost"
ASSIGNED: Final = "assigned"


class Duty(NamedTuple):
    """A pending call of the rebalance listener, before anything else happens; then call `Group.done`."""

    kind: str
    places: list[TopicPartition]


class Group:
    def __init__(
        self,
        member: Member,
        subscription: Subscription,
        *,
        take_over: Callable[[list[TopicPartition]], None],
        commit: Callable[[float], Errand | None],
        max_poll_s: float,
        now_s: float,
    ) -> None:
        """`take_over` sets the partitions to read; `commit` starts the automatic commit, if there is one."""
        self.member = member
        self.is_inside = False  # the caller is in poll
        self.polled_s = now_s
        self._subscription = subscription
        self._take_over = take_over
        self._commit = commit
        self._max_poll_s = max_poll_s
        self._committing: Errand | None = None  # the automatic commit before a revocation
        self._commit_until_s = NEVER  # when it is given up
        self._has_committed = False
        self._duty: Duty | None = None  # handed to the caller
        self._pattern: re.Pattern[str] | None = None
        self._changes = -1  # of the cluster, as last matched

    @property
    def topics(self) -> set[str]:
        """The topics that need metadata."""
        topics = {*self.member.topics}
        if isinstance(self.member, ClassicMember) and self.member.is_leader:
            topics.update(self.member.leader_topics)
        return topics

    def subscribe(self, topics: Sequence[str]) -> None:
        self._pattern = None
        self.member.client.cluster.wants_all = False
        if isinstance(self.member, ServedMember):
            self.member.follow(None)
        self.member.subscribe(topics)

    def match(self, pattern: str | re.Pattern[str]) -> None:
        """Subscribe to all topics whose whole name matches: matched here, or by a coordinator that can."""
        self.member.client.cluster.wants_all = True
        self.member.client.cluster.mark_stale()
        self._changes = -1
        if isinstance(self.member, ServedMember) and isinstance(pattern, str):
            self._pattern = None
            self.member.follow(pattern)
        else:
            self._pattern = re.compile(pattern)
            self.member.subscribe(())

    def enter(self, now_s: float) -> None:
        self.is_inside = True
        self.polled_s = now_s

    def exit(self, now_s: float) -> None:
        self.is_inside = False
        self.polled_s = now_s

    def tick(self, now_s: float) -> None:
        """Do what needs no caller."""
        self._match_topics()
        if not self.is_inside and now_s - self.polled_s > self._max_poll_s and self.member.generation >= 0:
            self.member.leave(now_s, "the consumer has not polled for max.poll.interval.ms")
        if self._committing is not None and now_s >= self._commit_until_s:
            self._committing.finish(self._committing.late(self._max_poll_s))
        self.member.tick(now_s)

    @property
    def wake_s(self) -> float:
        wake_s = self.member.wake_s
        if not self.is_inside and self.member.generation >= 0:
            wake_s = min(wake_s, self.polled_s + self._max_poll_s)
        return wake_s if self._committing is None else min(wake_s, self._commit_until_s)

    @property
    def needs_caller(self) -> bool:
        """Whether `next_duty` has something to do."""
        if self._duty is not None or self.member.fault is not None:
            return True
        if self._committing is not None:
            return self._committing.is_done
        member = self.member
        if member.has_lost and self._subscription.assigned:
            return True
        return member.assignment is not None or (member.must_rejoin and not member.is_joining and self._knows_topics)

    def next_duty(self, now_s: float) -> Duty | None:
        """Continue with the assignment until the listener must be called."""
        member = self.member
        fault, member.fault = member.fault, None
        if fault is not None:
            raise fault
        if self._duty is not None:
            return self._duty  # the listener has raised: call it again
        held = self._subscription.partitions
        if member.has_lost and held:
            self._stop_committing()
            return self._hand(LOST, held)
        if member.assignment is not None:
            return self._change_to(member.assignment, held, now_s)
        if member.must_rejoin and not member.is_joining and self._knows_topics:
            if not member.is_cooperative and held:
                return self._revoke(held, now_s)
            member.begin(held)
        return None

    def done(self, duty: Duty) -> None:
        """The listener was called."""
        self._duty = None
        held = self._subscription.partitions
        member = self.member
        if duty.kind == LOST:
            self._take_over([])
            member.has_lost = False
            if member.is_joining:
                member.begin([])
        elif duty.kind == REVOKED:
            self._has_committed = False
            self._take_over([place for place in held if place not in duty.places])
            if member.assignment is not None and member.is_cooperative and isinstance(member, ClassicMember):
                member.must_rejoin = True  # another member waits for the revoked partitions

    def last_duty(self) -> Duty | None:
        """The last call of the listener, when the consumer is closed: everything is revoked."""
        held = self._subscription.partitions
        if not held:
            return None
        return self._hand(LOST if self.member.has_lost or self.member.generation < 0 else REVOKED, held)

    def _change_to(self, places: list[TopicPartition], held: list[TopicPartition], now_s: float) -> Duty | None:
        member = self.member
        revoked = [place for place in held if place not in places]
        self._hold_back(revoked)
        if revoked:
            return self._revoke(revoked, now_s)
        added = [place for place in places if place not in held]
        self._take_over(places)
        member.assignment = None
        member.taken_over(places, now_s)
        return self._hand(ASSIGNED, added)

    def _hand(self, kind: str, places: list[TopicPartition]) -> Duty:
        self._duty = Duty(kind, places)
        return self._duty

    def _revoke(self, places: list[TopicPartition], now_s: float) -> Duty | None:
        """Have the listener called, once what was handed out of these partitions is committed."""
        self._hold_back(places)
        return self._hand(REVOKED, places) if self._is_committed(now_s) else None

    def _hold_back(self, places: list[TopicPartition]) -> None:
        """Hand out nothing more of exactly these: the commit before their revocation would not cover it."""
        for place, state in self._subscription.assigned.items():
            state.is_leaving = place in places

    def _is_committed(self, now_s: float) -> bool:
        """Whether the automatic commit before a revocation has ended, with or without success. Starts it."""
        if self._has_committed:
            return True
        if self._committing is None:
            self._committing = self._commit(now_s)
            self._commit_until_s = now_s + self._max_poll_s
        if self._committing is not None and not self._committing.is_done:
            return False
        self._committing = None
        self._has_committed = True
        return True

    def _stop_committing(self) -> None:
        if self._committing is not None:
            self._committing.finish()
        self._committing = None
        self._has_committed = False

    @property
    def _knows_topics(self) -> bool:
        """Whether metadata has come that a pattern of our own needs."""
        return self._pattern is None or self._changes >= 0

    def _match_topics(self) -> None:
        cluster = self.member.client.cluster
        if self._pattern is None or not cluster.knows_all or self._changes == cluster.changes:
            return
        self._changes = cluster.changes
        found = [name for name, topic in cluster.topics.items() if not topic.internal and self._pattern.fullmatch(name)]
        member = self.member
        is_outside = member.generation < 0 and not member.is_joining
        if tuple(sorted(found)) != member.topics or is_outside:
            member.subscribe(sorted(found))
