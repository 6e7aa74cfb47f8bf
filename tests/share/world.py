"""Share partitions on a replica manager without a broker, with a clock that the test moves and a store whose writes
end when the test says so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ixion.broker.replica.share_persister import (
    NO_OFFSET,
    SharePartitionKey,
    ShareState,
    StateBatch,
    StateRead,
    StateUpdate,
    StateWritten,
)
from ixion.broker.share.acknowledgement import Acknowledgement
from ixion.broker.share.fetch import Results, ShareFetch, ShareTerms, Target
from ixion.broker.share.leader import ShareLeader
from ixion.broker.share.manager import ShareManager
from ixion.broker.share.session import ShareSession
from ixion.broker.share.terms import Terms
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.codec.sink import joined
from ixion.language.records.batches import iter_batches
from tests.replica.world import TOPIC_ID, World

GROUP = "g"


class MemoryPersister:
    """The share coordinator as a dictionary of offsets."""

    def __init__(self) -> None:
        self.start: dict[SharePartitionKey, int] = {}
        self.offsets: dict[SharePartitionKey, dict[int, StateBatch]] = {}
        self.epochs: dict[SharePartitionKey, int] = {}
        self.updates: list[StateUpdate] = []
        self.read_code = ErrorCode.NONE
        self.write_code = ErrorCode.NONE
        self.holds = False
        self.held: list[Callable[[], None]] = []
        self.reads = 0

    def read_state(self, key: SharePartitionKey, leader_epoch: int, done: StateRead) -> None:
        self.reads += 1
        if self.holds:
            self.held.append(lambda: self._read(key, leader_epoch, done))
        else:
            self._read(key, leader_epoch, done)

    def _read(self, key: SharePartitionKey, leader_epoch: int, done: StateRead) -> None:
        if self.read_code != ErrorCode.NONE:
            done(self.read_code, None)
            return
        self.epochs[key] = leader_epoch
        start = self.start.get(key, NO_OFFSET)
        found = sorted(self.offsets.get(key, {}).items())
        batches = tuple([batch._replace(first=at, last=at) for at, batch in found if at >= start])
        done(ErrorCode.NONE, ShareState(state_epoch=0, start_offset=start, batches=batches))

    def write_state(self, key: SharePartitionKey, update: StateUpdate, done: StateWritten) -> None:
        self.updates.append(update)
        if self.holds:
            self.held.append(lambda: self._write(key, update, done))
        else:
            self._write(key, update, done)

    def _write(self, key: SharePartitionKey, update: StateUpdate, done: StateWritten) -> None:
        code = self.write_code
        if code == ErrorCode.NONE and update.leader_epoch < self.epochs.get(key, 0):
            code = ErrorCode.FENCED_LEADER_EPOCH
        if code == ErrorCode.NONE:
            if update.start_offset != NO_OFFSET:
                self.start[key] = update.start_offset
            offsets = self.offsets.setdefault(key, {})
            for batch in update.batches:
                for at in range(batch.first, batch.last + 1):
                    offsets[at] = batch
        done(code)

    def let_go(self) -> None:
        self.holds = False
        while self.held:
            self.held.pop(0)()


class ShareWorld(World):
    def __init__(self, path: Path, terms: Terms | None = None) -> None:
        super().__init__(path)
        self.persister = MemoryPersister()
        self.terms = terms if terms is not None else Terms(from_earliest=True)
        self.shares = ShareManager(
            self.replicas,
            self.persister,
            timer=self.timer,
            clock_ms=self.now_ms,
            monotonic_ms=lambda: self.clock.now_ms,
            call_soon=self.loop.call_soon,
            terms_of=lambda _group: self.terms,
        )
        self.replicas.on_readable = self.shares.partition_moved_on
        self.replicas.on_leadership.append(self.shares.on_leadership)
        self.lead()
        self.sessions: dict[str, ShareSession] = {}

    def close(self) -> None:
        self.shares.shutdown()
        super().close()

    def join(self, member: str = "a") -> ShareSession:
        session = self.shares.begin_session((GROUP, member), "", [(TOPIC_ID, 0)])
        assert session is not None
        self.sessions[member] = session
        return session

    def leave(self, member: str = "a") -> None:
        self.shares.end_session(self.sessions.pop(member))
        self.settle()

    def share_fetch(
        self,
        member: str = "a",
        *,
        wait_ms: int = 500,
        min_bytes: int = 1,
        max_bytes: int = 1 << 20,
        max_records: int = 500,
        strict: bool = False,
        batch_size: int = 0,
    ) -> list[Results]:
        """The list gets the answer; it is empty while the fetch waits."""
        if member not in self.sessions:
            self.join(member)
        terms = ShareTerms(GROUP, member, wait_ms, min_bytes, max_bytes, max_records, batch_size, strict)
        over: list[Results] = []
        self.give_ups: list[Callable[[], None]] = []
        fetch = ShareFetch(self.shares, terms, [Target((TOPIC_ID, 0), "t")], over.append, self.give_ups.append)
        self.fetch_in_progress = fetch
        fetch.start()
        return over

    def acquire(self, member: str = "a", **options: Any) -> list[tuple[int, int, int]]:
        (results,) = self.share_fetch(member, wait_ms=0, **options)
        return pieces(results)

    def acknowledge(self, first: int, last: int, kind: int, member: str = "a", delay_ms: int = 0) -> list[ErrorCode]:
        codes: list[ErrorCode] = []
        self.leader().acknowledge(member, [Acknowledgement(first, last, (kind,), delay_ms)], codes.append)
        return codes

    def leader(self) -> ShareLeader:
        found = self.shares.known(GROUP, TOPIC_ID, 0)
        assert found is not None
        return found


def pieces(results: Results) -> list[tuple[int, int, int]]:
    result = results.get((TOPIC_ID, 0))
    return [] if result is None else [(each.first, each.last, each.deliveries) for each in result.acquired]


def code_of(results: Results) -> ErrorCode:
    return results[TOPIC_ID, 0].code


def offsets_in(results: Results) -> list[int]:
    data = joined([results[TOPIC_ID, 0].records])
    return [int(record.offset) for view in iter_batches(data) for record in view.records()]
