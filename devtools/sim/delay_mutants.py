"""Broken brokers that deliver delayed records early, twice, or not at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from devtools.sim.mutate import put
from ixion.broker.log import reader
from ixion.broker.log.log import NO_BARRIER
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
