"""The time limits of a connection: for the login, for the next request, for the rest of one, and for the client to read
a response.

One timer task serves all of them. Activity only stores the time (`Connection.last_active_ns`); when the task fires, it
checks that time and schedules itself again if the limit is not over. Loop thread only.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ixion._native import i64
from ixion.timer.clock import NS_PER_MS
from ixion.timer.task import TimerTask

if TYPE_CHECKING:
    from ixion.broker.network.connection import Connection

NEVER: Final = 2**62
LOGIN_NS: Final = 60_000_000_000  # a client that has not authenticated by then holds a connection for nothing


class Overdue(TimerTask):
    __slots__ = ("_connection", "_shared", "_wake_ns", "due_ns", "login_ns")

    def __init__(self, connection: Connection) -> None:
        super().__init__(0)
        self.due_ns: i64 = NEVER  # when the client must have finished what it has begun
        self.login_ns: i64 = NEVER  # when the client must have authenticated
        self._wake_ns: i64 = NEVER  # when this task fires
        self._connection = connection
        self._shared = connection.processor.plane.shared

    def expect(self, ms: i64) -> None:
        """The client must finish within `ms`."""
        self.due_ns = self._shared.clock() + ms * NS_PER_MS
        self.arm()

    def arm(self) -> None:
        """Start the task, or make it fire earlier, according to the current limits."""
        idle_ms = self._shared.limits.max_idle_ms
        due_ns: i64 = self.due_ns
        if idle_ms >= 0:
            due_ns = min(due_ns, self._connection.last_active_ns + idle_ms * NS_PER_MS)
        due_ns = min(due_ns, self.login_ns)
        if due_ns < self._wake_ns and not self._connection.closing:
            self._wake_ns = due_ns
            left_ns = due_ns - self._shared.clock()
            self.delay_ms = max(0, (left_ns + NS_PER_MS - 1) // NS_PER_MS)
            self._shared.timer.add(self)

    def waits_for(self) -> str:
        return f"the next request of {self._connection.id}"

    def run(self) -> None:
        self._wake_ns = NEVER
        connection = self._connection
        if connection.closing:
            return
        now_ns: i64 = self._shared.clock()
        idle_ms = self._shared.limits.max_idle_ms
        if now_ns >= self.login_ns:
            connection.close("no_login")
        elif now_ns >= self.due_ns:
            self.due_ns = NEVER
            connection.is_overdue()
        elif connection.waits_for_us:
            connection.last_active_ns = now_ns  # a busy connection is not idle
        elif idle_ms >= 0 and now_ns - connection.last_active_ns >= idle_ms * NS_PER_MS:
            connection.close("idle")
        self.arm()
