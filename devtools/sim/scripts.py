"""Faults of several steps, each aimed at something that chance alone seldom meets."""

from __future__ import annotations

import asyncio
import random

from devtools.sim.net import Hold
from devtools.sim.world import Slot, World
from ixion.broker.metadata import paths
from ixion.language.model.topic_partition import TopicPartition

FETCH = 1
ALTER_PARTITION = 56


async def trouble(slot: Slot, kind: str, for_s: float) -> None:
    """A disk that fails or is full, and is mended; a slow one."""
    files, node = slot.files, slot.node
    if kind == "disk-slow":
        files.slow = True
        if node is not None:
            node.slow_disk = True
    elif kind == "disk-full":
        files.full = True
    else:
        files.fails = True
    await asyncio.sleep(for_s)
    files.mend()
    if slot.node is not None:
        slot.node.slow_disk = False


async def topple(world: World, key: TopicPartition) -> None:
    """One leader after the other goes, faster than followers can follow."""
    for _ in range(3):
        number = world.leader(key)
        if number not in world.slots:
            return
        fell(world, number)
        await pause(world, 0.01, 0.4)
        world.start(number)


async def expire_in_start(world: World, number: int) -> None:
    """The session of a broker ends after it has registered, and before its start is over."""
    fell(world, number)
    await pause(world, 0.0, 0.1)
    world.start(number)
    for _ in range(2_000):
        await asyncio.sleep(0.001)
        if str(number) in world.tree.own.children(paths.BROKERS):
            await pause(world, 0.0, 0.01)
            if world.slots[number].broker is None:
                world.tree.expire(world.slots[number].host)
            return


async def flip(world: World, key: TopicPartition) -> None:
    """Two quick changes of the leader (KIP-279): each leader has records that no other replica has."""
    leader, others = roles(world, key)
    if not others:
        return
    after = world.loop.random.choice(others)
    for other in others:
        world.network.cut(world.slots[leader].host, world.slots[other].host, both=False)
    await pause(world, 0.05, 0.4)
    await world.make_leader(key, after)
    await pause(world, 0.0, 0.3)
    fell(world, after)
    await pause(world, 0.01, 0.2)
    for other in others:
        world.network.heal(world.slots[leader].host, world.slots[other].host)
    await pause(world, 0.01, 0.4)
    world.start(after)


async def late_fetch(world: World, key: TopicPartition) -> None:
    """A fetch of epoch 1 arrives in epoch 3. In between the follower has cut off what it says it has; then it is the
    last one that lives."""
    leader, others = roles(world, key)
    if len(others) < 2:
        return
    world.loop.random.shuffle(others)
    late, between = sorted(others, key=lambda number: number != world.controller())
    a, b, c = (world.slots[number].host for number in (leader, late, between))
    network = world.network
    hold: Hold = (b, a, FETCH, False)
    await world.make_leader((key[0], 1 - key[1]), leader)  # so that the connection of its follower stays
    await pause(world, 0.3, 0.6)
    network.cut(a, c)
    await world.until(lambda: end_of(world, late, key) > end_of(world, between, key) >= 0, 1)
    network.hold(hold)
    await pause(world, 0.1, 0.4)
    await world.make_leader(key, between)
    await world.until(lambda: end_of(world, late, key) < end_of(world, leader, key), 0.5)
    await pause(world, 0.05, 0.3)
    await world.make_leader(key, leader)
    await pause(world, 0.01, 0.1)
    network.cut(a, b, both=False)  # what it asks for now is not answered
    network.let_go(hold)
    await pause(world, 0.003, 0.02)
    network.heal(a, c)
    await pause(world, 0.1, 0.5)
    for number in (leader, between):
        fell(world, number)
    await pause(world, 0.2, 0.6)
    network.heal(a, b)
    for number in (leader, between):
        world.start(number)


async def late_join(world: World, key: TopicPartition) -> None:
    """A leader asks for a follower to be in sync; before the controller reads it, the follower has come back with an
    empty disk (KAFKA-14139). Then the leader goes."""
    leader, others = roles(world, key)
    if not others or not world.may_lose:
        return
    world.may_lose, world.losing = False, True
    try:
        await _late_join(world, key, leader, others)
    finally:
        world.losing = False


async def _late_join(world: World, key: TopicPartition, leader: int, others: list[int]) -> None:
    late = world.loop.random.choice(others)
    a, b = world.slots[leader].host, world.slots[late].host
    network = world.network
    replicas = (late, *(number for number in world.slots if number != late))
    await world.by_controller(lambda controller: controller.reassignments.alter({key: replicas}, True))
    network.cut(a, b)
    if not await world.until(lambda: (state := world.state(key)) is not None and late not in state.isr, 6):
        network.heal(a, b)
        return
    holds: list[Hold] = [(a, slot.host, ALTER_PARTITION, False) for slot in world.slots.values()]
    for hold in holds:
        network.hold(hold)
    network.heal(a, b)
    await pause(world, 0.3, 1.0)
    state = world.state(key)
    if state is not None and late not in state.isr and world.leader(key) == leader:
        fell(world, late)
        world.slots[late].files.replace()
        await pause(world, 0.0, 0.05)
        fetches: Hold = (b, a, FETCH, False)  # it must not catch up before the leader goes
        network.hold(fetches)
        world.start(late)
        await world.until(lambda: world.slots[late].broker is not None, 3)
        for hold in holds:
            network.let_go(hold)
        await pause(world, 0.0, 0.1)
        fell(world, leader)
        network.let_go(fetches)
        await pause(world, 0.1, 0.5)
        world.start(leader)
    for hold in holds:
        network.let_go(hold)


def roles(world: World, key: TopicPartition) -> tuple[int, list[int]]:
    """The leader, and the others if all are in sync and live."""
    state = world.state(key)
    if state is None or state.leader < 0 or len(state.isr) < len(world.slots):
        return -1, []
    if not all(slot.alive and slot.broker is not None for slot in world.slots.values()):
        return -1, []
    return state.leader, [number for number in sorted(state.isr) if number != state.leader]


def fell(world: World, number: int) -> None:
    """It is killed, and the tree knows at once."""
    world.kill(number)
    world.tree.expire(world.slots[number].host)


async def pause(world: World, least_s: float, most_s: float) -> None:
    chance: random.Random = world.loop.random
    await asyncio.sleep(chance.uniform(least_s, most_s))


def end_of(world: World, number: int, key: TopicPartition) -> int:
    """Of its log; -1 if it has none."""
    broker = world.slots[number].broker
    partition = None if broker is None else broker.parts.replicas.partitions.get(key)
    return -1 if partition is None else partition.log.end_offset
