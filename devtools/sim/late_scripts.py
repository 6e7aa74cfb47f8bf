"""Faults of several steps in which a request or an answer about the in-sync replicas comes late, or not at all.

In all of them three replicas are in sync: the leader a, and two others of which `late` is the one that is misjudged if
the rule is missing. At the end it is the only one that lives, and so it leads if it is believed to be in sync.
"""

from __future__ import annotations

import asyncio

from devtools.sim.net import Hold
from devtools.sim.scripts import ALTER_PARTITION, FETCH, end_of, fell, pause, roles
from devtools.sim.world import World
from ixion.language.model.topic_partition import TopicPartition

LAG_LIMIT_S = 7.0  # replica.lag.time.max.ms and the look for it


async def late_shrink(world: World, key: TopicPartition) -> None:
    """The leader does not hear a replica for too long, but its wish to drop it does not reach the controller."""
    found = cast(world, key)
    if found is None:
        return
    leader, other, late = found
    holds = _holds(world, leader, ALTER_PARTITION, answers=False)
    world.network.cut(host_of(world, leader), host_of(world, late))
    await asyncio.sleep(LAG_LIMIT_S)
    await _only(world, late, (leader, other), holds)


async def late_grow(world: World, key: TopicPartition) -> None:
    """The controller has taken a replica into the ISR, but the leader does not get the answer; then the replica is cut
    off."""
    found = cast(world, key)
    if found is None:
        return
    leader, other, late = found
    if not await _drop(world, key, leader, late):
        return
    holds = _holds(world, leader, ALTER_PARTITION, answers=True)
    world.network.heal(host_of(world, leader), host_of(world, late))
    if await world.until(lambda: is_in_sync(world, key, late), 3):
        world.network.cut(host_of(world, leader), host_of(world, late))
        await pause(world, 0.4, 1.2)
        await _only(world, late, (leader, other), holds)
    _let_go(world, holds)


async def late_answer(world: World, key: TopicPartition) -> None:
    """The answer about a replica that joined arrives after the controller has dropped it again, as it died."""
    found = cast(world, key)
    if found is None:
        return
    leader, _, late = found
    if not await _drop(world, key, leader, late):
        return
    holds = _holds(world, leader, ALTER_PARTITION, answers=True)
    world.network.heal(host_of(world, leader), host_of(world, late))
    if await world.until(lambda: is_in_sync(world, key, late), 3):
        fell(world, late)
        await pause(world, 0.05, 0.5)
    _let_go(world, holds)
    await pause(world, 0.05, 0.5)
    world.start(late)


async def late_leave(world: World, key: TopicPartition) -> None:
    """A replica has caught up and may join; it dies before the controller reads that (KAFKA-14140)."""
    found = cast(world, key)
    if found is None:
        return
    leader, _, late = found
    if not await _drop(world, key, leader, late):
        return
    holds = _holds(world, leader, ALTER_PARTITION, answers=False)
    world.network.heal(host_of(world, leader), host_of(world, late))
    await pause(world, 0.4, 1.2)
    if not is_in_sync(world, key, late):
        fell(world, late)
        await pause(world, 1.1, 1.5)
    _let_go(world, holds)
    await pause(world, 0.6, 1.0)
    world.start(late)


async def stale_mark(world: World, key: TopicPartition) -> None:
    """A new leader does not know yet that its last records are committed; a replica without them asks to join."""
    found = cast(world, key)
    if found is None:
        return
    leader, other, late = found
    if late == world.controller():  # the leader must reach it
        other, late = late, other
    a, b, c = (host_of(world, number) for number in (leader, other, late))
    network = world.network
    network.cut(a, c)
    network.cut(b, c)
    if not await world.until(lambda: end_of(world, leader, key) > end_of(world, late, key) + 4 >= 4, 2):
        network.heal(a, c)
        network.heal(b, c)
        return
    world.silence()
    await world.until(lambda: end_of(world, leader, key) == end_of(world, other, key), 1)
    hold: Hold = (b, a, FETCH, True)
    network.hold(hold)
    if await world.until(lambda: not is_in_sync(world, key, late), LAG_LIMIT_S):
        await pause(world, 0.6, 0.9)  # consumers may read them
        fell(world, leader)  # its answers stay on their way: they would tell what is committed
        world.speak()
        answers: Hold = (c, b, FETCH, True)
        network.hold(answers)
        network.heal(b, c)
        await world.until(lambda: is_in_sync(world, key, late), 4)
        await _only(world, late, (other,), [])
        network.let_go(answers)
    world.speak()
    network.let_go(hold)
    network.heal(a, c)
    network.heal(b, c)
    world.start(leader)


def cast(world: World, key: TopicPartition) -> tuple[int, int, int] | None:
    """The leader, another one, and the one that will be late; the leader is not the controller."""
    leader, others = roles(world, key)
    if len(others) < 2 or leader == world.controller():
        return None
    world.loop.random.shuffle(others)
    return leader, others[0], others[1]


def host_of(world: World, number: int) -> str:
    return world.slots[number].host


def _holds(world: World, number: int, api: int, *, answers: bool) -> list[Hold]:
    holds: list[Hold] = [(host_of(world, number), slot.host, api, answers) for slot in world.slots.values()]
    for hold in holds:
        world.network.hold(hold)
    return holds


def _let_go(world: World, holds: list[Hold]) -> None:
    for hold in holds:
        world.network.let_go(hold)


async def _drop(world: World, key: TopicPartition, leader: int, late: int) -> bool:
    """Cut a replica off until it is not in sync any more."""
    world.network.cut(host_of(world, leader), host_of(world, late))
    if await world.until(lambda: not is_in_sync(world, key, late), LAG_LIMIT_S):
        return True
    world.network.heal(host_of(world, leader), host_of(world, late))
    return False


async def _only(world: World, late: int, others: tuple[int, ...], holds: list[Hold]) -> None:
    """All but one fall, and come back."""
    for number in others:
        fell(world, number)
    _let_go(world, holds)
    await pause(world, 0.3, 0.8)
    for number in others:
        world.network.heal(host_of(world, number), host_of(world, late))
        world.start(number)


def is_in_sync(world: World, key: TopicPartition, number: int) -> bool:
    state = world.state(key)
    return state is not None and number in state.isr
