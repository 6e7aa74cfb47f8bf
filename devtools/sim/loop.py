"""An event loop on virtual time, shared by all nodes of a simulation.

Time stands still while callbacks run, but for a microsecond a round, and jumps to the next timer when none is ready. A
node is a process of the simulated cluster. Every callback belongs to the node in whose context it was scheduled
(`contextvars` carry that through tasks, timers and futures), so a node can be killed or paused between any two of
its steps: those of a dead node are dropped, those of a paused one wait.
"""

from __future__ import annotations

import asyncio
import contextvars
import random
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Executor, Future
from typing import Any, Final, TypeVar

from devtools.sim.trace import Trace

T = TypeVar("T")

STEP_S: Final = 1e-6  # a round of callbacks takes this long, so that code that polls the clock goes on
START_S: Final = 1_000.0
WORK_S: Final = 0.002  # of a worker thread, at most
SLOW_WORK_S: Final = 0.5  # with a slow disk
SPINS: Final = 10_000  # rounds without a pause: callbacks that only schedule each other


class Node:
    """One life of a process. A broker that is started again is another node."""

    def __init__(self, name: str, host: str) -> None:
        self.name = name
        self.host = host
        self.dead = False
        self.paused = False
        self.stopping = False  # cleanly, by a fault
        self.clock_s = 0.0  # how far its wall clock is off
        self.drift = 0.0  # seconds that it gains a second, since:
        self.drift_since_s = 0.0
        self.slow_disk = False
        self.backlog: list[tuple[Callable[..., object], tuple[Any, ...], contextvars.Context]] = []
        self.tasks: list[asyncio.Task[Any]] = []  # kept, or a dead one would run its `finally` when it is collected

    def clock_off_s(self, now_s: float) -> float:
        return self.clock_s + self.drift * (now_s - self.drift_since_s)

    def __repr__(self) -> str:
        return self.name


NODE: contextvars.ContextVar[Node | None] = contextvars.ContextVar("node", default=None)


def context_of(node: Node | None) -> contextvars.Context:
    context = contextvars.Context()
    context.run(NODE.set, node)
    return context


class _NoSelector:
    """What `BaseEventLoop` waits with: waiting moves the virtual clock."""

    def __init__(self, loop: SimLoop) -> None:
        self._loop = loop
        self._spins = 0

    def select(self, timeout: float | None) -> list[object]:
        if timeout is None:
            raise RuntimeError("the simulation stands still: nothing is scheduled any more")
        self._spins = self._spins + 1 if timeout <= 0 else 0
        if self._spins > SPINS:
            raise RuntimeError(f"the simulation spins at {self._loop.now_s}: {list(self._loop._ready)[:2]}")
        self._loop.now_s += max(timeout, STEP_S)
        return []


_BASE: Any = asyncio.BaseEventLoop  # whose signatures are far stricter than what it does


class SimLoop(_BASE):  # type: ignore[misc]
    def __init__(self, seed: int, trace: Trace) -> None:
        super().__init__()
        self.now_s = START_S
        self.random = random.Random(seed)
        self.trace = trace
        self._selector = _NoSelector(self)
        self._readers: dict[int, Any] = {}
        self.set_task_factory(_make_task)
        self.set_exception_handler(self._failed)
        self.failures: list[str] = []

    # Time and steps.

    def time(self) -> float:
        return self.now_s

    def _process_events(self, event_list: list[object]) -> None:
        """There are none."""

    def _write_to_self(self) -> None:
        """Nobody sleeps."""

    def call_soon(self, callback: Any, *args: Any, context: Any = None) -> Any:
        context = context if context is not None else contextvars.copy_context()
        node = context.get(NODE)
        if node is None:
            return super().call_soon(callback, *args, context=context)
        return super().call_soon(_step, node, callback, args, context, context=context)

    def call_soon_threadsafe(self, callback: Any, *args: Any, context: Any = None) -> Any:
        return self.call_soon(callback, *args, context=context)

    def call_at(self, when: float, callback: Any, *args: Any, context: Any = None) -> Any:
        context = context if context is not None else contextvars.copy_context()
        node = context.get(NODE)
        if node is None:
            return super().call_at(when, callback, *args, context=context)
        return super().call_at(when, _step, node, callback, args, context, context=context)

    def call_later(self, delay: float, callback: Any, *args: Any, context: Any = None) -> Any:
        return self.call_at(self.now_s + max(delay, 0), callback, *args, context=context)

    def resume(self, node: Node) -> None:
        node.paused = False
        waiting, node.backlog = node.backlog, []
        for callback, args, context in waiting:
            self.call_soon(callback, *args, context=context)

    def spawn(self, node: Node | None, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """A task of a node."""
        return context_of(node).run(self.create_task, work)

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> Any:
        """There are no threads: a broker is given pools (`StepPool`), and nothing else needs one."""
        if not isinstance(executor, StepPool):
            raise RuntimeError(f"{func} would run on a thread: {executor}")
        return super().run_in_executor(executor, func, *args)

    def _failed(self, _: Any, context: dict[str, Any]) -> None:
        error = context.get("exception")
        self.failures.append(f"{context.get('message')}: {error!r}")
        self.trace.add(self.now_s, "loop", f"{context.get('message')} {type(error).__name__}")

    # Sockets: what `devtools.sim.net` has given a number.

    network: Any = None

    async def create_connection(self, protocol_factory: Any, host: Any = None, port: Any = None, **_: Any) -> Any:
        from devtools.sim.sockets import create_connection

        return await create_connection(self.network, protocol_factory, host, port)

    async def connect_accepted_socket(self, protocol_factory: Any, sock: Any, **_: Any) -> Any:
        from devtools.sim.sockets import SimTransport

        protocol = protocol_factory()
        transport = SimTransport(sock.end, protocol)
        transport.begin()
        return transport, protocol

    def add_reader(self, fd: Any, callback: Any, *args: Any) -> None:
        self._readable(fd).read_by(callback, args)

    def remove_reader(self, fd: Any) -> bool:
        if fd in self._readers or not isinstance(fd, int):
            self._readable(fd).read_by(None, ())
        return True

    def _readable(self, fd: Any) -> Any:
        """A connection by its number; a listening socket stands for itself."""
        return self._readers[fd] if isinstance(fd, int) else fd

    def add_writer(self, fd: Any, callback: Any, *args: Any) -> None:
        self._readers[fd].write_by(callback, args)

    def remove_writer(self, fd: Any) -> bool:
        if fd in self._readers:
            self._readers[fd].write_by(None, ())
        return True


class StepPool(Executor):
    """In place of a pool of threads: work is a later step of the same node, in the order in which it was given."""

    def __init__(self, loop: SimLoop) -> None:
        self._loop = loop
        self._free_s = 0.0  # when it is through with what it has

    def submit(self, fn: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
        loop, node = self._loop, NODE.get()
        longest_s = SLOW_WORK_S if node is not None and node.slow_disk else WORK_S
        self._free_s = max(loop.now_s, self._free_s) + loop.random.uniform(0, longest_s)
        future: Future[Any] = Future()

        def run() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                result = fn(*args, **named)
            except (KeyboardInterrupt, SystemExit):
                raise
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(result)

        loop.call_at(self._free_s, run)
        return future

    def map(self, fn: Callable[..., Any], *items: Any, **_: Any) -> Iterator[Any]:
        """At once: its caller, a step itself, waits for it."""
        return iter([fn(*each) for each in zip(*items, strict=False)])

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """There is nothing to wait for."""


def _step(node: Node, callback: Any, args: Any, context: contextvars.Context) -> None:
    if node.dead:
        return
    if node.paused:
        node.backlog.append((callback, args, context))
        return
    callback(*args)


def _make_task(loop: Any, work: Any, **options: Any) -> Any:
    task: asyncio.Task[Any] = asyncio.Task(work, loop=loop, **options)
    node = NODE.get()
    if node is not None:
        node.tasks.append(task)
        if len(node.tasks) > 2_000:
            node.tasks[:] = [each for each in node.tasks if not each.done()]
    return task
