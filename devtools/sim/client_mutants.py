"""Broken clients, each with one rule taken out, beside the broken brokers of `mutants`.

The mutants are the causes of faults that our clients once had.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from devtools.sim.mutate import put
from ixion.clients.core.client import COORDINATOR, Client
from ixion.clients.core.connection import ConnectionMachine
from ixion.clients.core.consumer.commits import Commit
from ixion.clients.core.consumer.coordinator import Coordinator
from ixion.clients.core.consumer.fetcher import Fetcher
from ixion.clients.core.consumer.group import Group
from ixion.clients.core.consumer.machine import ConsumerMachine
from ixion.clients.core.consumer.positions import Positions
from ixion.clients.core.producer.machine import ProducerMachine
from ixion.clients.core.producer.sender import Sender
from ixion.clients.core.producer.transactions import ABORTING, INITIALIZING, READY, Transactions


def commit_before_handed_out() -> None:
    """An automatic commit covers records that poll has taken and not returned yet."""

    def enter(self: ConsumerMachine, now_s: float) -> None:
        self._is_inside = True
        self._try_to_get_in()
        if self.group is not None:
            self.group.enter(now_s)

    put(ConsumerMachine, "enter", enter)
    put(ConsumerMachine, "_may_commit", property(lambda self: self._is_inside))


def aborted_part_left() -> None:
    """A batch that is refused as too large during an abort is split, and its parts wait for the next transaction."""
    real = ProducerMachine.drop_unsent

    def abort(self: ProducerMachine) -> None:
        self.the_transactions().abort()
        self.sender.refused = None
        real(self)
        self.sender.is_awake = True

    def finish(self: Transactions, *, has_epoch: bool) -> None:
        self._is_deciding = False
        self._added.clear()
        self._to_add.clear()
        self._groups.clear()
        self.failure = None
        self.state = INITIALIZING if self.state == ABORTING and not has_epoch else READY
        self._is_empty = True

    put(Sender, "_is_aborting", property(lambda _: False))
    put(ProducerMachine, "abort", abort)
    put(ProducerMachine, "drop_unsent", lambda _: None)
    put(Transactions, "_finish", finish)


def no_wake_up_for_the_policy() -> None:
    """Nothing is committed, so the policy decides; but nobody wakes the machine to ask for the offset."""
    real = Positions._take

    def take(self: Positions, placing: Any, now_s: float) -> None:
        wake_s = self._wake_s
        real(self, placing, now_s)
        self._wake_s = wake_s

    put(Positions, "_take", take)


def coordinator_for_ever() -> None:
    """A coordinator that is missing from the metadata is waited for, as long as it is away."""
    real = Coordinator.ready

    def ready(self: Coordinator, now_s: float) -> ConnectionMachine | None:
        is_missing = self._node_id >= 0 and self._node_id not in self.client.cluster.nodes
        if is_missing and self.client.ready(self._node_id | COORDINATOR, now_s) is None:
            self.client.cluster.mark_stale()
            return None
        return real(self, now_s)

    put(Client, "introduce", lambda *_: None)
    put(Coordinator, "ready", ready)


def revoked_handed_out() -> None:
    """Records of a partition are handed out while its revocation is under way."""
    put(Group, "_hold_back", lambda *_: None)


def last_commit_once() -> None:
    """The last automatic commit, at close and at revocation, is tried once and fails silently."""
    real = ConsumerMachine.commit_automatically

    def commit(self: ConsumerMachine, now_s: float, *, latest: bool = False) -> Commit | None:
        errand = real(self, now_s, latest=latest)
        if errand is not None:
            errand.retries = False
        return errand

    put(ConsumerMachine, "commit_automatically", commit)


def unknown_is_committed() -> None:
    """An automatic commit that the coordinator refuses, because it does not know the topic yet, counts as done."""
    put(Commit, "_leave_out", lambda self, *_: self.finish())


def reset_at_a_follower() -> None:
    """A follower that does not have the offset makes a consumer begin anew, although the leader has it."""
    real = Fetcher._take
    put(Fetcher, "_take", lambda self, state, offset, data, _, *given: real(self, state, offset, data, True, *given))


# With the load that each is hunted with; the faults are drawn from all.
CLIENT_MUTANTS: Final[dict[Callable[[], None], str]] = {
    commit_before_handed_out: "clients",
    aborted_part_left: "client-copies",
    no_wake_up_for_the_policy: "clients",
    coordinator_for_ever: "clients",
    revoked_handed_out: "clients",
    last_commit_once: "clients",
    unknown_is_committed: "clients",
    reset_at_a_follower: "nearest",
}
