"""Broken brokers, each with one rule taken out: the simulator must find them (`--mutant NAME`).

The numbers are those of the known ways in which Kafka lost data or stood still; docs/reliability.md has the table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import ixion.controller.cluster.broker_changes as broker_changes
import ixion.controller.cluster.isr as controller_isr
import ixion.replica.fetcher as fetcher
from ixion.broker.reopening import Reopening
from ixion.controller.cluster import channels, elections, isr_rules
from ixion.controller.cluster.fenced_tree import FencedTree
from ixion.controller.cluster.leadership import Leadership
from ixion.controller.cluster.registered import registered_brokers
from ixion.log.log import Log
from ixion.metadata.node import ANY_VERSION, Check
from ixion.model.errors import ErrorCode
from ixion.model.topic_partition import NO_LOG
from ixion.replica.control import Control
from ixion.replica.isr_changes import IsrChanges
from ixion.replica.manager import ReplicaManager
from ixion.replica.partition import Partition
from ixion.replica.read import LogReader


def put(owner: Any, name: str, instead: Any) -> None:
    assert hasattr(owner, name) or owner is Partition, f"{owner} has no {name}"
    setattr(owner, name, instead)


def truncate_to_high_watermark() -> None:
    """1: a follower cuts its log to its high watermark before it fetches."""
    put(fetcher, "start_offset", lambda log: min(log.high_watermark, log.end_offset))


def cut_once() -> None:
    """2 (KIP-279): a follower whose epoch the leader does not know cuts to what the leader says, and asks no more."""
    put(fetcher, "cut_at", lambda log, _epoch, end: min(end, log.end_offset))


def epoch_by_append() -> None:
    """3: a new leader notes its epoch with its first append only."""
    put(Log, "assign_epoch", lambda *_: None)


def join_at_high_watermark() -> None:
    """5: a follower joins the ISR at the leader's high watermark, although the leader's epoch began above it."""
    real = Partition.make_leader

    def make_leader(self: Partition, *given: Any) -> bool:
        anew = real(self, *given)
        self.epoch_start = 0
        return anew

    put(Partition, "make_leader", make_leader)


def any_fetch_epoch() -> None:
    """8: a leader serves followers that name another leader epoch."""

    def fault(self: Partition, _known_epoch: int, leader_only: bool = True) -> ErrorCode:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER if leader_only and not self.leads else ErrorCode.NONE

    put(Partition, "fault", fault)


def unfenced_writes() -> None:
    """9: a controller writes without a look at the controller epoch."""
    real = FencedTree.__init__

    def init(self: FencedTree, *given: Any) -> None:
        real(self, *given)
        self._check = Check(self._check.path, ANY_VERSION)

    put(FencedTree, "__init__", init)
    put(FencedTree, "close", lambda _: None)


def any_controller() -> None:
    """9: a broker obeys controllers of older epochs, too."""

    async def fence(self: Control, _name: str, controller_epoch: int, broker_epoch: int) -> ErrorCode:
        if 0 <= broker_epoch < self._broker_epoch():
            return ErrorCode.STALE_BROKER_EPOCH
        self._image.controller_epoch = controller_epoch
        return ErrorCode.NONE

    put(Control, "_fence", fence)


def restart_unseen() -> None:
    """10: the controller takes a broker that went and came back between two looks for the same one."""
    real = registered_brokers
    known: dict[int, Any] = {}

    async def registered(session: Any) -> Any:
        from dataclasses import replace

        found = await real(session)
        for number, member in list(found.items()):
            first = known.setdefault(number, member)
            if first.epoch != member.epoch:
                found[number] = replace(member, epoch=first.epoch)
        return found

    put(broker_changes, "registered_brokers", registered)


def diverging_fetch_counts() -> None:
    """17: a fetch whose log has diverged still moves the follower's place, and the high watermark with it."""
    real = LogReader._read

    def read(self: LogReader, result: Any) -> None:
        real(self, result)
        if result.diverging_epoch >= 0 and self._follower >= 0:
            partition = self._replicas.partitions[result.wish.key]
            wish = result.wish
            if partition.follower_fetched(
                self._follower, min(wish.offset, partition.log.end_offset), wish.log_start, self._follower_epoch
            ):
                self._replicas.high_watermark_moved(partition)

    put(LogReader, "_read", read)


def leader_alone() -> None:
    """acks=all is answered when the leader has the record."""

    def advance(self: Partition) -> bool:
        return self.leads and self.log.raise_high_watermark(self.log.end_offset)

    put(Partition, "advance_high_watermark", advance)


def shrink_at_once() -> None:
    """3.2: a smaller ISR counts before the controller has written it."""
    real = Partition._want_isr

    def want(self: Partition, isr: tuple[int, ...]) -> None:
        if len(isr) < len(self.isr):
            self.isr = isr
        real(self, isr)

    put(Partition, "_want_isr", want)


def grow_late() -> None:
    """3.2: a follower that is about to join the ISR does not hold the high watermark until the controller answers."""

    def advance(self: Partition) -> bool:
        if not self.leads or (self.followers and not self.enough_in_sync):
            return False
        ends = [each.end_offset for each in self.followers.values() if each.broker_id in self.isr]
        offset = min([self.log.end_offset, *ends])
        return offset >= 0 and self.log.raise_high_watermark(offset)

    put(Partition, "advance_high_watermark", advance)


def stale_isr_answer() -> None:
    """13: an answer of AlterPartition counts although a newer LeaderAndIsr has come in between."""
    put(Partition, "still_wants", lambda self, _: self.leads)
    real = IsrChanges._settle

    def settle(self: IsrChanges, change: Any, answer: Any) -> bool:
        if answer is not None and answer.error_code == 0:
            self._confirm(change.partition, answer)
            return True
        return real(self, change, answer)

    put(IsrChanges, "_settle", settle)


def dead_in_isr() -> None:
    """14: the controller takes brokers into the ISR that are not registered, or in an earlier life."""
    real = isr_rules.judge

    def judge(known: Any, replicas: Any, wanted: Any, _live: Any, _stopping: Any) -> Leadership | ErrorCode:
        verdict: Leadership | ErrorCode = real(known, replicas, wanted, dict(wanted.isr), ())
        return verdict

    put(controller_isr, "judge", judge)
    put(Partition, "is_alive", property(lambda _: lambda _: True, lambda *_: None))


def unclean() -> None:
    """7: a replica outside the ISR is elected when no other lives."""
    real = elections.after_leader_loss

    def elect(replicas: Any, known: Any, online: Any, _unclean: bool = False) -> Leadership | None:
        return real(replicas, known, online, True)

    put(elections, "after_leader_loss", elect)


def answers_of_the_past() -> None:
    """17: a follower appends the answer to a fetch that it made in an earlier role or from another offset."""
    put(fetcher.Fetcher, "_is_current", lambda *_: True)


def same_epoch() -> None:
    """4: the leader epoch stays when the controller changes the leader."""
    from dataclasses import replace

    def following(self: Leadership, leader: int, isr: tuple[int, ...], recovering: bool = False) -> Leadership:
        return replace(self, leader=leader, isr=isr, recovering=recovering)

    put(Leadership, "next", following)


def no_producer_state() -> None:
    """A follower does not keep the sequence numbers of producers, so that a repeated batch is appended twice."""
    real = Log.append_as_follower

    def append(self: Log, records: Any, now_ms: int = -1) -> Any:
        info = real(self, records, now_ms)
        self.producers.producers.clear()
        return info

    put(Log, "append_as_follower", append)


def full_for_ever() -> None:
    """Partitions that could not be opened on a full disk stay offline when there is room."""
    put(Reopening, "look", lambda _: None)


def empty_leads() -> None:
    """7: a replica whose disk was replaced is taken for one that does not say how much it has."""
    real = ReplicaManager.end_of_log

    def end_of_log(self: ReplicaManager, topic: str, number: int) -> tuple[int, int] | None:
        end = real(self, topic, number)
        return None if end == NO_LOG else end

    put(ReplicaManager, "end_of_log", end_of_log)
    put(channels, "NO_LOG", (1 << 30, 0))


MUTANTS: Final[dict[str, Callable[[], None]]] = {
    each.__name__.replace("_", "-"): each
    for each in (
        truncate_to_high_watermark,
        cut_once,
        epoch_by_append,
        join_at_high_watermark,
        any_fetch_epoch,
        unfenced_writes,
        any_controller,
        restart_unseen,
        diverging_fetch_counts,
        leader_alone,
        shrink_at_once,
        grow_late,
        stale_isr_answer,
        dead_in_isr,
        unclean,
        answers_of_the_past,
        same_epoch,
        no_producer_state,
        full_for_ever,
        empty_leads,
    )
}


def apply(name: str) -> None:
    MUTANTS[name]()
