"""Reading from a follower that the leader names (KIP-392): for a while, and not longer than it can serve."""

from __future__ import annotations

from ixion.clients.core.consumer.machine import ConsumerMachine
from ixion.clients.core.consumer.settings import ConsumerSettings
from ixion.clients.metadata import TopicPartition
from ixion.language.protocol.messages.k01_fetch import FetchRequest
from tests.clients.core.consumer_sim import TOPIC, ConsumerSimulation

AGE_S = 60.0
HERE = ConsumerSettings(auto_offset_reset="earliest", client_rack="here", metadata_max_age_ms=int(AGE_S * 1000))
A = TopicPartition(TOPIC, 0)


def near() -> tuple[ConsumerSimulation, ConsumerMachine]:
    """Its leader always sends it to the next broker, which has all records."""
    sim = ConsumerSimulation(1, trouble=0.0, partitions=1, racks=True)
    sim.choose.random = lambda: 0.4  # type: ignore[method-assign]
    sim.logs[0].append(5)
    machine = sim.consumer(settings=HERE)
    machine.assign([A])
    return sim, machine


def asked(sim: ConsumerSimulation) -> list[int]:
    """The brokers that were asked for records, each once in a row."""
    found: list[int] = []
    for node, _, request in sim.seen:
        if isinstance(request, FetchRequest) and found[-1:] != [node]:
            found.append(node)
    return found


def test_the_follower_that_the_leader_names_is_asked() -> None:
    sim, machine = near()
    leader = sim.leaders[0]
    assert len(sim.poll(machine, 5.0)) == 5
    assert asked(sim) == [leader, (leader + 1) % sim.nodes]
    requests = [request for _, _, request in sim.seen if isinstance(request, FetchRequest)]
    assert {request.rack_id for request in requests} == {"here"}


def test_the_leader_is_asked_again_when_the_metadata_is_old() -> None:
    sim, machine = near()
    leader = sim.leaders[0]
    follower = (leader + 1) % sim.nodes
    for _ in range(int(AGE_S * 1.5 / 5)):
        sim.logs[0].append(1)
        sim.poll(machine, 5.0)
        sim.run(5.0)
    assert asked(sim) == [leader, follower, leader, follower]


def test_an_offset_that_the_follower_does_not_have_is_asked_of_the_leader() -> None:
    sim, machine = near()
    leader = sim.leaders[0]
    assert len(sim.poll(machine, 5.0)) == 5
    sim.choose.random = lambda: 0.2  # type: ignore[method-assign]  # the follower is a batch behind
    sim.poll(machine, 5.0)
    assert asked(sim)[:3] == [leader, (leader + 1) % sim.nodes, leader]
    assert machine.subscription.position(A) == 5  # and nothing is reset
