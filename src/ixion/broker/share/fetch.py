"""A share fetch: acquire records now, or else wait for some.

A waiting fetch completes when, for one of its partitions,

- A: this broker no longer leads it, does not know it, or its disk is offline,
- B: its share partition could not be loaded, or was fenced,
- C: reading its log fails,

or, over all of them, D: records were acquired, once min_bytes can be read or a record comes back; and E: at its
timeout, with however few records.

Acquiring is the check: the first waiting fetch that an event wakes takes the records, and the next ones find none.
So a release wakes one of 32 waiting members, not all of them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Final, NamedTuple

from ixion.broker.log.batch_finder import bytes_between
from ixion.broker.log.handle import FileSlice
from ixion.broker.share.acquiring import Acquired
from ixion.broker.share.leader import Given, ShareLeader, Wish
from ixion.broker.share.manager import ShareManager
from ixion.broker.share.session import Place
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.purgatory.operation import DelayedOperation, abandon
from ixion.timer.turns import Steps

if TYPE_CHECKING:
    from ixion.broker.replica.partition import Partition

logger = logging.getLogger(__name__)

AT_ONCE: Final = 64  # partitions that are looked at in one turn
MOST_RECORDS: Final = 5_000  # of one fetch: if each is a batch of its own, finding them takes some 20 ms


class ShareTerms(NamedTuple):
    """The fields of a share fetch that hold for all of its partitions."""

    group: str
    member: str
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    max_records: int
    batch_size: int
    strict: bool


class Target(NamedTuple):
    """A partition of a fetch. `refused`: it is not fetched from, because the topic is unknown or not allowed."""

    place: Place
    topic: str
    refused: ErrorCode = ErrorCode.NONE


class ShareResult:
    """What a fetch has for one partition."""

    __slots__ = ("acquired", "code", "records")

    def __init__(self, code: ErrorCode = ErrorCode.NONE, given: Given | None = None) -> None:
        self.code = code
        self.records: bytes | FileSlice = b"" if given is None else given.records
        self.acquired: list[Acquired] = [] if given is None else given.acquired


Results = dict[Place, ShareResult]
Done = Callable[[Results], None]


class ShareFetch:
    """One fetch. `done` is called once, perhaps before `start` returns, with the partitions that have records or
    errors.

    `waits` is called if the fetch has to wait, with a function that stops the wait.
    """

    def __init__(
        self,
        manager: ShareManager,
        terms: ShareTerms,
        targets: list[Target],
        done: Done,
        waits: Callable[[Callable[[], None]], None],
    ) -> None:
        self.manager: Final = manager
        self.terms: Final = terms
        self.targets: Final = {(target.topic, target.place[1]): target for target in targets if not target.refused}
        self.results: Results = {target.place: ShareResult(target.refused) for target in targets if target.refused}
        self._done = done
        self._waits = waits
        self._left = min(terms.max_records, MOST_RECORDS)
        self._bytes_left = terms.max_bytes
        self._leaders: dict[Place, ShareLeader] = {}  # that were found here: one that was dropped meanwhile is an error
        self._operation: DelayedShareFetch | None = None
        self._stopped = False
        self._readable: dict[Place, int] = {}  # with min_bytes above 1: at the last look at each partition

    def start(self) -> None:
        if len(self.targets) <= AT_ONCE:
            for target in self.targets.values():
                self._look(target)
            self._looked(None, None)
        else:
            self.manager.replicas.fetch_lane.run(self._look_at_all(), self._looked)

    def _look_at_all(self) -> Steps[None]:
        for target in self.targets.values():
            self._look(target)
            yield

    def _looked(self, _: None, error: Exception | None) -> None:
        if error is not None:
            logger.error("a share fetch of group %s failed", self.terms.group, exc_info=error)
            self.finish()
        elif self.results or self.terms.max_wait_ms <= 0 or self._left <= 0 or not self.targets or self._stopped:
            if not self.results:
                self.last_look()
            self.finish()
        else:
            self._wait()

    def _wait(self) -> None:
        manager, group = self.manager, self.terms.group
        operation = self._operation = DelayedShareFetch(self)
        keys: list[Hashable] = list(self.targets)
        keys += [(group, topic, number) for topic, number in self.targets]
        if len(keys) > AT_ONCE:
            self._waits(operation.give_up)
            manager.replicas.fetch_lane.run(manager.purgatory.watch_in_steps(operation, keys), operation.begun)
        elif not manager.purgatory.try_complete_else_watch(operation, keys):
            self._waits(operation.give_up)

    def look_at(self, key: Hashable) -> bool:
        """Whether an event of this key ends the wait."""
        if isinstance(key, tuple) and len(key) == 3:
            key = key[1:]
        target = self.targets.get(key)  # type: ignore[call-overload]
        if target is not None:
            self._look(target)
        return bool(self.results)

    def look(self) -> bool:
        for target in self.targets.values():
            self._look(target)
            if self._left <= 0:
                break
        return bool(self.results)

    def last_look(self) -> None:
        """Acquire records, however few."""
        for target in self.targets.values():
            if target.place not in self.results:
                self._look(target, at_least=0)

    def stop(self) -> None:
        """Answer now with what was acquired: the session has ended."""
        self._stopped = True
        if self._operation is not None:
            self._operation.force_complete()

    def finish(self) -> None:
        done, self._done = self._done, ignore
        done(self.results)

    def _look(self, target: Target, at_least: int | None = None) -> None:
        """Acquire records of one partition, or note its error."""
        if self._stopped or self._left <= 0 or target.place in self.results:
            return
        terms = self.terms
        try:
            leader = self._leader_of(target)
            if terms.min_bytes > 1 and at_least is None and not self._is_enough(target, leader):
                return
            most = max(self._bytes_left // max(len(self.targets) - len(self.results), 1), 1)
            wish = Wish(terms.member, self._left, most, terms.batch_size, terms.strict)
            given = leader.acquire(wish)
        except KafkaError as error:
            self.results[target.place] = ShareResult(error.code)
            return
        if given is not None:
            self._left -= sum([each.last - each.first + 1 for each in given.acquired])
            self._bytes_left = max(self._bytes_left - len(given.records), 0)
            self.results[target.place] = ShareResult(ErrorCode.NONE, given)

    def _leader_of(self, target: Target) -> ShareLeader:
        known = self._leaders.get(target.place)
        if known is not None and not known.closed:
            return known
        if known is not None:
            raise KafkaError(known.failure, "its share partition was dropped")
        replicas = self.manager.replicas
        partition: Partition | None = replicas.partitions.get((target.topic, target.place[1]))
        if partition is None:
            code = replicas.why_missing(target.topic, target.place[1])
            if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                code = ErrorCode.NOT_LEADER_OR_FOLLOWER
            raise KafkaError(code, "no replica here")
        if partition.topic_id != target.place[0]:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, "another topic of that name")
        if not partition.leads or partition.log.directory.offline:
            raise KafkaError(partition.lost, "not led here")
        leader = self._leaders[target.place] = self.manager.leader_of(self.terms.group, partition)
        if leader.closed:  # it could not be loaded
            raise KafkaError(leader.failure, "its share partition cannot be loaded")
        return leader

    def _is_enough(self, target: Target, leader: ShareLeader) -> bool:
        """Whether min_bytes can be read of all partitions, as far as they were looked at, or a record has come back."""
        offset = leader.next_offset()
        if offset < 0:
            self._readable[target.place] = 0
            return False
        core = leader.core
        if core is not None and offset < core.end:
            return True
        self._readable[target.place] = bytes_between(leader.partition.log, offset, leader.limit())
        return sum(self._readable.values()) >= min(self.terms.min_bytes, self.terms.max_bytes)


class DelayedShareFetch(DelayedOperation):
    def __init__(self, fetch: ShareFetch) -> None:
        super().__init__(fetch.terms.max_wait_ms)
        self._fetch: ShareFetch | None = fetch

    def try_complete(self) -> bool:
        fetch = self._fetch
        return fetch is not None and fetch.look() and self.force_complete()

    def try_complete_for(self, key: Hashable) -> bool:
        fetch = self._fetch
        return fetch is not None and fetch.look_at(key) and self.force_complete()

    def on_complete(self) -> None:
        fetch = self._fetch
        self._fetch = None
        if fetch is not None:
            if not fetch.results:
                fetch.last_look()  # E
            fetch.manager.replicas.completions.run(fetch.finish)

    def begun(self, _: bool | None, error: Exception | None) -> None:
        if error is not None:
            logger.error("a share fetch cannot wait", exc_info=error)
            self.force_complete()

    def give_up(self) -> None:
        """Stop waiting: the client is gone."""
        if abandon(self):
            self._fetch = None


def ignore(_: Results) -> None:
    """Replaces an answer that was given."""
