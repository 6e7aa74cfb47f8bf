"""One run of a seed: start, load, faults, mending, and what must hold then."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import random
import tempfile
import threading
import traceback
from dataclasses import dataclass, field
from typing import Final

from devtools.sim.broken import Broken
from devtools.sim.checks import Watcher, behind
from devtools.sim.faults import Fault
from devtools.sim.injector import Injector
from devtools.sim.jobs import JOBS, draw
from devtools.sim.loop import SimLoop
from devtools.sim.patches import Running
from devtools.sim.trace import Trace
from devtools.sim.workload import PACES_S, Load
from devtools.sim.world import World
from ixion.broker.metadata import paths
from ixion.broker.metadata.cluster_node import encode_features
from ixion.language.model.topic_partition import TopicPartition

MEMORY: Final = "/dev/shm"
START_LIMIT_S: Final = 60.0
HEALTHY_LIMIT_S: Final = 90.0
SETTLE_S: Final = 3.0
LOOK_S: Final = 0.5
KEYS: Final[list[TopicPartition]] = [("t", 0), ("t", 1)]


@dataclass(slots=True)
class Outcome:
    seed: int
    broken: str = ""
    text: str = ""
    digest: str = ""
    events: int = 0
    acknowledged: int = 0
    virtual_s: float = 0.0
    lines: list[str] = field(default_factory=list)
    faults: int = 0
    job: str = ""


class Unexpected(logging.Handler):
    """Errors with a traceback that a broker logged: it did not expect them."""

    def __init__(self, trace: Trace, loop: SimLoop) -> None:
        super().__init__(logging.WARNING)
        self._trace = trace
        self._loop = loop
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        from devtools.sim.loop import NODE

        if record.exc_info and record.levelno >= logging.ERROR and not record.name.startswith("asyncio"):
            error = record.exc_info[1]
            self.found.append(f"{NODE.get()} {record.name}: {record.getMessage()}: {error!r}")


def simulate(
    seed: int,
    faults: list[Fault],
    *,
    length_s: float,
    producers: int = 3,
    keep_trace: bool = False,
    pace_s: float = 0.0,
    job: str = "",
) -> Outcome:
    """`pace_s`: between two sends of a producer, on average; `job`: what other clients do. The seed decides if they are
    not given."""
    job = job or draw(seed)
    pace_s = pace_s or random.Random(seed * 5 + 3).choice(PACES_S)
    trace = Trace(keep_trace)
    loop = SimLoop(seed, trace)
    outcome = Outcome(seed, faults=len(faults), job=job)
    base = MEMORY if os.access(MEMORY, os.W_OK) else None
    folder = tempfile.mkdtemp(prefix="ixion-sim-", dir=base)
    unexpected = Unexpected(trace, loop)
    root = logging.getLogger()
    root.addHandler(unexpected)
    random.seed(seed)
    Running.loop, Running.chance = loop, random.Random(seed + 7)
    gc.disable()  # finalizers would run at moments that depend on everything that ran before
    asyncio.set_event_loop(loop)
    world = World(loop, folder, directories=JOBS[job].directories)
    world.settings |= JOBS[job].settings
    Running.network = world.network
    begun_s = loop.now_s
    try:
        loop.run_until_complete(_run(world, seed, faults, length_s, producers, pace_s, job, outcome))
        started = [f"thread {each.name}" for each in threading.enumerate() if each is not threading.current_thread()]
        surprises = sorted({*unexpected.found, *loop.failures, *started})
        if surprises:
            raise Broken("NoSurprise", "; ".join(surprises[:3]))
    except Broken as broken:
        outcome.broken, outcome.text = broken.invariant, str(broken)
    except Exception as error:
        outcome.broken = "Crash"
        outcome.text = f"Crash: {error!r} at {traceback.extract_tb(error.__traceback__)[-1]}".replace(folder, "")
    finally:
        outcome.digest, outcome.events, outcome.virtual_s = trace.digest, trace.count, loop.now_s - begun_s
        outcome.lines = trace.lines
        world.close()
        Running.loop = Running.network = Running.chance = None
        root.removeHandler(unexpected)
        asyncio.set_event_loop(None)
    return outcome


async def _run(
    world: World,
    seed: int,
    faults: list[Fault],
    length_s: float,
    producers: int,
    pace_s: float,
    job: str,
    outcome: Outcome,
) -> None:
    if JOBS[job].features:
        world.tree.own.create(paths.FEATURES, encode_features(JOBS[job].features))
    for number in world.slots:
        world.start(number)
    if not await world.until(world.all_know_all, START_LIMIT_S):
        raise Broken("Start", "the brokers did not find each other")
    await world.create_topic("t", len(KEYS))
    keys = [*KEYS, *JOBS[job].keys]
    load = Load(world, keys, seed, pace_s)
    extra = JOBS[job](world, load, random.Random(seed * 11 + 5))
    extra.clocks_jump = any(fault.kind in ("clock", "drift") for fault in faults)
    await extra.prepare()
    if not await world.until(lambda: not behind(world, keys), START_LIMIT_S):
        raise Broken("Start", f"the topic is not ready: {behind(world, keys)}")
    load.begin(producers)
    extra.begin()
    injector = Injector(world, faults)
    for key in keys:
        world.moments.follow(key)
    watcher = Watcher(world, keys, load)
    injecting = asyncio.get_running_loop().create_task(injector.run())
    end_s = world.loop.now_s + length_s
    try:
        while world.loop.now_s < end_s:
            await asyncio.sleep(LOOK_S)
            watcher.look()
        injecting.cancel()
        await injector.end()
        world.note("note", "mended")
        await served_again(world, load, watcher)
        load.stop()
        if not await load.end(HEALTHY_LIMIT_S):
            raise Broken("Healthy", "a producer got no answer")
        await extra.check(HEALTHY_LIMIT_S)
        await healthy_again(world, keys)
        watcher.look()
        watcher.final()
    finally:
        outcome.acknowledged = load.acknowledged


async def served_again(world: World, load: Load, watcher: Watcher) -> None:
    """Some seconds after the last fault, and when a record has been acknowledged since."""
    mended_s, before = world.loop.now_s, load.acknowledged
    while world.loop.now_s < mended_s + SETTLE_S or load.acknowledged == before:
        if world.loop.now_s > mended_s + HEALTHY_LIMIT_S:
            raise Broken("Healthy", f"nothing is acknowledged {HEALTHY_LIMIT_S:g} s after the last fault")
        await asyncio.sleep(LOOK_S)
        watcher.look()


async def healthy_again(world: World, keys: list[TopicPartition]) -> None:
    if not await world.until(lambda: not behind(world, keys), HEALTHY_LIMIT_S):
        raise Broken("Healthy", f"{HEALTHY_LIMIT_S:g} s after the last fault: {behind(world, keys)}")
