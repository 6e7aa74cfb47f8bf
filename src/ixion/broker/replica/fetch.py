"""A fetch: read now if there is enough, else wait for more.

A few partitions are read at once. A fetch of more than `AT_ONCE` partitions is read, and begins to wait, in turns of
the loop; such fetches run one after the other.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from ixion._native import mypyc_attr
from ixion.broker.log.view import Bound
from ixion.broker.replica.delayed_fetch import DelayedFetch
from ixion.broker.replica.read import LogReader
from ixion.broker.replica.results import FetchResult, FetchWish
from ixion.language.model.errors import ErrorCode

if TYPE_CHECKING:
    from ixion.broker.replica.manager import ReplicaManager

logger = logging.getLogger(__name__)

AT_ONCE: Final = 128  # partitions; reading so many takes well under a millisecond
DEBUGGER: Final = -2  # a consumer that may read from any replica: tools that compare replicas
NOBODY: Final = -1


@mypyc_attr(allow_interpreted_subclasses=False)
class FetchTerms:
    """The fields of a fetch that hold for all of its partitions."""

    def __init__(
        self,
        *,
        replica_id: int,
        max_wait_ms: int,
        min_bytes: int,
        max_bytes: int,
        bound: Bound,
        replica_epoch: int = -1,
        rack: str = "",
    ) -> None:
        self.replica_id = replica_id  # a follower's broker id; -1: a consumer; -2: a debugger
        self.rack = rack if replica_id == NOBODY else ""  # a consumer's, which may read from a follower there
        self.leader_only = replica_id != DEBUGGER and not self.rack
        self.replica_epoch = replica_epoch  # the epoch of that broker; -1: unknown
        self.max_wait_ms = max_wait_ms
        self.min_bytes = min_bytes
        self.max_bytes = max_bytes
        self.bound = bound


def fetch(
    replicas: ReplicaManager,
    terms: FetchTerms,
    wishes: list[FetchWish],
    done: Callable[[list[FetchResult]], None],
    waits: Callable[[Callable[[], None]], None] | None = None,
) -> None:
    """`done` is called once with a result per wish, in their order, perhaps before this returns.

    `waits` is called if the fetch has to wait, with a function that stops the wait.
    """
    ReadOrWait(replicas, terms, wishes, done, waits).start()


@mypyc_attr(allow_interpreted_subclasses=False)
class ReadOrWait:
    """One fetch: it reads, and if that is too little it waits and reads again.

    Methods, not inner functions: those would make a reference cycle for each fetch, and collecting the cycles took 8 %
    of the time of a small fetch.
    """

    def __init__(
        self,
        replicas: ReplicaManager,
        terms: FetchTerms,
        wishes: list[FetchWish],
        done: Callable[[list[FetchResult]], None],
        waits: Callable[[Callable[[], None]], None] | None,
    ) -> None:
        self._replicas = replicas
        self._terms = terms
        self._wishes = wishes
        self._done = done
        self._waits = waits

    def start(self) -> None:
        self._read(self._terms.replica_id, first=True)

    def _read(self, follower: int, first: bool) -> None:
        terms = self._terms
        reader = LogReader(
            self._replicas, terms.max_bytes, terms.bound, terms.leader_only, follower, terms.replica_epoch
        )
        reader.copies_to = terms.replica_id
        reader.rack = terms.rack
        finish = self._first_read if first else self._last_read
        if len(self._wishes) > AT_ONCE:
            self._replicas.fetch_lane.run(reader.steps(self._wishes), finish)
            return
        results: list[FetchResult] | None = None
        fault: Exception | None = None
        try:
            results = reader.read_all(self._wishes)
        except Exception as error:  # after a wait there is no caller to catch it, and the client needs an answer
            fault = error
        finish(results, fault)

    def _results(self, results: list[FetchResult] | None, error: Exception | None) -> list[FetchResult]:
        if results is None:
            logger.error("a fetch of %d partitions failed", len(self._wishes), exc_info=error)
            return [failed(wish) for wish in self._wishes]
        return results

    def _first_read(self, read: list[FetchResult] | None, error: Exception | None) -> None:
        results = self._results(read, error)
        terms = self._terms
        if terms.max_wait_ms <= 0 or not self._wishes or enough(results, terms.min_bytes):
            self._answer(results)
        else:
            self._wait(results)

    def _wait(self, results: list[FetchResult]) -> None:
        terms, replicas, waits = self._terms, self._replicas, self._waits
        operation = DelayedFetch(
            replicas, terms.max_wait_ms, terms.min_bytes, terms.bound, terms.leader_only, results, self._again
        )
        operation.copies_to = terms.replica_id
        for result in results:
            result.records = b""  # it is read again when the wait is over
        keys = operation.keys
        if len(keys) > AT_ONCE:
            if waits is not None:
                waits(operation.give_up)
            replicas.fetch_lane.run(replicas.fetch_purgatory.watch_in_steps(operation, keys), partial(begun, operation))
        elif not replicas.fetch_purgatory.try_complete_else_watch(operation, keys) and waits is not None:
            waits(operation.give_up)

    def _again(self) -> None:
        self._read(NOBODY, first=False)

    def _last_read(self, read: list[FetchResult] | None, error: Exception | None) -> None:
        self._answer(self._results(read, error))

    def _answer(self, results: list[FetchResult]) -> None:
        if self._terms.replica_id >= 0:
            self._replicas.counters.copied_out += size_of(results)
            quota = self._replicas.leader_quota
            if quota is not None:
                size = size_of([result for result in results if result.throttled])
                if size:
                    quota.record(size)
        self._done(results)


def begun(operation: DelayedFetch, _: bool | None, error: Exception | None) -> None:
    if error is not None:
        logger.error("a fetch of %d partitions cannot wait", len(operation.keys), exc_info=error)
        operation.force_complete()


def failed(wish: FetchWish) -> FetchResult:
    result = FetchResult(wish)
    result.code = ErrorCode.UNKNOWN_SERVER_ERROR
    return result


def size_of(results: list[FetchResult]) -> int:
    size = 0
    for result in results:
        size += len(result.records)
    return size


def enough(results: list[FetchResult], min_bytes: int) -> bool:
    """Whether to answer now: there are enough bytes, or a result that the client must get at once."""
    size = 0
    for result in results:
        if result.code != ErrorCode.NONE or result.diverging_epoch >= 0 or result.preferred_replica >= 0:
            return True
        size += len(result.records)
    return size >= min_bytes
