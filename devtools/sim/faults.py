"""The faults of a run: a list made from the seed before it begins, so that it can be shortened and replayed.

Where a fault names a role (the leader of partition 0, the controller), it hits the broker that has it at that moment:
most of what can go wrong in replication goes wrong around those.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass
from typing import Final

from devtools.sim.world import World
from ixion.model.topic_partition import TopicPartition

# How often each kind comes, relative to the others.
KINDS: Final = {
    "kill": 5,
    "vanish": 2,
    "pause": 4,
    "stop": 2,
    "cut": 5,
    "cut-one-way": 2,
    "isolate": 3,
    "alone": 5,
    "topple": 4,
    "cut-tree": 4,
    "expire": 2,
    "reset": 4,
    "slow": 2,
    "clock": 1,
    "bounce": 3,
}
TARGETS: Final = ("leader", "leader", "follower", "controller", "1", "2", "3")
DURATIONS_S: Final = (0.05, 0.5, 2.0, 5.0, 9.0)


@dataclass(frozen=True, slots=True)
class Fault:
    at_s: float  # after the load began
    kind: str
    target: str
    other: str
    for_s: float
    key: TopicPartition

    def __str__(self) -> str:
        return f"{self.at_s:.3f} s: {self.kind} {self.target} {self.other} for {self.for_s:.2f} s ({self.key[1]})"


def make_faults(seed: int, length_s: float, keys: list[TopicPartition], kinds: dict[str, int]) -> list[Fault]:
    chance = random.Random(seed * 2 + 1)
    # Some runs have few faults, some have one on top of the other.
    gap_s = chance.choice((0.6, 1.5, 4.0))
    names = sorted(kinds)
    faults: list[Fault] = []
    at_s = 0.5
    while at_s < length_s:
        kind = chance.choices(names, [kinds[name] for name in names])[0]
        target, other = chance.choice(TARGETS), chance.choice(("1", "2", "3", "follower", "controller"))
        for_s = chance.choice(DURATIONS_S) * chance.uniform(0.7, 1.3)
        faults.append(Fault(at_s, kind, target, other, for_s, chance.choice(keys)))
        at_s += chance.expovariate(1 / gap_s)
    return faults


class Injector:
    def __init__(self, world: World, faults: list[Fault]) -> None:
        self._world = world
        self._faults = faults
        self._tasks: list[asyncio.Task[None]] = []

    async def run(self) -> None:
        world = self._world
        begun_s = world.loop.now_s
        for fault in self._faults:
            await asyncio.sleep(max(begun_s + fault.at_s - world.loop.now_s, 0))
            self._tasks.append(asyncio.get_running_loop().create_task(self._one(fault)))

    async def end(self) -> None:
        """Stop all faults, and mend everything."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        world = self._world
        world.tree.heal_all()
        world.network.heal_all()
        for number, slot in world.slots.items():
            world.resume(number)
            if slot.node is not None:
                slot.node.clock_ms = 0
            if slot.node is not None and not slot.node.dead and slot.broker is None and number in world.restarts_wanted:
                world.kill(number)  # it was being stopped
            world.start(number)

    def _who(self, target: str, key: TopicPartition) -> int:
        world = self._world
        if target.isdigit():
            return int(target)
        leader = world.leader(key)
        if target == "leader":
            return leader
        if target == "controller":
            return world.controller()
        state = world.state(key)
        behind = [] if state is None else [number for number in state.isr if number != leader]
        return behind[0] if behind else -1

    async def _one(self, fault: Fault) -> None:
        world = self._world
        number, other = self._who(fault.target, fault.key), self._who(fault.other, fault.key)
        if number not in world.slots:
            return
        slot = world.slots[number]
        world.note("fault", f"{fault.kind} b{number} b{other} {fault.for_s:.3f}")
        match fault.kind:
            case "kill" | "vanish" | "power" | "bounce":
                world.kill(number, vanish=fault.kind == "vanish", power=fault.kind == "power")
                await asyncio.sleep(0.01 if fault.kind == "bounce" else fault.for_s)
                world.start(number)
            case "stop":
                world.restarts_wanted.add(number)
                await world.stop(number)
                await asyncio.sleep(fault.for_s)
                world.restarts_wanted.discard(number)
                world.start(number)
            case "pause":
                world.pause(number)
                await asyncio.sleep(fault.for_s)
                world.resume(number)
            case "cut" | "cut-one-way":
                if other in world.slots and other != number:
                    world.network.cut(slot.host, world.slots[other].host, both=fault.kind == "cut")
                    await asyncio.sleep(fault.for_s)
                    world.network.heal(slot.host, world.slots[other].host)
            case "isolate":
                others = [each.host for each in world.slots.values() if each is not slot]
                for host in others:
                    world.network.cut(slot.host, host)
                await asyncio.sleep(fault.for_s)
                for host in others:
                    world.network.heal(slot.host, host)
            case "alone":  # but for clients
                others = [each.host for each in world.slots.values() if each is not slot]
                world.tree.cut(slot.host)
                for host in others:
                    world.network.cut(slot.host, host)
                await asyncio.sleep(fault.for_s + 2)
                world.tree.heal(slot.host)
                for host in others:
                    world.network.heal(slot.host, host)
            case "topple":  # one leader after the other, faster than followers can follow
                for _ in range(3):
                    world.kill(number)
                    world.tree.expire(slot.host)
                    await asyncio.sleep(world.loop.random.uniform(0.01, 0.4))
                    world.start(number)
                    number = self._who("leader", fault.key)
                    if number not in world.slots:
                        break
                    slot = world.slots[number]
            case "cut-tree":
                world.tree.cut(slot.host)
                await asyncio.sleep(fault.for_s)
                world.tree.heal(slot.host)
            case "expire":
                world.tree.expire(slot.host)
            case "reset":
                for _ in range(3):
                    world.network.drop_one(slot.host)
            case "slow":
                world.network.slow.add(slot.host)
                await asyncio.sleep(fault.for_s)
                world.network.slow.discard(slot.host)
            case "clock":
                if slot.node is not None:
                    slot.node.clock_ms += int((fault.for_s - 2) * 20_000)
            case _:
                raise ValueError(f"there is no fault {fault.kind}")
