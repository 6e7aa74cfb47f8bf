"""Runs plans and waits for their results: the blocking face of an administrator, without its methods.

    with AdminRunner("127.0.0.1:9092") as admin:
        admin.run(list_topics, internal=True)

`ixion.clients.Admin` has a method for each plan. The command line uses this class, because it then imports one plan
instead of forty. There is no thread: sockets are polled while a call waits. Threads may share it; a forked child needs
its own.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Concatenate, ParamSpec, Self, TypeVar, Unpack

from ixion.clients.address import Bootstrap, parse_bootstrap
from ixion.clients.admin.machine import AdminMachine
from ixion.clients.admin.plan import Call, Plan
from ixion.clients.admin.settings import AdminOptions, read_admin_settings
from ixion.clients.engine import Engine, random
from ixion.clients.log import warn_unclosed

P = ParamSpec("P")
T = TypeVar("T")


class AdminRunner:
    _is_closed = True  # until it is made

    def __init__(self, bootstrap: Bootstrap = "", **settings: Unpack[AdminOptions]) -> None:
        """TypeError or ValueError, naming it, for a wrong setting or address."""
        found = read_admin_settings(settings)
        self.timeout_s = found.timeout_s
        self._machine = AdminMachine(parse_bootstrap(bootstrap), found.client, random)
        self._engine = Engine(self._machine, "ixion-admin", lambda: None)
        self._is_closed = False

    def __del__(self) -> None:
        if not self._is_closed and not self._engine.is_forked and not sys.is_finalizing():
            self._is_closed = True
            self._engine.abandon()
            warn_unclosed(self, "administrator", "")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        if self._is_closed or self._engine.is_forked:
            return
        self._is_closed = True
        with self._engine.lock:
            self._machine.close(time.monotonic())
        self._engine.stop()

    def run(self, plan: Callable[Concatenate[Call, P], Plan[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """The result of a plan. KafkaError if it fails, TimedOutError after `default_api_timeout_ms`."""
        return self.run_within(self.timeout_s, plan, *args, **kwargs)

    def run_within(
        self, seconds: float, plan: Callable[Concatenate[Call, P], Plan[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        if self._is_closed:
            raise RuntimeError("the administrator is closed")
        if self._engine.is_forked:
            raise RuntimeError("this administrator belongs to the parent process; make one after the fork")
        engine = self._engine
        with engine.lock:
            running = self._machine.start(lambda call: plan(call, *args, **kwargs), seconds, time.monotonic())
            try:
                engine.wait(lambda: running.is_done, running.call.deadline_s + GRACE_S)
            finally:
                self._machine.cancel(running)
        found: T = running.take()
        return found


GRACE_S = 1.0  # the machine ends a call at its deadline, with a reason
