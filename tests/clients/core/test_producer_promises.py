"""What a caller may rely on: a missing topic, partition or broker holds up nothing else, and burns no processor."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ixion.clients.core.client import ClientSettings
from ixion.clients.core.producer.partitioner import keyed_partition
from ixion.clients.core.producer.settings import ProducerSettings
from ixion.clients.core.producer.turns import Turns
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k00_produce import ProduceRequest, ProduceResponse
from ixion.language.protocol.registry import ApiKey
from ixion.language.wire import RequestFrame
from tests.clients.core.sim import TOPIC, Simulation, Wire
from tests.clients.core.transactional import TransactionalSimulation


def started(settings: ProducerSettings | None = None, *, partitions: int = 2) -> Simulation:
    sim = Simulation(1, settings or ProducerSettings(), partitions=partitions, trouble=0.0)
    assert not sim.send(b"first", 0)
    sim.run(1.0)
    return sim


def test_a_transaction_goes_on_when_its_coordinator_is_shut_down() -> None:
    sim = TransactionalSimulation(nodes=3)
    sim.machine.seal_all()
    sim.run(1)
    sim.shut_down(0)
    sim.coordinator = 1
    assert sim.send(b"second", 1)
    sim.machine.commit()
    sim.run(20)
    assert sim.transactions.is_settled
    sim.transactions.check()
    assert sim.ends == [True]


def test_a_coordinator_out_of_reach_is_looked_for_with_pauses() -> None:
    sim = TransactionalSimulation(nodes=3)
    sim.machine.seal_all()
    sim.run(1)
    sim.shut_down(0)  # and the others still name it
    sim.machine.commit()
    before = sim.asked[ApiKey.FIND_COORDINATOR]
    sim.run(30)
    assert 10 < sim.asked[ApiKey.FIND_COORDINATOR] - before < 60
    sim.coordinator = 2
    sim.run(10)
    assert sim.ends == [True]


@pytest.mark.parametrize("keys", [range(40), range(100, 140)])
def test_a_topic_that_came_back_smaller_gets_records_for_the_partitions_that_it_has(keys: range) -> None:
    sim = started(partitions=5)
    for key in keys:
        assert sim.machine.append(TOPIC, None, b"%d" % key, b"old", (), 1, None, sim.now_s) is not None
    for _ in range(3):
        assert sim.machine.append(TOPIC, None, None, b"old", (), 1, None, sim.now_s) is not None
    sim.run(5)
    del sim.leaders[2:], sim.logs[2:], sim.epochs[2:]
    sim.topic_id = b"u" * 16
    sim.machine.client.cluster.mark_stale()
    sim.run(5)
    for key in keys:
        batch = sim.machine.append(TOPIC, None, b"%d" % key, b"new", (), 1, None, sim.now_s)
        assert batch is not None
        assert batch.place.partition == keyed_partition(b"%d" % key, 2)
    for _ in range(3):
        batch = sim.machine.append(TOPIC, None, None, b"new", (), 1, None, sim.now_s)
        assert batch is not None
        assert batch.place.partition < 2
    sim.finish(5)
    assert sum(log.values.count(b"new") for log in sim.logs) == len(keys) + 3


class Held(Simulation):
    """Produce requests wait for `answer`; each may be refused."""

    def __init__(self, settings: ProducerSettings) -> None:
        super().__init__(1, settings, nodes=1, partitions=1, trouble=0.0)
        self.held: list[Callable[[], None]] = []
        self.holds = False
        self.code = ErrorCode.NONE

    def handle(self, wire: Wire, frame: RequestFrame) -> None:
        if self.holds and frame.api_key == ApiKey.PRODUCE:
            handle = super().handle
            self.held.append(lambda: handle(wire, frame))
        else:
            super().handle(wire, frame)

    def answer(self, code: ErrorCode) -> None:
        """The oldest held request gets this answer."""
        self.code = code
        self.held.pop(0)()
        self.run(0.1)
        self.code = ErrorCode.NONE

    def _produce(self, node: int, request: ProduceRequest, fault: str) -> ProduceResponse:
        if self.code == ErrorCode.NONE:
            return super()._produce(node, request, fault)
        self.logs, kept = [type(log)() for log in self.logs], self.logs
        answer = super()._produce(node, request, fault)
        self.logs = kept
        refused = [
            topic.replace(
                partition_responses=tuple(part.replace(error_code=self.code) for part in topic.partition_responses)
            )
            for topic in answer.responses
        ]
        return answer.replace(responses=tuple(refused))


def test_a_batch_that_waits_for_others_in_flight_expires_like_any_other() -> None:
    """Its time was up, nobody settled it, and the producer asked to be woken at once, for ever."""
    settings = ProducerSettings(
        client=ClientSettings(request_timeout_s=100.0), batch_size=60, linger_s=0.0, delivery_timeout_s=20.0
    )
    sim = Held(settings)
    while not sim.send(b"first", 0):
        sim.run(0.1)
    sim.run(1)
    sim.holds = True
    assert sim.send(b"returned" * 8, 0)
    sim.run(0.1)
    assert sim.send(b"flying" * 8, 0)
    sim.run(0.1)
    assert len(sim.held) == 2
    sim.answer(ErrorCode.NOT_ENOUGH_REPLICAS)
    for _ in range(50):
        sim.run(0.5)
        assert sim.machine.wake_s > sim.now_s, "it would be woken at once, without end"
    (lost,) = sim.heard[b"returned" * 8]
    assert lost.error is not None
    assert lost.error.code == ErrorCode.REQUEST_TIMED_OUT
    sim.holds = False
    while sim.held:
        sim.answer(ErrorCode.NONE)
    sim.send(b"last", 0)
    sim.finish()
    assert sim.logs[0].values[-1] == b"last"


def test_a_missing_topic_holds_up_only_its_own_records() -> None:
    known = {"here", "there"}
    turns = Turns(known)
    missing = turns.take("missing")
    assert turns.is_next(missing)
    assert not turns.needs_room  # batches may linger
    assert turns.is_free("here")
    assert not turns.is_free("missing")
    again = turns.take("missing")
    assert not turns.is_next(again)
    turns.give_up(missing)
    assert turns.is_next(again)


def test_records_that_wait_for_room_come_first_come_first_served() -> None:
    known = {"here", "there"}
    turns = Turns(known)
    first = turns.take("here")
    second = turns.take("there")
    missing = turns.take("missing")
    assert turns.needs_room
    assert [turns.is_next(turn) for turn in (first, second)] == [True, False]
    assert not turns.is_free("there")
    known.add("missing")  # its metadata has come: it needs room, too
    assert not turns.is_next(missing)
    turns.give_up(first)
    turns.give_up(second)
    assert turns.is_next(missing)
