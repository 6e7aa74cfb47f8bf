"""`partitioner.availability.timeout.ms` (KIP-794): records without a key avoid a broker that takes no batches."""

from __future__ import annotations

import pytest

from ixion.clients.core.producer.settings import ProducerSettings
from ixion.language.protocol.registry import ApiKey
from ixion.language.wire import RequestFrame
from tests.clients.core.sim import Simulation, Wire


class OneSilent(Simulation):
    is_silent = True

    def handle(self, wire: Wire, frame: RequestFrame) -> None:
        if self.is_silent and wire.node == 1 and frame.api_key == ApiKey.PRODUCE:
            self.at(1.0, lambda: self.handle(wire, frame))  # later
            return
        super().handle(wire, frame)


def chosen(sim: Simulation, rounds: int) -> set[int]:
    """The partitions of records that are sent one after the other, a batch each."""
    found = set()
    for _ in range(rounds):
        heard: list[object] = []
        batch = sim.machine.append("orders", None, None, b"x" * 100, (), 1, heard.append, sim.now_s)
        if batch is not None:
            found.add(batch.place.partition)
        sim.run(0.05)
    return found


@pytest.mark.parametrize("adaptive", [True, False])
def test_a_broker_that_holds_up_batches_is_avoided_until_it_takes_them(adaptive: bool) -> None:
    settings = ProducerSettings(
        batch_size=90, linger_s=0.0, availability_timeout_s=0.5, adaptive_partitioning=adaptive, delivery_timeout_s=900
    )
    sim = OneSilent(3, settings, nodes=2, partitions=2, trouble=0.0)
    sim.leaders = [0, 1]
    assert chosen(sim, 60) == {0, 1}  # within this time broker 1 was found out
    assert chosen(sim, 100) == ({0} if adaptive else {0, 1})
    sim.is_silent = False
    sim.run(3)
    assert chosen(sim, 100) == {0, 1}
    sim.finish()


def test_it_is_off_by_default() -> None:
    sim = OneSilent(3, ProducerSettings(batch_size=90, linger_s=0.0, delivery_timeout_s=900), nodes=2, trouble=0.0)
    sim.leaders = [0, 1]
    chosen(sim, 160)
    assert not sim.machine.sender.stuck
    sim.is_silent = False
    sim.finish()
