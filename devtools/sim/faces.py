"""Processes of programs that use our clients, in both faces.

A program is a coroutine that is written once: `await face.wait(consumer.poll(1))`. With the asyncio face it is a task
of the loop. With the blocking face it is the main thread of a process (`devtools.sim.threads`); what it awaits has
happened already, so it never suspends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final

import ixion.clients
import ixion.clients.aio
from devtools.sim import threads
from devtools.sim.loop import Node, SimLoop, context_of
from devtools.sim.world import World
from ixion.clients.core.client import COORDINATOR

BELIEFS: Final = 40  # for a coordinator that is not reached: connecting takes 1.5 s at most, its first answer 2 s
LOOKS: Final = 3  # in a row that see a caller asleep beside something to do, or a timer that is due and does not fire
OVERDUE_S: Final = 0.001


class Face:
    """One process."""

    def __init__(self, world: World, node: Node) -> None:
        self.world = world
        self.node = node
        self.loop: SimLoop = world.loop
        self.ended: asyncio.Future[None] = world.loop.create_future()
        self.error: BaseException | None = None
        self.clients: list[Any] = []  # consumers and producers; kept, so that no dead one is finalized
        self._idle = 0  # looks in a row
        self._late: dict[int, int] = {}  # looks in a row, by client
        self._belief: tuple[int, int] = (-1, 0)  # the coordinator that is not reached, and the attempts to find one
        self._believed = 0  # looks in a row

    consumers: Any
    producers: Any
    share_consumers: Any

    def consumer(self, **settings: Any) -> Any:
        self.clients.append(self.consumers(self.world.bootstrap, **settings))
        return self.clients[-1]

    def share_consumer(self, **settings: Any) -> Any:
        self.clients.append(self.share_consumers(self.world.bootstrap, **settings))
        return self.clients[-1]

    def producer(self, **settings: Any) -> Any:
        self.clients.append(self.producers(self.world.bootstrap, **settings))
        return self.clients[-1]

    def begin(self, program: Coroutine[Any, Any, None]) -> None:
        raise NotImplementedError

    async def wait(self, called: Any) -> Any:
        """What a method of a client returns in the end."""
        raise NotImplementedError

    async def sleep(self, seconds: float) -> None:
        raise NotImplementedError

    async def die(self) -> None:
        """As kill -9, now."""
        self.loop.call_soon(self.kill, context=context_of(None))
        await self.sleep(1e9)

    def kill(self) -> None:
        self.node.dead = True
        self.world.graves += [self, self.node]
        self.world.network.died(self.node, False)
        threads.bury(self.node)
        self.end()

    def end(self, error: BaseException | None = None) -> None:
        self.error = self.error or error
        if not self.ended.done():
            self.ended.set_result(None)

    def asleep(self) -> str:
        """What is wrong if a caller waits although there is something to do."""
        if self.node.dead or self.ended.done():
            return ""
        has_news = False
        for number, client in enumerate(self.clients):
            machine = client._machine
            late, self._late[number] = self._late.get(number, 0), 0
            if getattr(client, "_closed", False) or getattr(client, "_is_closed", False):
                continue
            if not getattr(machine, "_is_inside", True):
                continue  # a consumer that nobody polls need not be driven
            # 0: at once, and so it may be since this moment. Timers that repeat may be due at the moment of each look.
            if machine.wake_s < self.loop.now_s - OVERDUE_S:
                self._late[number] = late + 1
                if late + 1 >= LOOKS:
                    return f"{self.node} {type(self).__name__}: its timer was due {LOOKS} looks ago"
            said = restless(machine, self.loop.now_s)
            if said:
                return f"{self.node} {type(self).__name__}: {said}"
            has_news = has_news or getattr(machine, "has_news", False)
        if self._is_waiting_in_vain():
            return f"{self.node} {type(self).__name__}: it waits for coordinator {self._belief[0]}, which is away"
        self._idle = self._idle + 1 if has_news else 0
        return f"{self.node} {type(self).__name__}: poll waits beside news" if self._idle >= LOOKS else ""

    def _is_waiting_in_vain(self) -> bool:
        """Whether a member neither reaches the coordinator that it knows nor looks for another one."""
        for client in self.clients:
            coordinator = getattr(client._machine, "coordinator", None)
            if coordinator is not None and not client._closed:
                node_id = coordinator._node_id
                line = client._machine.client.connection(node_id | COORDINATOR) if node_id >= 0 else None
                belief = (node_id, coordinator._failures)
                is_same = node_id >= 0 and belief == self._belief and (line is None or not line.ready)
                self._believed = self._believed + 1 if is_same else 0
                self._belief = belief
        return self._believed >= BELIEFS


def restless(machine: Any, now_s: float) -> str:
    """What a machine has missed. One that names a later time to be woken has nothing to do before: another tick must
    send nothing."""
    if machine.wake_s <= now_s:
        return ""
    before = unsent(machine)
    machine.tick(now_s)
    return "it sends only when it is ticked again" if unsent(machine) > before else ""


def unsent(machine: Any) -> int:
    """Buffers that wait to be written, and connections to be opened."""
    client = machine.client
    return len(client._opened) + sum(len(each.unsent) for each in client.machines)


class Blocking(Face):
    consumers = ixion.clients.Consumer
    producers = ixion.clients.Producer
    share_consumers = ixion.clients.ShareConsumer

    def begin(self, program: Coroutine[Any, Any, None]) -> None:
        def run() -> None:
            error: BaseException | None = None
            try:
                program.send(None)
            except StopIteration:
                pass
            except threads.Killed:
                raise
            except BaseException as raised:
                error = raised
            self.loop.call_soon(self.end, error, context=context_of(None))

        context_of(self.node).run(lambda: threads.SimThread(run, str(self.node)).start())

    async def wait(self, called: Any) -> Any:
        return called

    async def sleep(self, seconds: float) -> None:
        threads.sleep(seconds)


class Asyncio(Face):
    consumers = ixion.clients.aio.Consumer
    producers = ixion.clients.aio.Producer
    share_consumers = ixion.clients.aio.ShareConsumer

    def begin(self, program: Coroutine[Any, Any, None]) -> None:
        def ended(task: asyncio.Task[None]) -> None:
            self.end(task.exception())

        task = self.loop.spawn(self.node, program)
        task.add_done_callback(ended, context=context_of(None))

    async def wait(self, called: Any) -> Any:
        return await called

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


FACES: Final[tuple[Callable[[World, Node], Face], ...]] = (Blocking, Asyncio)
