"""Broken brokers, each with one rule taken out: the simulator must find them (`--mutant NAME`).

The numbers are those of the known ways in which Kafka lost data or stood still; docs/reliability.md has the table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import ixion.broker.controller.cluster.broker_changes as broker_changes
import ixion.broker.controller.cluster.isr as controller_isr
import ixion.broker.controller.cluster.take_over as take_over
import ixion.broker.replica.fetch_requests as fetch_requests
import ixion.broker.replica.fetcher as fetcher
import ixion.broker.replica.followed as followed
from devtools.sim.client_mutants import CLIENT_MUTANTS
from devtools.sim.delay_mutants import DELAY_MUTANTS, OF_ONE_LOAD
from devtools.sim.log_mutants import LOG_MUTANTS
from devtools.sim.mutate import put
from devtools.sim.share_mutants import SHARE_MUTANTS
from ixion.broker.controller.cluster import channels, elections, isr_rules, leftovers, partition_machine, restarts
from ixion.broker.controller.cluster.fenced_tree import FencedTree
from ixion.broker.controller.cluster.leadership import Leadership
from ixion.broker.controller.cluster.registered import registered_brokers
from ixion.broker.log import snapshot_file
from ixion.broker.log.log import Log
from ixion.broker.log.mover import Mover
from ixion.broker.log.partition_logs import Pair, PartitionLogs
from ixion.broker.metadata.node import ANY_VERSION, Check
from ixion.broker.replica.control import Control
from ixion.broker.replica.isr_changes import IsrChanges
from ixion.broker.replica.manager import ReplicaManager
from ixion.broker.replica.partition import Partition
from ixion.broker.replica.read import LogReader
from ixion.broker.startup.renewing import Renewal
from ixion.broker.startup.reopening import Reopening
from ixion.language.model.errors import ErrorCode
from ixion.language.model.topic_partition import NO_LOG


def truncate_to_high_watermark() -> None:
    """1: a follower cuts its log to its high watermark before it fetches."""
    put(followed, "start_offset", lambda log: min(log.high_watermark, log.end_offset))


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


def restart_between() -> None:
    """10: a new controller trusts brokers that restarted while there was no controller."""

    async def nobody(_: Any) -> dict[Any, Any]:
        return {}

    put(take_over, "restarted_members", nobody)


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
    """The leader epoch stays when the controller changes the leader."""
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


def unfenced_fetches() -> None:
    """8 (Kip279): a leader looks neither at the leader epoch of a fetch nor at that of the follower's last record."""
    any_fetch_epoch()
    real = LogReader._read

    def read(self: LogReader, result: Any) -> None:
        result.wish.last_epoch = -1
        real(self, result)

    put(LogReader, "_read", read)


def any_life() -> None:
    """6: a leader does not say in which life a follower has caught up, so that an empty disk joins the ISR."""
    real = IsrChanges._member

    def member(self: IsrChanges, number: int, epochs: Any) -> Any:
        return real(self, number, epochs).replace(broker_epoch=-1)

    put(IsrChanges, "_member", member)


def own_epoch_only() -> None:
    """11: a broker refuses requests for a later life than it knows of."""
    real = Control._fence

    async def fence(self: Control, name: str, controller_epoch: int, broker_epoch: int) -> ErrorCode:
        if broker_epoch != self._broker_epoch():
            return ErrorCode.STALE_BROKER_EPOCH
        return await real(self, name, controller_epoch, broker_epoch)

    put(Control, "_fence", fence)


def version_for_ever() -> None:
    """12: a leader keeps the partition epoch of its first role, and every later ISR change of it is refused."""
    real = ReplicaManager.lead

    def lead(self: ReplicaManager, topic: str, number: int, *given: Any, **named: Any) -> Any:
        before = self.partitions.get((topic, number))
        known = -1 if before is None else before.partition_epoch
        partition = real(self, topic, number, *given, **named)
        if known >= 0:
            self.partitions[topic, number].partition_epoch = known
        return partition

    put(ReplicaManager, "lead", lead)


def stop_by_anybody() -> None:
    """15: StopReplica counts whatever leader epoch it has, and whatever life of the broker it was meant for."""
    put(Control, "_may_stop", lambda *_: ErrorCode.NONE)
    real = Control._fence

    async def fence(self: Control, name: str, controller_epoch: int, broker_epoch: int) -> ErrorCode:
        if name == "StopReplica":
            return ErrorCode.NONE
        return await real(self, name, controller_epoch, broker_epoch)

    put(Control, "_fence", fence)


def epoch_first() -> None:
    """16: a broker notes the leader epoch of a role before it has taken it, so that a repeated request does nothing."""
    real = Control._check

    def check(self: Control, role: Any) -> ErrorCode:
        code = real(self, role)
        partition = self._replicas.partitions.get(role.key)
        if code == ErrorCode.NONE and partition is not None:
            partition.leader_epoch = role.state.leader_epoch
            if not partition.leads and role.state.leader != self._replicas.node_id:
                return ErrorCode.STALE_CONTROLLER_EPOCH  # the rest of the transition is lost
        return code

    put(Control, "_check", check)


def same_leader() -> None:
    """4: a follower goes on as before when the leader epoch is new, and the leader is not."""
    real = Control._check

    def check(self: Control, role: Any) -> ErrorCode:
        code = real(self, role)
        partition = self._replicas.partitions.get(role.key)
        if code != ErrorCode.NONE or partition is None or partition.leads:
            return code
        return ErrorCode.STALE_CONTROLLER_EPOCH if role.state.leader == partition.leader_id >= 0 else code

    put(Control, "_check", check)


def same_session() -> None:
    """18: a follower goes on with its fetch session after a fault."""
    put(fetch_requests.FetchRequests, "start_over", lambda _: None)


def stable_is_committed() -> None:
    """19: read_committed sees everything below the high watermark."""
    put(Log, "last_stable_offset", property(lambda self: self.high_watermark))


def expired_for_good() -> None:
    """20: a broker whose session has expired does not register again."""
    put(Renewal, "expired", lambda _: None)


def full_for_ever() -> None:
    """Partitions that could not be opened on a full disk stay offline when there is room."""
    put(Reopening, "look", lambda _: None)


def absent_forgotten() -> None:
    """7: replicas that may have lost records lead, although others that have them all are away."""
    for module in (partition_machine, restarts):
        put(module, "awaited", lambda *_: [])


def logs_left_behind() -> None:
    """The controller forgets brokers that did not confirm that they deleted the log of a moved replica."""
    put(leftovers, "after", lambda _before, replicas: replicas)


def empty_leads() -> None:
    """7: a replica whose disk was replaced is taken for one that does not say how much it has."""
    real = ReplicaManager.end_of_log

    def end_of_log(self: ReplicaManager, topic: str, number: int) -> tuple[int, int] | None:
        end = real(self, topic, number)
        return None if end == NO_LOG else end

    put(ReplicaManager, "end_of_log", end_of_log)
    put(channels, "NO_LOG", (1 << 30, 0))


def one_batch_only() -> None:
    """A leader that starts knows the last batch of each producer only, as Apache Kafka does."""
    put(snapshot_file, "decode_trailer", lambda _data, _entries: True)


def sibling_stays() -> None:
    """Delayed records stay in the old log directory when their partition moves to another."""
    real = PartitionLogs.make_copies

    def make_copies(self: PartitionLogs, directory: Any) -> list[Pair]:
        return [pair for pair in real(self, directory) if pair[0].topic == self.key[0]]

    put(PartitionLogs, "make_copies", make_copies)
    put(PartitionLogs, "may_put_in_place", lambda *_: True)


def sibling_keeps_settings() -> None:
    """New settings of a topic do not reach the logs of its delayed records."""
    put(PartitionLogs, "reconfigure", lambda self, config: self._apply(self.key, config))


def move_unseen() -> None:
    """A replica goes on with the log in the old directory after a move."""
    real = Mover.__init__

    def init(self: Mover, *given: Any) -> None:
        real(self, *given[:4])

    put(Mover, "__init__", init)


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
        restart_between,
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
        unfenced_fetches,
        any_life,
        own_epoch_only,
        version_for_ever,
        stop_by_anybody,
        epoch_first,
        same_leader,
        same_session,
        stable_is_committed,
        expired_for_good,
        full_for_ever,
        empty_leads,
        one_batch_only,
        absent_forgotten,
        logs_left_behind,
        sibling_stays,
        sibling_keeps_settings,
        move_unseen,
        *LOG_MUTANTS,
        *DELAY_MUTANTS,
        *OF_ONE_LOAD,
        *CLIENT_MUTANTS,
        *SHARE_MUTANTS,
    )
}


# The faults and the load that a mutant is hunted with; else all of them. A swarm of seeds draws such a choice now and
# then; to draw it every time saves most of the seeds.
HINTS: Final[dict[str, tuple[str, str]]] = {
    "cut-once": ("silent-flip", "none"),
    "any-fetch-epoch": ("late-fetch", "none"),
    "unfenced-fetches": ("flip,topple", "none"),
    "epoch-by-append": ("silent-flip", "none"),
    "join-at-high-watermark": ("stale-mark", "none"),
    "unfenced-writes": ("late-write", "none"),
    "any-controller": ("late-update", "none"),
    "diverging-fetch-counts": ("flip,late-fetch,alone,topple", "none"),
    "restart-between": ("wiped-between", "none"),
    "shrink-at-once": ("late-shrink", "none"),
    "grow-late": ("late-grow", "none"),
    "stale-isr-answer": ("late-answer", "none"),
    "dead-in-isr": ("late-leave", "none"),
    "answers-of-the-past": ("late-records", "none"),
    "any-life": ("late-join", "none"),
    "own-epoch-only": ("slow-register", "none"),
    "version-for-ever": ("elect,cut,pause", "none"),
    "stop-by-anybody": ("late-stop", "none"),
    "epoch-first": ("elect,kill", "none"),
    "same-leader": ("expire,kill", "none"),
    "same-session": ("reset,cut,slow", "none"),
    "stable-is-committed": ("kill", "transactions"),
    "expired-for-good": ("expire,kill", "none"),
    "full-for-ever": ("start-full", "none"),
    "empty-leads": ("last-wiped", "none"),
    "one-batch-only": ("stop,isolate,alone,kill", "none"),
    "absent-forgotten": ("wiped-between", "moves"),
    "logs-left-behind": ("kill", "moves"),
    **{each.__name__.replace("_", "-"): ("", job) for each, job in {**CLIENT_MUTANTS, **OF_ONE_LOAD}.items()},
    **{each.__name__.replace("_", "-"): ("", "shares") for each in SHARE_MUTANTS},
}


def apply(name: str) -> None:
    MUTANTS[name]()
