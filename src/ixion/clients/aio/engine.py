"""Drives a machine on an event loop, with readers, writers and one timer.

`pump` does everything that can be done now. It is called when a socket is ready, when the machine's timer fires, and by
callers that have given the machine something to do. The loop's resolver looks up host names, and its threads do the
long work of a login (SCRAM); the engine owns these tasks and cancels them when it stops.
"""

from __future__ import annotations

import asyncio
import select
import socket
import time
from collections.abc import Callable
from contextlib import suppress

from ixion.clients.address import Address
from ixion.clients.core.connection import CONNECTING, NEVER, ConnectionMachine
from ixion.clients.dial import Place, is_literal, unresolved
from ixion.clients.engine import FORKS, LONG_S, Machine
from ixion.clients.faults import UnreachableError
from ixion.clients.line import Line
from ixion.clients.lines import Lines
from ixion.clients.log import log_unsent


class AioEngine:
    def __init__(self, machine: Machine, after: Callable[[], None] | None = None) -> None:
        """`after` is called at the end of every turn. Neither it nor `machine` may refer to the client object of the
        caller: the loop would keep it alive, and a client that was dropped would never be noticed. RuntimeError outside
        of a running loop."""
        try:
            self.loop = asyncio.get_running_loop()
        except RuntimeError:
            raise RuntimeError("no event loop is running: create this client inside a coroutine") from None
        self.machine = machine
        self.is_stopped = False
        self.planned_s = -NEVER  # when the timer fires
        self._after = after
        self._lines = Lines(machine.client)
        self._watched: dict[Line, tuple[int, int]] = {}  # file, events
        self._steps: list[asyncio.Future[None]] = []  # of callers that wait for anything to happen
        self._is_dropped = False
        self._timer: asyncio.TimerHandle | None = None
        self._is_scheduled = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._forks = FORKS[0]

    @property
    def is_forked(self) -> bool:
        """Whether this process was forked: it shares the sockets with its parent."""
        return FORKS[0] != self._forks

    def check(self) -> None:
        """RuntimeError if called in another loop than the client was created in."""
        try:
            running = asyncio.get_running_loop()
        except RuntimeError:
            running = None
        if running is not self.loop:
            raise RuntimeError("this client belongs to another event loop")

    def soon(self) -> None:
        """Pump after the callbacks that are ready now."""
        if not self._is_scheduled and not self.is_stopped:
            self._is_scheduled = True
            self.loop.call_soon(self._pump_scheduled)

    def pump(self) -> None:
        """Do everything that can be done without waiting."""
        if self.is_stopped:
            return
        now_s = time.monotonic()
        try:
            while True:
                self.machine.tick(now_s)
                self._open_new()
                if not self._lines.flush(now_s) and not self.machine.client.has_failed_to_open:
                    break
            self._defer()
        except BaseException:
            self.machine.recover(now_s)
            raise
        self._watch()
        self.set_timer()
        self.release()
        if self._is_dropped and self.machine.let_go():
            self.stop()
            self.release()

    async def wait(self, is_done: Callable[[], bool], until_s: float) -> bool:
        """Let the loop run until `is_done`; False if it is not done in time, or the engine was stopped."""
        self.check()
        self.pump()
        while not is_done():
            left_s = until_s - time.monotonic()
            if left_s <= 0 or self.is_stopped:
                return False
            self.set_timer()  # `is_done` may have asked for something
            timer = self.loop.call_later(min(left_s, LONG_S), self.release)
            try:
                await self.step()
            finally:
                timer.cancel()
        return True

    async def step(self) -> None:
        """Wait until something has happened. The loop refers to the caller meanwhile, so that its task and its client
        are not garbage-collected."""
        step = self.loop.create_future()
        self._steps.append(step)
        await step

    def release(self) -> None:
        """Run due callbacks, and wake callers that wait in `step`."""
        if self._after is not None:
            self._after()
        steps, self._steps = self._steps, []
        for step in steps:
            if not step.done():
                step.set_result(None)

    def abandon(self) -> None:
        """The client was dropped without close(): send what is left, then close the connections. From any thread."""
        if self.loop.is_closed():
            if self.machine.unacknowledged:
                log_unsent(self.machine.unacknowledged)
            self._lines.close()
        else:
            self.loop.call_soon_threadsafe(self._let_go)

    def _let_go(self) -> None:
        self._is_dropped = True
        self.machine.let_go()
        self.pump()

    def set_timer(self) -> None:
        wake_s = self.machine.wake_s
        if wake_s == self.planned_s:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.planned_s = wake_s
        if wake_s != NEVER and not self.is_stopped:
            self._timer = self.loop.call_later(max(wake_s - time.monotonic(), 0), self._ring)

    def stop(self) -> None:
        self.is_stopped = True
        for line in list(self._watched):
            self._forget(line)
        if self._timer is not None:
            self._timer.cancel()
        for task in self._tasks:
            task.cancel()
        self._lines.close()

    async def join(self) -> None:
        """After `stop`: wait until the engine's tasks have ended."""
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _pump_scheduled(self) -> None:
        self._is_scheduled = False
        self.pump()

    def _ring(self) -> None:
        self._timer = None
        self.planned_s = -NEVER
        self.pump()

    def _stirred(self, line: Line, events: int) -> None:
        if line.machine.phase == CONNECTING:
            self._forget(line)  # it may continue with another socket
        line.advance(events, time.monotonic())
        self.pump()

    def _open_new(self) -> None:
        for machine in self.machine.client.take_opened():
            machine.defers = True
            if is_literal(machine.address.host):
                self._lines.open(machine, None)
            else:
                task = self.loop.create_task(self._look_up(machine))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    def _defer(self) -> None:
        """Do the long work of logins on a thread."""
        for line in self._lines.lines:
            machine = line.machine
            if machine.work is not None:
                task = self.loop.create_task(self._work(machine, machine.work))
                machine.work = None
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    async def _work(self, machine: ConnectionMachine, work: Callable[[], object]) -> None:
        with suppress(Exception):  # the login itself fails in the same way
            await self.loop.run_in_executor(None, work)
        machine.worked(time.monotonic())
        self.pump()

    async def _look_up(self, machine: ConnectionMachine) -> None:
        try:
            places = await resolve(self.loop, machine.address)
        except UnreachableError as fault:
            machine.close(fault)
        else:
            if not machine.closed and not self.is_stopped:
                self._lines.open(machine, places)
        self.pump()

    def _watch(self) -> None:
        """Register each socket with the loop for the events that it waits for."""
        lines = self._lines.lines
        for line in [line for line in self._watched if line not in lines]:
            self._forget(line)
        for line in lines:
            wanted = (line.fileno(), line.events)
            if self._watched.get(line) == wanted:
                continue
            self._forget(line)
            file, events = wanted
            if events & select.POLLIN:
                self.loop.add_reader(file, self._stirred, line, select.POLLIN)
            if events & select.POLLOUT:
                self.loop.add_writer(file, self._stirred, line, select.POLLOUT)
            self._watched[line] = wanted

    def _forget(self, line: Line) -> None:
        file, events = self._watched.pop(line, (-1, 0))
        if events & select.POLLIN:
            self.loop.remove_reader(file)
        if events & select.POLLOUT:
            self.loop.remove_writer(file)


async def resolve(loop: asyncio.AbstractEventLoop, address: Address) -> list[Place]:
    try:
        found = await loop.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    except (OSError, ValueError, OverflowError) as error:
        raise unresolved(address, error) from None
    return [(family, place) for family, _, _, _, place in found]
