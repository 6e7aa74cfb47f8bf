"""Carries the faults of a run out, and mends everything at its end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from devtools.sim import control_scripts, late_scripts, scripts
from devtools.sim.faults import Fault
from devtools.sim.tree import HOST
from devtools.sim.world import World
from ixion.broker.metadata import paths
from ixion.broker.metadata.errors import NoNodeError
from ixion.language.model.topic_partition import TopicPartition

SCRIPTS: Final[dict[str, Callable[[World, TopicPartition], Awaitable[None]]]] = {
    "late-shrink": late_scripts.late_shrink,
    "late-grow": late_scripts.late_grow,
    "late-answer": late_scripts.late_answer,
    "late-leave": late_scripts.late_leave,
    "stale-mark": late_scripts.stale_mark,
    "late-update": control_scripts.late_update,
    "late-stop": control_scripts.late_stop,
    "late-write": control_scripts.late_write,
    "late-records": control_scripts.late_records,
    "slow-register": control_scripts.slow_register,
    "start-full": control_scripts.start_full,
    "last-wiped": control_scripts.last_wiped,
    "wiped-between": control_scripts.wiped_between,
    "silent-flip": control_scripts.silent_flip,
    "topple": scripts.topple,
    "flip": scripts.flip,
    "late-fetch": scripts.late_fetch,
    "late-join": scripts.late_join,
}
MOMENT_LIMIT_S: Final = 8.0  # a moment that does not come


class Injector:
    def __init__(self, world: World, faults: list[Fault]) -> None:
        self._world = world
        self._faults = faults
        self._tasks: list[asyncio.Task[None]] = []
        self._script = False  # a fault of several steps is under way

    async def run(self) -> None:
        world = self._world
        begun_s = world.loop.now_s
        for fault in self._faults:
            await asyncio.sleep(max(begun_s + fault.at_s - world.loop.now_s, 0))
            self._tasks.append(asyncio.get_running_loop().create_task(self._when(fault)))

    async def end(self) -> None:
        """Stop all faults, and mend everything."""
        for task in self._tasks:
            task.cancel()
        ended = await asyncio.gather(*self._tasks, return_exceptions=True)
        for error in ended:
            if isinstance(error, Exception):
                raise error
        world = self._world
        world.speak()
        world.tree.heal_all()
        world.network.heal_all()
        for number, slot in world.slots.items():
            world.resume(number)
            slot.files.mend()
            if slot.node is not None:
                slot.node.slow_disk = False
                slot.node.clock_s = slot.node.drift = 0.0
            if slot.node is not None and slot.node.stopping:
                world.kill(number)  # the fault that would have started it again was cancelled
            if slot.has_lost_a_directory:
                world.kill(number)  # as an operator does once the disk is mended: it stays offline until the next start
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

    async def _when(self, fault: Fault) -> None:
        if fault.moment:
            if not await self._world.moments.next(fault.moment, MOMENT_LIMIT_S):
                return
            await asyncio.sleep(fault.after_s)
        world = self._world
        if fault.kind in SCRIPTS and self._script:
            return  # one at a time: each wants to begin with a whole cluster
        world.faults_begun += 1
        world.faults_active += 1
        try:
            await self._one(fault)
        finally:
            world.faults_active -= 1

    async def _one(self, fault: Fault) -> None:
        world = self._world
        network = world.network
        number, other = self._who(fault.target, fault.key), self._who(fault.other, fault.key)
        if number not in world.slots:
            return
        slot = world.slots[number]
        others = [each.host for each in world.slots.values() if each is not slot]
        if fault.kind in ("power", "wipe") and not world.may_lose:
            return  # another broker has lost its copies, or may miss records: two such faults may lose records
        world.note("fault", f"{fault.kind} b{number} b{other} {fault.for_s:.3f}")
        match fault.kind:
            case "kill" | "vanish" | "power" | "bounce" | "wipe":
                world.may_lose = False
                world.kill(number, vanish=fault.kind == "vanish", power=fault.kind in ("power", "wipe"))
                if fault.kind == "wipe":
                    slot.files.replace()
                await asyncio.sleep(0.01 if fault.kind == "bounce" else fault.for_s)
                world.start(number)
            case "stop":
                world.may_lose = False  # a partition with two replicas has one of them from now on
                await world.stop(number)
                await asyncio.sleep(fault.for_s)
                world.start(number)
            case "pause":
                world.pause(number)
                await asyncio.sleep(fault.for_s)
                world.resume(number)
            case "cut" | "cut-one-way":
                if other in world.slots and other != number:
                    network.cut(slot.host, world.slots[other].host, both=fault.kind == "cut")
                    await asyncio.sleep(fault.for_s)
                    network.heal(slot.host, world.slots[other].host)
            case "isolate" | "alone":  # alone: from the tree, too; clients still reach it
                if fault.kind == "alone":
                    world.tree.cut(slot.host)
                for host in others:
                    network.cut(slot.host, host)
                await asyncio.sleep(fault.for_s + (2 if fault.kind == "alone" else 0))
                if fault.kind == "alone":
                    world.tree.heal(slot.host)
                for host in others:
                    network.heal(slot.host, host)
            case "hold" | "hold-answer":
                holds = [(slot.host, host, fault.api, fault.kind == "hold-answer") for host in others]
                for each in holds:
                    network.hold(each)
                await asyncio.sleep(fault.for_s)
                for each in holds:
                    network.let_go(each)
            case "half-open" | "reset":
                for _ in range(3):
                    network.drop_one(slot.host, one_side=fault.kind == "half-open")
            case "slow":
                network.slow.add(slot.host)
                await asyncio.sleep(fault.for_s)
                network.slow.discard(slot.host)
            case "slow-tree":  # its answers
                network.slow_pairs.add((HOST, slot.host))
                await asyncio.sleep(fault.for_s)
                network.slow_pairs.discard((HOST, slot.host))
            case "cut-tree":
                world.tree.cut(slot.host)
                await asyncio.sleep(fault.for_s)
                world.tree.heal(slot.host)
            case "expire":
                world.tree.expire(slot.host)
            case "clock":
                if slot.node is not None:
                    slot.node.clock_s += (fault.for_s - 2) * 20
            case "drift":
                if slot.node is not None:
                    slot.node.clock_s = slot.node.clock_off_s(world.loop.now_s)
                    slot.node.drift_since_s = world.loop.now_s
                    slot.node.drift = (fault.for_s - 2) / 20
            case "disk-fails" | "disk-full" | "disk-slow":
                await scripts.trouble(slot, fault.kind, fault.for_s)
            case "elect":
                if other in world.slots:
                    await world.make_leader(fault.key, other)
            case "expire-in-start":
                await scripts.expire_in_start(world, number)
            case "depose":  # as an operator does who wants another controller
                try:
                    world.tree.own.delete(paths.CONTROLLER)
                except NoNodeError:
                    pass
            case kind if kind in SCRIPTS:
                self._script = True
                try:
                    await SCRIPTS[kind](world, fault.key)
                finally:
                    self._script = False
                    world.speak()
            case _:
                raise ValueError(f"there is no fault {fault.kind}")
