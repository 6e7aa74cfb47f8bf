"""Broken brokers that lose records of a share group, deliver finished ones again, or deliver early."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from devtools.sim.mutate import put
from ixion.broker.coordinators.share import stored
from ixion.broker.coordinators.share.coordinator import ShareCoordinator
from ixion.broker.coordinators.share.pruning import Pruning
from ixion.broker.replica.share_persister import StateUpdate
from ixion.broker.share import leader
from ixion.broker.share.leader import ShareLeader, Write
from ixion.broker.share.letter_writer import AT_ONCE, LetterWriter
from ixion.broker.share.partition import SharePartition
from ixion.broker.share.states import ARCHIVED, ARCHIVING
from ixion.broker.share.timetable import Timetable
from ixion.language.model.errors import ErrorCode


def answered_unstored() -> None:
    """An acknowledgement is answered before it is stored."""
    real = ShareLeader._submit

    def submit(self: ShareLeader, write: Write) -> None:
        done = write.done
        if done is not None:
            done(ErrorCode.NONE)
            write = write._replace(done=lambda _: None)
        real(self, write)

    put(ShareLeader, "_submit", submit)


def lock_outlives_session() -> None:
    """The records of a member stay locked when its session ends."""
    put(ShareLeader, "release", lambda *_: None)


def deferred_forgotten() -> None:
    """A new leader does not wake for deferred records that an earlier one has stored."""
    real = SharePartition.load

    def load(self: SharePartition, *given: Any) -> None:
        real(self, *given)
        self.timetable = Timetable(self.start)

    put(SharePartition, "load", load)


def due_unstored() -> None:
    """The time of a deferred record is not stored with it."""
    real = leader.stored
    put(leader, "stored", lambda change: real(change)._replace(due_ms=0))


def pruned_too_far() -> None:
    """The log of the stored states is deleted up to the newest snapshot, not up to the oldest one that is needed."""

    def needed(self: Pruning, shard: Any) -> int:
        return max([state.snapshot_offset for state in shard.states.values()], default=self._log.end(shard.number))

    put(Pruning, "_needed_from", needed)


def snapshot_without_batches() -> None:
    """A snapshot has the start offset only, not what became of the records behind it."""
    put(stored, "_packed", lambda _: bytes([stored.EMPTY]))


def earlier_leader_writes() -> None:
    """The share coordinator takes writes of a leader although a later one has read the state."""
    real = ShareCoordinator.write

    def write(self: ShareCoordinator, key: Any, update: StateUpdate, done: Any) -> None:
        found = self._find(key)
        if isinstance(found, tuple):
            update = replace(update, leader_epoch=max(update.leader_epoch, found[1].leader_epoch))
        real(self, key, update, done)

    put(ShareCoordinator, "write", write)


def archived_without_letter() -> None:
    """A record is archived although its dead letter could not be written, as Apache Kafka does."""
    real = LetterWriter._sent

    def sent(self: LetterWriter, written: Any, fault: Any) -> None:
        core = self._leader.core
        if fault is not None and core is not None:
            self._leader.lettered(core.without_letter(AT_ONCE), "dead letter written")
        real(self, written, fault)

    put(LetterWriter, "_sent", sent)


def letter_forgotten() -> None:
    """A new leader takes records that wait for their dead letter for finished ones."""
    real = SharePartition.load

    def load(self: SharePartition, runs: Any, *given: Any) -> None:
        real(self, [run._replace(state=ARCHIVED if run.state == ARCHIVING else run.state) for run in runs], *given)

    put(SharePartition, "load", load)


SHARE_MUTANTS: Final[tuple[Callable[[], None], ...]] = (
    answered_unstored,
    lock_outlives_session,
    deferred_forgotten,
    due_unstored,
    pruned_too_far,
    snapshot_without_batches,
    earlier_leader_writes,
    archived_without_letter,
    letter_forgotten,
)
