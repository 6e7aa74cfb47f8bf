"""Whether this broker still leads the partitions of __consumer_offsets that it believes to lead.

A broker that is out of contact with ZooKeeper for longer than its session is replaced, and learns it only when a
LeaderAndIsr reaches it. The offsets that it answers meanwhile may be older than a transaction that the new leader has
completed, and a client that copies records exactly once would continue from them and copy some twice. (Kafka answers
them.) Requests that ask for stable offsets are answered when that cannot be:

    the session in which the shard was elected cannot have expired       answered at once
    otherwise                                                            when the in-sync followers have been heard

The new leader is one of the in-sync followers, and a leader does not fetch. Each of them must fetch twice: the first
fetch may have been under way since before the request, the second one was sent after the answer to the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from ixion.coordinators.group.shard import GroupShard
from ixion.coordinators.group.shards import Shards
from ixion.replica.coordinator_log import CoordinatorLog
from ixion.timer.timer import Timer

POLL_MS: Final = 50
POLLS: Final = 60  # then the request is refused
FETCHES: Final = 2

Lease = Callable[[], int | None]  # the session of this broker with the tree, None if it may have expired
Resolved = Callable[[frozenset[int]], None]  # called with the partitions that are still in doubt


class Doubt:
    def __init__(self, shards: Shards, log: CoordinatorLog, timer: Timer, lease: Lease) -> None:
        self._shards = shards
        self._log = log
        self._timer = timer
        self._lease = lease

    def elected(self, shard: GroupShard) -> None:
        shard.elected_in = self._lease()

    def partitions(self, group_ids: Iterable[str]) -> set[int]:
        """Those that this broker may no longer lead."""
        lease = self._lease()
        found: set[int] = set()
        for group_id in group_ids:
            shard = self._shards.find(group_id)
            if isinstance(shard, GroupShard) and (lease is None or shard.elected_in != lease):
                found.add(shard.partition)
        return found

    def resolve(self, partitions: Iterable[int], done: Resolved) -> Callable[[], None]:
        """Wait for the followers. The result gives up waiting; `done` is not called then."""
        question = Question(self._log, self._timer, partitions, done)
        question.look()
        return question.give_up


class Question:
    def __init__(self, log: CoordinatorLog, timer: Timer, partitions: Iterable[int], done: Resolved) -> None:
        self._log = log
        self._timer = timer
        self._done = done
        self._before: dict[int, dict[int, int]] = {each: log.follower_fetches(each) or {} for each in partitions}
        self._polls = 0
        self._is_over = False

    def look(self) -> None:
        if self._is_over:
            return
        for partition in [each for each in self._before if self._is_settled(each)]:
            del self._before[partition]
        self._polls += 1
        if self._before and self._polls < POLLS:
            self._timer.call_later(POLL_MS, self.look)
        else:
            self._is_over = True
            self._done(frozenset(self._before))

    def give_up(self) -> None:
        self._is_over = True

    def _is_settled(self, partition: int) -> bool:
        """True also if the partition is led elsewhere: then the coordinator says so."""
        counts = self._log.follower_fetches(partition)
        if counts is None:
            return True
        before = self._before[partition]
        return all(count - before.setdefault(broker, count) >= FETCHES for broker, count in counts.items())
