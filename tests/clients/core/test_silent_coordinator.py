"""The coordinator's machine is lost while it holds a join or a sync: no answer comes, and the connection stays open."""

from __future__ import annotations

import pytest

from ixion.clients.core.consumer.settings import ConsumerSettings
from ixion.language.protocol.messages.k11_join_group import JoinGroupRequest
from ixion.language.protocol.messages.k14_sync_group import SyncGroupRequest
from ixion.language.protocol.notation import Struct
from ixion.language.protocol.registry import ApiKey
from tests.clients.core.consumer_sim import TOPIC, ConsumerSimulation, places
from tests.clients.core.sim_group import Reply, SimCoordinator

PATIENT = ConsumerSettings(auto_offset_reset="earliest", request_timeout_ms=7_000, max_poll_interval_ms=300_000)


class SilentCoordinator(SimCoordinator):
    """Gives no answer to the first request of one kind that carries a member id, or to the first of all."""

    def __init__(self, sim: ConsumerSimulation, kind: type[Struct], *, with_id: bool = True) -> None:
        super().__init__(sim)
        self._kind = kind
        self._with_id = with_id
        self.ignored = 0

    def answer(self, request: Struct, reply: Reply) -> None:
        if (
            isinstance(request, self._kind)
            and not self.ignored
            and bool(getattr(request, "member_id", "")) == self._with_id
        ):
            self.ignored += 1
            return
        super().answer(request, reply)


@pytest.mark.parametrize(
    ("kind", "with_id"), [(SyncGroupRequest, True), (JoinGroupRequest, True), (JoinGroupRequest, False)]
)
@pytest.mark.parametrize("seed", [3, 1918])
def test_an_unanswered_join_or_sync_is_repeated_after_the_request_timeout(
    kind: type[Struct], with_id: bool, seed: int
) -> None:
    sim = ConsumerSimulation(seed, trouble=0.0)
    coordinator = sim.group = SilentCoordinator(sim, kind, with_id=with_id)
    machine = sim.consumer("g", PATIENT)
    machine.subscribe([TOPIC], None, sim.now_s)
    sim.poll(machine, 6.0)
    assert coordinator.ignored
    assert not machine.subscription.assigned
    sim.poll(machine, 4.0)
    assert sorted(machine.subscription.assigned) == places(sim)


def test_a_join_that_waits_for_another_member_is_repeated_without_another_generation() -> None:
    sim = ConsumerSimulation(5, trouble=0.0)
    first, second = sim.consumer("g", PATIENT), sim.consumer("g", PATIENT)
    first.subscribe([TOPIC], None, sim.now_s)
    sim.poll(first, 5.0)
    second.subscribe([TOPIC], None, sim.now_s)
    before, asked = sim.group.generation, sim.count(ApiKey.JOIN_GROUP)
    sim.poll(second, 40.0)  # the first one is busy, and does not join again
    assert sim.count(ApiKey.JOIN_GROUP) - asked > 3
    assert sim.group.generation == before
    for _ in range(3):
        sim.poll(first, 0.5)
        sim.poll(second, 0.5)
    assert sim.group.generation == before + 1
    assert sorted([*first.subscription.assigned, *second.subscription.assigned]) == places(sim)


def test_a_static_member_without_an_id_does_not_repeat_its_join() -> None:
    """The coordinator would fence the member that waits, and begin the rebalance again."""
    sim = ConsumerSimulation(8, trouble=0.0)
    sim.group = SilentCoordinator(sim, JoinGroupRequest, with_id=False)
    machine = sim.consumer("g", PATIENT._replace(group_instance_id="i"))
    machine.subscribe([TOPIC], None, sim.now_s)
    sim.poll(machine, 200.0)
    assert sim.count(ApiKey.JOIN_GROUP) == 1
