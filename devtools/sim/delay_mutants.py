"""Broken brokers that deliver delayed records early, twice, or not at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from devtools.sim.mutate import put
from ixion.broker.log import reader
from ixion.broker.log.log import NO_BARRIER, Log
from ixion.broker.log.view import Bound
from ixion.broker.replica.delivery_delay import DeliveryDelays
from ixion.broker.replica.partition import Partition
from ixion.broker.schedules.sender import Sender
from ixion.broker.schedules.targets import Targets
from ixion.language.model.errors import KafkaError
from ixion.language.records.batch import BatchView
from ixion.language.records.builder import BatchBuilder


def followers_hide() -> None:
    """A follower does not look for records that have become due (delivery.delay.mode=fixed)."""
    real = DeliveryDelays._look

    def look(self: DeliveryDelays, barrier: Any) -> None:
        if barrier.partition.leads:
            real(self, barrier)

    put(DeliveryDelays, "_look", look)


def followers_show_at_once() -> None:
    """A follower shows its consumers records that are not due (delivery.delay.mode=fixed)."""
    real = DeliveryDelays.follow

    def follow(self: DeliveryDelays, partition: Partition) -> None:
        real(self, partition)
        if not partition.leads:
            self.forget(partition.key)
            partition.log.visible_end = NO_BARRIER

    put(DeliveryDelays, "follow", follow)


def followers_show_what_is_not_committed() -> None:
    """A consumer that reads from a follower is shown records before they are committed."""
    put(
        reader,
        "limit_of",
        lambda log, bound: log.end_offset if bound == Bound.END else min(log.end_offset, log.visible_end),
    )


def followers_count_half() -> None:
    """A follower shows its consumers records after half of the delay (delivery.delay.mode=fixed)."""
    real = DeliveryDelays._look

    def look(self: DeliveryDelays, barrier: Any) -> None:
        whole_ms = barrier.delay_ms
        if not barrier.partition.leads:
            barrier.delay_ms = whole_ms // 2
        real(self, barrier)
        barrier.delay_ms = whole_ms

    put(DeliveryDelays, "_look", look)


def barrier_survives_truncation() -> None:
    """What a follower may show is not lowered with its log: what it then copies is shown at once."""
    real = Log.truncate_to

    def truncate_to(self: Log, offset: int) -> bool:
        shown = self.visible_end
        cut = real(self, offset)
        self.visible_end = shown
        return cut

    put(Log, "truncate_to", truncate_to)


def send_unnoted() -> None:
    """A schedule topic sends before its replicas know that it does, so that a new leader sends again."""

    async def commit(*_: Any) -> None:
        pass

    put(Sender, "_commit", commit)


def unknown_is_refused() -> None:
    """A schedule topic takes a delivery whose outcome it does not know for a refused one, and sends it as a new one."""
    real = Sender._send

    async def send(self: Sender, *given: Any) -> int:
        try:
            return await real(self, *given)
        except KafkaError:
            state = self._schedule.state
            if state is not None and state.sending is not None:
                self._withdraw(state.sending)
            raise

    put(Sender, "_send", send)


def delivery_without_sequence() -> None:
    """A schedule topic delivers without sequence numbers, so that a delivery that is repeated is there twice."""
    real = Sender._batch

    async def never(*_: Any) -> bool:
        return False

    def batch(self: Sender, *given: Any) -> bytes:
        builder = BatchBuilder(leader_epoch=-1)
        for record in BatchView(real(self, *given), 0).records():
            builder.append_copy(record)
        return builder.build()

    put(Sender, "_batch", batch)
    put(Targets, "has", never)


def delivered_unanswered() -> None:
    """A schedule topic notes a delivery as done although the leader of the target has not confirmed it."""
    real = Sender._send

    async def send(self: Sender, *given: Any) -> int:
        try:
            return await real(self, *given)
        except KafkaError:
            return -1

    put(Sender, "_send", send)


DELAY_MUTANTS: Final[tuple[Callable[[], None], ...]] = (
    followers_hide,
    followers_show_at_once,
    followers_show_what_is_not_committed,
    delivery_without_sequence,
    delivered_unanswered,
)
# Rules that one load alone can see, each with that load; the faults are drawn from all.
OF_ONE_LOAD: Final[dict[Callable[[], None], str]] = {
    followers_count_half: "nearest",
    barrier_survives_truncation: "nearest",
    send_unnoted: "scheduled",
    unknown_is_refused: "scheduled",
}
