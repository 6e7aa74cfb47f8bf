"""A member asks for no rebalance that nobody needs, and believes nothing for ever that was true once."""

from __future__ import annotations

import re

import pytest

from ixion.clients.core.consumer.machine import ConsumerMachine
from ixion.clients.core.consumer.settings import ConsumerSettings
from ixion.clients.metadata import TopicPartition
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.messages.k10_find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from ixion.language.protocol.messages.k12_heartbeat import HeartbeatRequest
from ixion.language.protocol.messages.k68_consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ixion.language.protocol.notation import Struct
from tests.clients.core.consumer_sim import TOPIC, TOPIC_ID, ConsumerSimulation, places
from tests.clients.core.sim_group import Reply, SimCoordinator
from tests.clients.core.sim_served import ServedCoordinator

COOPERATIVE = ConsumerSettings(
    auto_offset_reset="earliest",
    enable_auto_commit=False,
    partition_assignment_strategy=("cooperative-sticky",),
)
SERVED = ConsumerSettings(auto_offset_reset="earliest", group_protocol="consumer")
A = TopicPartition(TOPIC, 0)


class Refusing(SimCoordinator):
    """Answers the next heartbeat, or the next question for the coordinator, with an error."""

    heartbeat = ErrorCode.NONE
    question = ErrorCode.NONE

    def answer(self, request: Struct, reply: Reply) -> None:
        if isinstance(request, FindCoordinatorRequest) and self.question:
            refused = Coordinator(key="g", node_id=-1, host="", port=-1, error_code=self.question, error_message=None)
            self.question = ErrorCode.NONE
            reply(FindCoordinatorResponse(coordinators=(refused,)))
        else:
            super().answer(request, reply)

    def _heartbeat(self, request: HeartbeatRequest) -> int:
        said, self.heartbeat = self.heartbeat, ErrorCode.NONE
        return int(said) or super()._heartbeat(request)


def joined(settings: ConsumerSettings = COOPERATIVE) -> tuple[ConsumerSimulation, Refusing, ConsumerMachine]:
    sim = ConsumerSimulation(1, trouble=0.0)
    group = Refusing(sim)
    sim.group = group
    machine = sim.consumer("g", settings)
    machine.subscribe([TOPIC], None, sim.now_s)
    settle(sim, machine)
    return sim, group, machine


def settle(sim: ConsumerSimulation, machine: ConsumerMachine) -> None:
    for _ in range(10):
        sim.poll(machine, 1.0)
    assert machine.subscription.partitions == places(sim)


@pytest.mark.parametrize("late", ["commit", "heartbeat"])
def test_news_of_a_rebalance_that_the_member_takes_part_in_start_no_second_one(late: str) -> None:
    """The answer to a request that was sent before the join began. A second join would stop all members again."""
    sim, group, machine = joined()
    assert machine.group is not None
    member = machine.group.member
    generation = group.generation
    if late == "commit":
        group.refusals.append(ErrorCode.REBALANCE_IN_PROGRESS)
        machine.commit({A: 0})
    else:
        group.heartbeat = ErrorCode.REBALANCE_IN_PROGRESS
        member.hurry(sim.now_s)
    machine.tick(sim.now_s)  # on its way
    member.must_rejoin = True
    settle(sim, machine)
    assert group.generation == generation + 1


def test_a_pattern_that_matches_the_same_topics_starts_no_second_rebalance() -> None:
    sim = ConsumerSimulation(1, trouble=0.0)
    machine = sim.consumer("g", COOPERATIVE)
    machine.subscribe(re.compile(TOPIC), None, sim.now_s)
    assert machine.group is not None
    member = machine.group.member
    while not member.is_joining:
        sim.poll(machine, 0.001)
    machine.client.cluster.mark_stale()
    settle(sim, machine)
    assert sim.group.generation == 1


def test_a_refused_group_is_asked_for_again_by_the_next_call() -> None:
    """An administrator has granted the right meanwhile. A caller that only commits or reads offsets polls nothing."""
    sim = ConsumerSimulation(1, trouble=0.0)
    group = Refusing(sim)
    sim.group = group
    machine = sim.consumer("g", COOPERATIVE)
    machine.assign(places(sim))
    group.question = ErrorCode.GROUP_AUTHORIZATION_FAILED
    refused = machine.commit({A: 1})
    sim.run(5.0, lambda: refused.is_done)
    with pytest.raises(KafkaError, match="'g'"):
        refused.check()
    again = machine.commit({A: 1})
    sim.run(5.0, lambda: again.is_done)
    again.check()
    assert group.offsets[A][0] == 1


def test_owned_partitions_are_named_although_a_broker_has_forgotten_their_topic() -> None:
    """A heartbeat that leaves them out would give them up, while this member still reads them."""
    sim = ConsumerSimulation(1, trouble=0.0)
    sim.group = ServedCoordinator(sim, TOPIC_ID)
    machine = sim.consumer("g", SERVED)
    machine.subscribe([TOPIC], None, sim.now_s)
    settle(sim, machine)
    assert machine.group is not None
    machine.client.cluster._drop(TOPIC)  # as after the answer of a broker that has just started
    machine.group.member.forget_question()
    machine.group.member.unanswered("heartbeat", sim.now_s)  # the next one says everything
    machine.group.member.hurry(sim.now_s)
    sim.run(5.0)
    named = [
        request.topic_partitions
        for _, _, request in sim.seen
        if isinstance(request, ConsumerGroupHeartbeatRequest) and request.subscribed_topic_names is not None
    ]
    assert [(each.topic_id, each.partitions) for each in named[-1] or ()] == [(TOPIC_ID, (0, 1))]
