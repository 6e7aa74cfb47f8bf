"""Drives a machine on sockets for blocking callers: the calling thread does the work.

A caller that waits (for an acknowledgement, for room) polls the sockets itself: a hop to another thread would cost more
than the work. A thread of our own polls while no caller does, so that lingering batches are sent and answers are
handled. It stays away for QUIET_S after a caller's last turn.

A caller whose last answer came within SPIN_S of its request busy-polls for that long, because waking up a core takes as
long as such an answer. One slower answer ends the busy-polling, and the next quick one starts it again.

The machine is used under one lock, which no thread holds while it polls. Rules for callers:
1. `with engine.lock` around every use of the machine; `pump` afterwards if there may be something to write.
2. `wait(is_done, until_s)` and `turn` are called with the lock held, give it up while they poll, and hold it again when
   they return. Only one thread polls at a time; the others wait for its next step.
3. Callbacks run outside the lock.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

import atexit
import os
import select
import threading
import time
from collections.abc import Callable
from typing import Final, Protocol, cast

from librt.random import random as any_fraction
from librt.threading import Lock

from ixion.clients.address import Address
from ixion.clients.core.client import Client
from ixion.clients.core.connection import NEVER
from ixion.clients.dial import Place, is_literal, resolve
from ixion.clients.faults import UnreachableError
from ixion.clients.lines import Lines
from ixion.clients.log import log_callback_ended, log_unsent

QUIET_S: Final = 0.002  # how long after a caller's last turn our own thread stays away
REST_S: Final = 0.005  # how long it rests while a caller waits
SPIN_S: Final = 0.000_15
LONG_S: Final = 3600.0


class Machine(Protocol):
    """What is driven: a client without I/O."""

    @property
    def client(self) -> Client: ...

    def tick(self, now_s: float) -> None: ...

    @property
    def wake_s(self) -> float: ...

    def recover(self, now_s: float) -> None: ...

    def let_go(self) -> bool:
        """The client was dropped without close(). True if nothing is left to send."""
        ...

    @property
    def unacknowledged(self) -> int:
        """Records that were accepted and are not settled yet."""
        ...


class Engine:
    def __init__(self, machine: Machine, name: str, tell: Callable[[], None], *, stands_in: bool = True) -> None:
        """`tell` runs due callbacks; our own thread calls it, without the lock. Without `stands_in` there is no such
        thread. Neither `machine` nor `tell` may refer to the client object of the caller: our thread would keep it
        alive, and a client that was dropped would never be noticed."""
        self.machine = machine
        self.stands_in = stands_in
        self.lock: Final = Lock()  # one that compiled code takes without a call into Python
        self.is_stopped = False
        self.planned_s = -NEVER  # when the polling thread wakes up; long ago if no thread polls
        self._name = name
        self._tell = tell
        self._lines = Lines(machine.client)
        lock = cast(threading.Lock, self.lock)
        self._stepped = threading.Condition(lock)  # after a turn of the thread that polls, if another waits for it
        self._watchers = 0  # threads that wait for `_stepped`
        # Our own thread waits here, not at `_stepped`: waking it after every turn cost a caller 40 µs.
        self._resting = threading.Condition(lock)
        self._is_polling = False
        self._spins = False  # whether the last answer came quickly
        self._poll = select.poll()
        self._polled: dict[int, int] = {}  # what is registered there
        self._callers = 0  # that wait for something
        self._driven_s = 0.0  # when a caller last took a turn
        self._bell_in, self._bell_out = os.pipe()
        os.set_blocking(self._bell_in, False)
        os.set_blocking(self._bell_out, False)
        self._stand_in: threading.Thread | None = None
        self._is_dropped = False
        self._lookups = 0  # running name lookups
        self._forks = FORKS[0]

    @property
    def is_forked(self) -> bool:
        """Whether this process was forked: it lacks the thread, and shares the sockets with its parent."""
        return FORKS[0] != self._forks

    def check(self) -> None:
        """Any thread may call. (The other engine belongs to one loop.)"""

    @property
    def has_thread(self) -> bool:
        return self._stand_in is not None

    def pump(self, now_s: float) -> None:
        """Do everything that can be done without waiting. The lock is held."""
        self._driven_s = now_s
        is_owed = self._lines.is_owed  # requests that are sent only now have no answer yet
        self._drain(now_s)
        if is_owed and not self._is_polling and not self.is_stopped:
            self._take(self._poll_set().poll(0))
        self.look_after()

    def look_after(self) -> None:
        """Make sure that a thread polls again when the machine wants it. The lock is held."""
        if self._stand_in is None and self.stands_in and not self.is_stopped:
            self._stand_in = threading.Thread(target=self._run, name=self._name, daemon=True)
            self.planned_s = -NEVER
            DRIVEN.add(self)
            self._stand_in.start()  # the producer's step 9
        elif self._is_polling and self.machine.wake_s < self.planned_s:
            self.ring()

    def ring(self) -> None:
        """Wake the thread that polls."""
        try:
            os.write(self._bell_out, b"!")
        except OSError:
            pass  # it is awake already, or the engine has stopped

    def wait(self, is_done: Callable[[], bool], until_s: float) -> bool:
        """Drive until `is_done`; False if it is not done in time. The lock is held."""
        self._callers += 1
        try:
            while not is_done():
                if time.monotonic() >= until_s or self.is_stopped:
                    return False
                self.turn(until_s, is_done)
            return True
        finally:
            self._callers -= 1

    def turn(self, until_s: float, is_done: Callable[[], bool]) -> None:
        """Poll once and handle what is ready, or wait for the polling thread to do so. The lock is held."""
        if self._is_polling:
            if self._stand_in is not None and self._callers == 1:
                self.ring()  # our own thread makes room for a caller
            self.await_news(until_s)
            return
        now_s = time.monotonic()
        is_caller = threading.current_thread() is not self._stand_in
        if is_caller:
            self._driven_s = now_s
        self._drain(now_s)
        if is_done() or self._is_taken():
            return
        wake_s = min(until_s, self.machine.wake_s, now_s + LONG_S)  # the consumer's step 11.4
        poll = self._poll_set()
        self._is_polling = True
        self.planned_s = wake_s
        self.lock.release()
        try:
            ready = self._await_stir(poll, now_s, wake_s, is_caller)  # the producer's step 11.19
        finally:
            self.lock.acquire()
            self._is_polling = False
            self.planned_s = -NEVER
            if self._watchers:
                self._stepped.notify_all()
        self._take(ready)

    def _await_stir(self, poll: select.poll, now_s: float, wake_s: float, is_caller: bool) -> list[tuple[int, int]]:
        """Ready sockets, at the latest at `wake_s`. Without the lock."""
        if wake_s <= now_s:
            return poll.poll(0)
        if is_caller and self._spins:
            until_s = min(now_s + SPIN_S, wake_s)
            while True:
                ready = poll.poll(0)
                if ready:
                    return ready
                if time.monotonic() >= until_s:
                    break
        # Rounded up: waking a millisecond early would cost one more turn.
        ready = poll.poll(max((wake_s - now_s) * 1000 + 0.5, 0))
        if is_caller:
            self._spins = time.monotonic() - now_s <= SPIN_S
        return ready

    def announce(self) -> None:
        """Wake threads in `await_news`. Without the lock."""
        with self.lock:
            self._stepped.notify_all()

    def await_news(self, until_s: float) -> None:
        """Wait for the next step of another thread. The lock is held, and given up meanwhile."""
        self._watchers += 1
        try:
            self._stepped.wait(max(min(until_s - time.monotonic(), LONG_S), 0))
        finally:
            self._watchers -= 1

    def stop(self) -> None:
        """Stop our own thread and close the sockets. Without the lock."""
        with self.lock:
            self.is_stopped = True
            self._stepped.notify_all()
            self._resting.notify_all()
            self.ring()
            thread = self._stand_in
            is_late = self._lookups > 0  # it ends when the resolver has answered
        DRIVEN.discard(self)
        if thread is not None and thread is not threading.current_thread() and not is_late:
            thread.join()
        with self.lock:
            self._close_files()

    def _close_files(self) -> None:
        self._lines.close()
        ends = (self._bell_in, self._bell_out)
        self._bell_in = self._bell_out = -1
        for end in ends:
            if end >= 0:
                os.close(end)

    def abandon(self) -> None:
        """The client was dropped without close(): our own thread sends what is left, closes the connections and ends.
        This runs during garbage collection, perhaps on a thread that holds the lock."""
        self._is_dropped = True
        self.ring()
        if self._stand_in is None:
            self.is_stopped = True
            self._close_files()

    def _drain(self, now_s: float) -> None:
        """Tick and write until neither has more to do."""
        try:
            while True:
                self.machine.tick(now_s)  # the consumer's steps 11.3 and 11.8
                self._open_new()
                if not self._lines.flush(now_s) and not self.machine.client.has_failed_to_open:
                    return
        except BaseException:
            self.machine.recover(now_s)
            raise

    def _open_new(self) -> None:
        """Begin to connect new machines. Names are looked up without the lock: the resolver may take half a minute, and
        other connections and threads must not wait for it."""
        for machine in self.machine.client.take_opened():
            places: list[Place] | None = None
            if not is_literal(machine.address.host):
                try:
                    places = self._look_up(machine.address)
                except UnreachableError as fault:
                    machine.close(fault)
            if not machine.closed and not self.is_stopped:
                self._lines.open(machine, places)

    def _is_taken(self) -> bool:
        """Whether another thread now polls, or has stopped the engine, while a name was looked up."""
        return self._is_polling or self.is_stopped

    def _look_up(self, address: Address) -> list[Place]:
        self._lookups += 1
        self.lock.release()
        try:
            return resolve(address)
        finally:
            self.lock.acquire()
            self._lookups -= 1

    def _take(self, ready: list[tuple[int, int]]) -> None:
        if not ready:
            return
        now_s = time.monotonic()
        events = dict(ready)
        if events.pop(self._bell_in, 0):
            try:
                os.read(self._bell_in, 4096)
            except BlockingIOError:
                pass
        try:
            for line in list(self._lines.lines):
                stirred = events.get(line.fileno(), 0)
                if stirred:
                    line.advance(stirred, now_s)
        except BaseException:
            self.machine.recover(now_s)
            raise
        if events:
            self._drain(now_s)

    def _poll_set(self) -> select.poll:
        """All sockets, and the wake-up pipe."""
        wanted = {self._bell_in: select.POLLIN}
        for line in self._lines.lines:
            wanted[line.fileno()] = line.events
        if wanted != self._polled:
            self._poll = select.poll()
            for file, events in wanted.items():
                self._poll.register(file, events)
            self._polled = wanted
        return self._poll

    def _run(self) -> None:
        """The loop of our own thread."""
        while self._stand_by():  # the producer's step 10.1
            self._tell_all()
        self._tell_all()
        DRIVEN.discard(self)

    def _stand_by(self) -> bool:
        """Take a turn, or wait while callers do; False when nothing is left to do."""
        with self.lock:
            if self._is_dropped and not self.is_stopped and self.machine.let_go():
                self.is_stopped = True
                self._close_files()
            if self.is_stopped:
                return False
            away_s = time.monotonic() - self._driven_s
            if self._is_polling or self._callers:
                self._resting.wait(REST_S)
            elif away_s < QUIET_S:
                self._resting.wait(QUIET_S)
            else:
                self.turn(NEVER, self._has_stopped)
            return True

    def _tell_all(self) -> None:
        """Run callbacks. One that calls sys.exit() does not end our thread, which other records still need."""
        try:
            self._tell()
        except BaseException:
            log_callback_ended()

    def _has_stopped(self) -> bool:
        return self.is_stopped


DRIVEN: Final[set[Engine]] = set()  # engines with a running thread


def report_unsent() -> None:
    """At the end of the program, which ends our threads: report records that are lost."""
    for engine in list(DRIVEN):
        count = 0 if engine.is_forked else engine.machine.unacknowledged
        if count:
            log_unsent(count)


atexit.register(report_unsent)

FORKS: Final = [0]  # how often this process and its ancestors were forked


def mark_forked() -> None:
    FORKS[0] += 1


os.register_at_fork(after_in_child=mark_forked)


def random() -> float:
    """A random number for back-offs. (Importing `random` costs several milliseconds of every start.)"""
    return any_fraction()
