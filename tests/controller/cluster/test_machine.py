"""Brokers, topics, leaders and controllers come and go at random, and everything agrees after each step.

`League.check` looks: the leader is alive and in the ISR, the ISR is part of the replicas, epochs never go back, a
partition with a live in-sync replica has a leader, and tree, roles and metadata are the same on all brokers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ixion.broker.metadata import paths
from ixion.language.model.errors import ErrorCode, KafkaError
from tests.controller.cluster.league import League

T = TypeVar("T")

BROKERS = (1, 2, 3, 4)
DATA = st.data()
REPLICAS = st.lists(st.sampled_from(BROKERS), min_size=1, max_size=3, unique=True)


class ClusterMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.league = self.run(self._make())

    async def _make(self) -> League:
        league = League(len(BROKERS))
        await league.open()
        return league

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(asyncio.wait_for(work, 30))

    @initialize()
    def begin(self) -> None:
        self.run(self.league.begin(1))
        self.run(self.league.begin(2))

    @property
    def live(self) -> list[int]:
        return [number for number, broker in self.league.brokers.items() if broker.epoch >= 0]

    @property
    def keys(self) -> list[tuple[str, int]]:
        cluster = self.league.term.cluster
        return [key for key in cluster.all_keys() if key[0] not in cluster.doomed]

    @property
    def led(self) -> list[tuple[str, int]]:
        known = self.league.term.cluster.leaderships
        return [key for key in self.keys if key in known and known[key].leader >= 0]

    @rule(name=st.sampled_from("ab"), replicas=st.lists(REPLICAS, min_size=1, max_size=2))
    def create(self, name: str, replicas: list[list[int]]) -> None:
        size = min(map(len, replicas))
        self.run(self.league.create(name, [each[:size] for each in replicas]))

    @rule(name=st.sampled_from("ab"))
    def delete(self, name: str) -> None:
        self.run(self.league.controller.topics.delete([name]))
        self.run(self.league.settle())

    @rule(name=st.sampled_from("ab"))
    def grow(self, name: str) -> None:
        cluster = self.league.term.cluster
        count = len(cluster.keys_of(name))
        factor = len(cluster.replicas((name, 0)).all) if count else 1
        try:
            assignment = [tuple(self.live[:factor])]  # a drawn one could not be repeated
            self.run(self.league.controller.topics.create_partitions(name, count + 1, assignment))
        except KafkaError:
            pass
        self.run(self.league.settle())

    @precondition(lambda self: len(self.live) > 1)
    @rule(data=DATA)
    def kill(self, data: st.DataObject) -> None:
        victims = data.draw(st.lists(st.sampled_from(self.live), min_size=1, max_size=2, unique=True))
        if set(victims) != set(self.live):
            left = set(self.league.controllers) - set(victims)
            if not left:  # one broker must be the controller
                self.run(self.league.begin(next(broker for broker in self.live if broker not in victims)))
            self.run(self.league.kill(*victims))

    @precondition(lambda self: len(self.live) < len(BROKERS))
    @rule(data=DATA)
    def restart(self, data: st.DataObject) -> None:
        dead = [broker for broker in BROKERS if broker not in self.live]
        self.run(self.league.restart(*data.draw(st.lists(st.sampled_from(dead), min_size=1, unique=True))))

    @rule(data=DATA)
    def bounce(self, data: st.DataObject) -> None:
        mere = [broker for broker in self.live if broker not in self.league.controllers]
        if mere:
            self.run(self.league.bounce(data.draw(st.sampled_from(mere))))

    @rule(data=DATA)
    def shut_down(self, data: st.DataObject) -> None:
        mere = [broker for broker in self.live if broker not in self.league.controllers]
        if mere:
            broker = data.draw(st.sampled_from(mere))
            self.run(self.league.controller.leaders.shut_down(broker, self.league.brokers[broker].epoch))
            self.run(self.league.kill(broker))

    @precondition(lambda self: self.led)
    @rule(data=DATA)
    def propose(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(self.led))
        cluster = self.league.term.cluster
        leader = cluster.leaderships[key].leader
        others = [broker for broker in cluster.replicas(key).all if broker != leader]
        isr = [leader, *data.draw(st.lists(st.sampled_from(others), unique=True) if others else st.just([]))]
        code = self.run(self.league.propose(key, isr))
        alive = all(broker in self.live for broker in isr)
        assert code is (ErrorCode.NONE if alive else ErrorCode.INELIGIBLE_REPLICA)

    @precondition(lambda self: self.keys)
    @rule(unclean=st.booleans())
    def elect(self, unclean: bool) -> None:
        self.run(self.league.controller.leaders.elect(self.keys, unclean))
        self.run(self.league.settle())

    @precondition(lambda self: self.keys)
    @rule(data=DATA, goal=st.none() | REPLICAS)
    def move(self, data: st.DataObject, goal: list[int] | None) -> None:
        key = data.draw(st.sampled_from(self.keys))
        wanted = None if goal is None else tuple(goal)
        self.run(self.league.controller.reassignments.alter({key: wanted}, True))
        self.run(self.league.settle())

    @rule()
    def depose(self) -> None:
        """The controller loses its node; one of those that take part in the election is the next."""
        before = self.league.term.sender.controller_epoch
        self.run(self.league.outside.delete(paths.CONTROLLER))

        async def elected() -> None:
            while True:
                active = [each for each in self.league.controllers.values() if each.is_active]
                if len(active) == 1 and active[0].active().sender.controller_epoch > before:
                    return
                await asyncio.sleep(0)

        self.run(elected())
        self.run(self.league.settle())

    @invariant()
    def all_agree(self) -> None:
        if self.league.controllers:
            self.run(self.league.settle())
            self.run(self.league.check())

    def teardown(self) -> None:
        self.run(self.league.close())
        self.loop.close()


TestClusterMachine = ClusterMachine.TestCase
TestClusterMachine.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
