"""Moments that a fault can wait for: what the tree or a disk has just seen."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from devtools.sim.loop import SimLoop, context_of
from devtools.sim.tree import SimTree
from ixion.broker.metadata import paths
from ixion.broker.metadata.errors import NoNodeError
from ixion.broker.metadata.session import Event
from ixion.broker.metadata.topic_node import PartitionState, decode_partition_state
from ixion.language.model.topic_partition import TopicPartition

LEADER_CHANGE: Final = "leader-change"
ISR_GROWS: Final = "isr-grows"
ISR_SHRINKS: Final = "isr-shrinks"
CONTROLLER_CHANGE: Final = "controller-change"
TRUNCATION: Final = "truncation"
MOMENTS: Final = (LEADER_CHANGE, LEADER_CHANGE, ISR_GROWS, ISR_SHRINKS, CONTROLLER_CHANGE, TRUNCATION)


class Moments:
    def __init__(self, loop: SimLoop, tree: SimTree) -> None:
        self._loop = loop
        self._tree = tree
        self._waiting: list[tuple[str, asyncio.Future[None]]] = []
        self._states: dict[TopicPartition, PartitionState] = {}
        self.on_change: list[Callable[[TopicPartition], None]] = []
        self.on_write: list[Callable[[TopicPartition, PartitionState, int], None]] = []  # with the controller epoch
        self.registered_s: dict[int, float] = {}  # when the registration of a broker last came, changed or went
        tree.own.watch(paths.CONTROLLER, lambda _: self.came(CONTROLLER_CHANGE))

    def follow(self, key: TopicPartition) -> None:
        path = paths.partition_state(*key)
        self._tree.own.watch(path, lambda _event: self._changed(key, _event))

    def follow_broker(self, number: int) -> None:
        self._tree.own.watch(paths.broker(number), lambda _: self._registered(number))

    def _registered(self, number: int) -> None:
        self.registered_s[number] = self._loop.now_s

    def _changed(self, key: TopicPartition, _event: Event) -> None:
        try:
            state = decode_partition_state(*key, self._tree.own.get(paths.partition_state(*key)).data)
        except NoNodeError:
            return
        for hear in self.on_write:  # in the moment of the write
            hear(key, state, int(self._tree.own.get(paths.CONTROLLER_EPOCH).data))
        before, self._states[key] = self._states.get(key), state
        if before is None:
            return
        if before.leader != state.leader or before.leader_epoch != state.leader_epoch:
            self.came(LEADER_CHANGE)
            for each in self.on_change:
                self._loop.call_soon(each, key, context=context_of(None))
        if len(state.isr) > len(before.isr):
            self.came(ISR_GROWS)
            for each in self.on_change:
                self._loop.call_soon(each, key, context=context_of(None))
        elif len(state.isr) < len(before.isr):
            self.came(ISR_SHRINKS)

    def came(self, moment: str) -> None:
        """May be called as a step of any node; the waiting ones go on as steps of none."""
        for entry in [entry for entry in self._waiting if entry[0] == moment]:
            self._waiting.remove(entry)
            if not entry[1].done():
                entry[1].set_result(None)

    async def next(self, moment: str, limit_s: float) -> bool:
        future: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append((moment, future))
        done, _ = await asyncio.wait([future], timeout=limit_s)
        return bool(done)
