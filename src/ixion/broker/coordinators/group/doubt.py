"""Whether this broker still leads the partitions of __consumer_offsets that it believes to lead.

A broker that is out of contact with ZooKeeper for longer than its session is replaced, and notices only when a
LeaderAndIsr reaches it. Until then the offsets that it answers may be older than a transaction that the new leader has
completed. A client that copies records exactly once would continue from them and copy some records twice. (Kafka
answers them.) So a request for stable offsets waits until this broker is sure that it still leads:

    the session in which it was elected cannot have expired     it is sure at once
    otherwise                                                   once every in-sync follower has fetched twice

A new leader would be one of the in-sync followers, and a leader does not fetch. Each of them must fetch twice: the
first fetch may have been sent before the request came, the second was sent after the answer to the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from ixion.broker.coordinators.group.shard import GroupShard
from ixion.broker.coordinators.group.shards import Shards
from ixion.broker.replica.coordinator_log import CoordinatorLog
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
        """The partitions of these groups that this broker may no longer lead."""
        lease = self._lease()
        found: set[int] = set()
        for group_id in group_ids:
            shard = self._shards.find(group_id)
            if isinstance(shard, GroupShard) and (lease is None or shard.elected_in != lease):
                found.add(shard.partition)
        return found

    def resolve(self, partitions: Iterable[int], done: Resolved) -> Callable[[], None]:
        """Wait for the followers. Calling the result stops the wait; `done` is not called then."""
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
        """Also True if the partition is led elsewhere: the coordinator then answers NOT_COORDINATOR."""
        counts = self._log.follower_fetches(partition)
        if counts is None:
            return True
        before = self._before[partition]
        return all(count - before.setdefault(broker, count) >= FETCHES for broker, count in counts.items())
