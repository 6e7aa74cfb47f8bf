"""Faults of several steps around the controller: a second one, a request of the past, a registration that is slow, a
broker that starts on a full disk, the last replica in sync with an empty one."""

from __future__ import annotations

from devtools.sim.broken import Broken
from devtools.sim.checks import uncommitted
from devtools.sim.late_scripts import LAG_LIMIT_S, cast, host_of, is_in_sync
from devtools.sim.net import Hold
from devtools.sim.scripts import FETCH, end_of, fell, pause, roles
from devtools.sim.tree import HOST
from devtools.sim.world import World
from ixion.broker.metadata import paths
from ixion.broker.metadata.errors import NoNodeError
from ixion.language.model.topic_partition import TopicPartition

STOP_REPLICA = 5
UPDATE_METADATA = 6
SETTLED_S = 8.0  # silent producers, three live replicas: everything is committed


async def late_update(world: World, key: TopicPartition) -> None:
    """UpdateMetadata of a controller arrives when another has been elected. It says that a broker is gone, which has
    come back."""
    controller, others = _others(world, key)
    if len(others) < 2:
        return
    world.loop.random.shuffle(others)
    gone, told = others
    hold: Hold = (host_of(world, controller), host_of(world, told), UPDATE_METADATA, False)
    world.network.hold(hold)
    fell(world, gone)
    await pause(world, 0.1, 0.4)
    await _replace_controller(world, controller)
    world.start(gone)
    await world.until(world.all_know_all, 6)
    await pause(world, 0.1, 0.5)
    world.network.let_go(hold)
    await pause(world, 0.1, 0.5)


async def late_stop(world: World, key: TopicPartition) -> None:
    """A partition leaves a broker and comes back under another controller; then StopReplica of the first arrives."""
    controller, others = _others(world, key)
    if len(others) < 2:
        return
    away = world.loop.random.choice([number for number in others if number != world.leader(key)])
    others = [number for number in sorted(world.slots) if number != away]
    hold: Hold = (host_of(world, controller), host_of(world, away), STOP_REPLICA, False)
    world.network.hold(hold)
    await world.assign(key, tuple(others))
    if await world.until(lambda: len(world.replicas(key).all) == len(others), 3):
        await pause(world, 0.05, 0.2)
        await _replace_controller(world, controller)
        await world.assign(key, (*others, away))
        await world.until(lambda: is_in_sync(world, key, away), 6)
    world.network.let_go(hold)
    await pause(world, 0.1, 0.5)


async def late_write(world: World, key: TopicPartition) -> None:
    """A controller has sent a write to the tree; another is elected before it arrives."""
    controller, others = _others(world, key)
    if len(others) < 2:
        return
    gone = world.loop.random.choice(others)
    late = world.tree.late_writes
    late[host_of(world, controller)] = world.loop.random.uniform(0.005, 0.05)
    fell(world, gone)
    await pause(world, 0.0, 0.03)
    _depose(world)
    await pause(world, 0.3, 0.8)
    late.pop(host_of(world, controller), None)
    world.start(gone)


async def slow_register(world: World, key: TopicPartition) -> None:
    """A session expires, and the answer to the new registration is slow: the controller knows it before the broker."""
    _, others = _others(world, key)
    if not others:
        return
    host = host_of(world, world.loop.random.choice(others))
    world.network.slow_pairs.add((HOST, host))
    await pause(world, 0.0, 0.1)
    world.tree.expire(host)
    await pause(world, 2.0, 3.0)
    world.network.slow_pairs.discard((HOST, host))


async def start_full(world: World, key: TopicPartition) -> None:
    """A broker starts on a full disk; later there is room."""
    _, others = _others(world, key)
    if not others:
        return
    number = world.loop.random.choice(others)
    files = world.slots[number].files
    fell(world, number)
    files.full = True
    await pause(world, 0.1, 0.5)
    world.start(number)
    await world.until(lambda: world.slots[number].broker is not None, 3)
    await pause(world, 1.0, 2.5)
    files.full = False


async def last_wiped(world: World, key: TopicPartition) -> None:
    """The last replica in sync comes back with an empty disk; the others live, and have what was acknowledged."""
    found = cast(world, key)
    if found is None or not world.may_lose:
        return
    leader, *others = found
    world.may_lose, world.losing = False, True
    holds: list[Hold] = [(host_of(world, number), host_of(world, leader), FETCH, False) for number in others]
    try:
        for hold in holds:
            world.network.hold(hold)
        alone = await world.until(lambda: _isr(world, key) == (leader,), LAG_LIMIT_S + 2)
        if alone:
            world.kill(leader, power=True)
            world.tree.expire(host_of(world, leader))
            world.slots[leader].files.replace()
        for hold in holds:
            world.network.let_go(hold)
        if alone:
            await pause(world, 0.3, 0.8)
            world.start(leader)
            await world.until(lambda: world.leader(key) >= 0, 5)
    finally:
        world.losing = False


async def wiped_between(world: World, key: TopicPartition) -> None:
    """A leader is killed and comes back with an empty disk, while one controller is cut off and none follows it yet."""
    found = cast(world, key)
    if found is None or not world.may_lose:
        return
    leader, controller = found[0], world.controller()
    if controller < 0:
        return  # the last one has gone just now
    world.may_lose, world.losing = False, True
    try:
        world.tree.cut(host_of(world, controller))
        await pause(world, 0.02, 0.2)
        world.kill(leader, power=True)
        world.tree.expire(host_of(world, leader))
        world.slots[leader].files.replace()
        world.start(leader)
        await world.until(lambda: str(leader) in world.tree.own.children(paths.BROKERS), 2)
        await pause(world, 0.0, 0.3)
        world.tree.expire(host_of(world, controller))
        await world.until(lambda: world.controller() not in (-1, controller), 3)
        await pause(world, 0.3, 1.0)
    finally:
        world.tree.heal(host_of(world, controller))
        world.losing = False


async def silent_flip(world: World, key: TopicPartition) -> None:
    """Two changes of the leader, and no record after the second (KAFKA-7415): the replicas have records of a newer
    epoch than the last leader has written in."""
    found = cast(world, key)
    if found is None:
        return
    leader, after, other = found
    quiet = Quiet(world)
    network = world.network
    for number in (after, other):
        network.cut(host_of(world, leader), host_of(world, number), both=False)
    if await world.until(lambda: end_of(world, leader, key) > end_of(world, after, key) >= 0, 2):
        await world.assign(key, (after, leader, other))
        await world.by_controller(lambda controller: controller.leaders.elect([key], False))
        before = end_of(world, after, key)
        if await world.until(lambda: world.leader(key) == after and end_of(world, after, key) > before, 2):
            world.silence()
            await pause(world, 0.02, 0.1)
            fell(world, after)
            await world.until(lambda: world.leader(key) == leader, 2)
            await pause(world, 0.05, 0.2)
    for number in (after, other):
        network.heal(host_of(world, leader), host_of(world, number))
    world.start(after)
    await _settle(world, key, quiet)


async def late_records(world: World, key: TopicPartition) -> None:
    """Records that a follower has fetched reach it when it leads the partition itself, and no client writes."""
    found = cast(world, key)
    if found is None:
        return
    leader, _, late = found
    quiet = Quiet(world)
    await world.make_leader((key[0], 1 - key[1]), leader)  # so that the connection stays
    hold: Hold = (host_of(world, late), host_of(world, leader), FETCH, True)
    await pause(world, 0.3, 0.6)
    world.network.hold(hold)
    if await world.until(lambda: end_of(world, leader, key) > end_of(world, late, key) >= 0, 1):
        world.silence()
        await world.make_leader(key, late)
        await world.until(lambda: _leads(world, late, key), 1)
        await pause(world, 0.05, 0.2)
    world.network.let_go(hold)
    await _settle(world, key, quiet)


class Quiet:
    """Whether the script that makes it is the only fault."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._begun = world.faults_begun
        self._was_alone = world.faults_active == 1

    def __bool__(self) -> bool:
        return self._was_alone and self._world.faults_begun == self._begun


async def _settle(world: World, key: TopicPartition, quiet: Quiet) -> None:
    """No client writes and no other fault has come: what the leader has is committed soon."""
    world.silence()
    settled = await world.until(lambda: not uncommitted(world, key, world.leader(key)), SETTLED_S)
    if not settled and quiet:
        left = uncommitted(world, key, world.leader(key))
        raise Broken("Healthy", f"{key}: {left} records are not committed {SETTLED_S:g} s after the last was written")


def _others(world: World, key: TopicPartition) -> tuple[int, list[int]]:
    """The controller, and the other brokers, if all replicas are in sync."""
    leader, others = roles(world, key)
    controller = world.controller()
    if not others or controller < 0:
        return -1, []
    return controller, [number for number in sorted([leader, *others]) if number != controller]


async def _replace_controller(world: World, controller: int) -> None:
    """Another broker becomes the controller: the present one hears last that the place is free."""
    slow = (HOST, host_of(world, controller))
    world.network.slow_pairs.add(slow)
    _depose(world)
    await world.until(lambda: world.controller() not in (-1, controller), 3)
    world.network.slow_pairs.discard(slow)
    await pause(world, 0.1, 0.5)


def _depose(world: World) -> None:
    try:
        world.tree.own.delete(paths.CONTROLLER)
    except NoNodeError:
        pass


def _isr(world: World, key: TopicPartition) -> tuple[int, ...]:
    state = world.state(key)
    return () if state is None else tuple(state.isr)


def _leads(world: World, number: int, key: TopicPartition) -> bool:
    broker = world.slots[number].broker
    partition = None if broker is None else broker.parts.replicas.partitions.get(key)
    return partition is not None and partition.leads
