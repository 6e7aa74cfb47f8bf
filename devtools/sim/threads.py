"""Threads of blocking clients in virtual time: real threads, of which one runs at a time.

The loop gives its turn to a thread, and goes on when that thread waits (for its sockets, at a condition, for the end of
another thread) or has ended. So a run with threads is as repeatable as one without. `install` replaces what
`ixion.clients.engine` waits with; all of it is the real thing for callers outside of these threads.

A thread belongs to a node. `bury` ends the threads of a dead one: `Killed` is raised wherever they wait.
"""

from __future__ import annotations

import _thread
import os
import select
import threading
from collections.abc import Callable
from typing import Any, Final

from librt.threading import Lock

from devtools.sim.loop import NODE, STEP_S, Node, SimLoop, context_of

NEVER: Final = float("inf")
FIRST_BELL: Final = 1 << 30

_RealThread: Any = threading.Thread
_real_condition: Any = threading.Condition
_real_poll: Any = select.poll


class Killed(BaseException):
    """The process of this thread is gone."""


class Turns:
    """Of one run: the loop's and the threads' turns."""

    loop: SimLoop | None = None
    of_the_loop: Any = None
    threads: list[SimThread] = []  # noqa: RUF012 - of the run
    bells: dict[int, Bell] = {}  # noqa: RUF012


class SimThread(_RealThread):  # type: ignore[misc]
    """Made in a context that has a node."""

    def __init__(self, target: Callable[[], object], name: str = "", daemon: bool = True) -> None:
        super().__init__(name=name, daemon=daemon)
        self.node = NODE.get()
        self.is_over = False
        self.error: BaseException | None = None
        self.on_end: list[Callable[[], None]] = []
        self._work = target
        self._killed = False
        self._turn = _thread.allocate_lock()
        self._turn.acquire()
        self._ticket = 0  # of the present wait

    def start(self) -> None:
        assert Turns.loop is not None
        Turns.threads.append(self)
        super().start()
        Turns.loop.call_soon(self._go, 0, context=context_of(self.node))

    def run(self) -> None:
        self._turn.acquire()
        context_of(self.node).run(self._run)
        Turns.of_the_loop.release()

    def _run(self) -> None:
        assert Turns.loop is not None
        try:
            if not self._killed:
                self._work()
        except Killed:
            pass
        except BaseException as error:
            self.error = error
            Turns.loop.failures.append(f"{self.name}: {error!r}")
        self.is_over = True
        for each in self.on_end:
            each()

    def join(self, timeout: float | None = None) -> None:  # noqa: ARG002 - nobody gives one
        """By another thread of the simulation."""
        me = this_thread()
        assert me is not None
        if not self.is_over:
            ticket = me.ticket()
            self.on_end.append(lambda: me.wake_soon(ticket))
            me.park(NEVER, ticket)

    def ticket(self) -> int:
        """Of the next wait: a wake-up for an earlier one does nothing."""
        self._ticket += 1
        return self._ticket

    def park(self, until_s: float, ticket: int) -> None:
        """Give the turn back until a call of `wake_soon` with its ticket, at the latest at `until_s`."""
        loop = Turns.loop
        assert loop is not None
        if self._killed:
            raise Killed
        timer = None if until_s == NEVER else loop.call_at(max(until_s, loop.now_s), self._go, ticket)
        Turns.of_the_loop.release()
        self._turn.acquire()
        if timer is not None:
            timer.cancel()
        if self._killed:
            raise Killed

    def wake_soon(self, ticket: int) -> None:
        assert Turns.loop is not None
        Turns.loop.call_soon(self._go, ticket, context=context_of(self.node))

    def kill(self) -> None:
        self._killed = True
        if not self.is_over:
            self._go(self._ticket)

    def _go(self, ticket: int) -> None:
        """A step of the loop: this thread runs until it waits again."""
        if self.is_over or ticket != self._ticket:
            return
        self._ticket += 1
        self._turn.release()
        Turns.of_the_loop.acquire()
        self._bury()

    def _bury(self) -> None:
        if self.is_over:
            super().join()
            Turns.threads.remove(self)


def this_thread() -> SimThread | None:
    thread: Any = threading.current_thread()
    return thread if isinstance(thread, SimThread) else None


def sleep(seconds: float) -> None:
    me = this_thread()
    assert me is not None
    assert Turns.loop is not None
    me.park(Turns.loop.now_s + seconds, me.ticket())


def bury(node: Node) -> None:
    """End the threads of a node that is dead. Called by the loop."""
    for thread in list(Turns.threads):
        if thread.node is node:
            thread.kill()


class SimCondition:
    """Of a lock that no thread holds while it waits."""

    def __init__(self, lock: Any) -> None:
        self._lock = lock
        self._waiting: list[tuple[SimThread, int]] = []

    def wait(self, timeout: float | None = None) -> None:
        me = this_thread()
        assert me is not None
        assert Turns.loop is not None
        ticket = me.ticket()
        self._waiting.append((me, ticket))
        self._lock.release()
        try:
            me.park(NEVER if timeout is None else Turns.loop.now_s + timeout, ticket)
        finally:
            self._lock.acquire()
            if (me, ticket) in self._waiting:
                self._waiting.remove((me, ticket))

    def notify_all(self) -> None:
        waiting, self._waiting = self._waiting, []
        for thread, ticket in waiting:
            thread.wake_soon(ticket)


class Bell:
    """A pipe that wakes a thread which polls."""

    def __init__(self) -> None:
        self.rung = False
        self.on_ring: Callable[[], None] | None = None


class SimPoll:
    def __init__(self) -> None:
        self._files: dict[int, int] = {}

    def register(self, file: int, events: int) -> None:
        self._files[file] = events

    def poll(self, timeout_ms: float | None = None) -> list[tuple[int, int]]:
        me, loop = this_thread(), Turns.loop
        assert me is not None
        assert loop is not None
        found = self._ready()
        if found:
            return found
        if timeout_ms is not None and timeout_ms <= 0:
            loop.now_s += STEP_S  # so that a thread that polls again and again comes to an end
            return []
        ticket = me.ticket()

        def stirred() -> None:
            self._watch(None)
            me.wake_soon(ticket)

        self._watch(stirred)
        try:
            me.park(NEVER if timeout_ms is None else loop.now_s + timeout_ms / 1000, ticket)
        finally:
            self._watch(None)
        return self._ready()

    def _watch(self, stirred: Callable[[], None] | None) -> None:
        assert Turns.loop is not None
        for file, events in self._files.items():
            bell, socket = Turns.bells.get(file), Turns.loop._readers.get(file)
            if bell is not None:
                bell.on_ring = stirred
            elif socket is not None:
                if events & select.POLLIN or stirred is None:
                    socket.read_by(stirred, ())
                if events & select.POLLOUT or stirred is None:
                    socket.write_by(stirred, ())

    def _ready(self) -> list[tuple[int, int]]:
        assert Turns.loop is not None
        found = []
        for file, wanted in self._files.items():
            bell, socket = Turns.bells.get(file), Turns.loop._readers.get(file)
            events = 0
            if bell is not None:
                events = select.POLLIN if bell.rung else 0
            elif socket is not None:
                events = (select.POLLIN if socket.has_data else 0) | (select.POLLOUT if socket.code is not None else 0)
            if events & wanted:
                found.append((file, events & wanted))
        return found


def install(loop: SimLoop) -> None:
    """For the rest of this process."""
    Turns.loop, Turns.of_the_loop = loop, _thread.allocate_lock()
    Turns.of_the_loop.acquire()
    real_pipe, real_read, real_write, real_close = os.pipe, os.read, os.write, os.close
    real_set_blocking = os.set_blocking

    def make_thread(*given: Any, **named: Any) -> Any:
        return _RealThread(*given, **named) if this_thread() is None else SimThread(**named)

    def make_condition(lock: Any = None) -> Any:
        return SimCondition(lock) if isinstance(lock, Lock) and this_thread() is not None else _real_condition(lock)

    def pipe() -> tuple[int, int]:
        if this_thread() is None:
            return real_pipe()
        number = FIRST_BELL + len(Turns.bells)
        Turns.bells[number] = Turns.bells[number + 1] = Bell()
        return number, number + 1

    def read(file: int, size: int) -> bytes:
        if file not in Turns.bells:
            return real_read(file, size)
        Turns.bells[file].rung = False
        return b"!"

    def write(file: int, data: Any) -> int:
        if file not in Turns.bells:
            return real_write(file, data)
        bell = Turns.bells[file]
        bell.rung = True
        if bell.on_ring is not None:
            bell.on_ring()
        return 1

    def close(file: int) -> None:
        if file not in Turns.bells:
            real_close(file)

    def set_blocking(file: int, blocking: bool) -> None:
        if file not in Turns.bells:
            real_set_blocking(file, blocking)

    places: list[tuple[Any, str, Any]] = [
        (threading, "Thread", make_thread),
        (threading, "Condition", make_condition),
        (select, "poll", lambda: _real_poll() if this_thread() is None else SimPoll()),
        *[(os, each.__name__, each) for each in (pipe, read, write, close, set_blocking)],
    ]
    for module, name, instead in places:
        setattr(module, name, instead)
