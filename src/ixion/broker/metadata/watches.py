"""The watches on the tree, and the delivery of events in order.

Events are queued while the tree is locked, so the queue has the order of the changes. They are delivered without that
lock, by one thread at a time:

    thread a   sets /x, queues its event, starts to deliver, is inside a callback
    thread b   sets /y, queues its event, sees that a is delivering, returns
    thread a   returns from the callback, finds b's event in the queue, delivers it

So no event overtakes another, no two callbacks run at the same time, and a callback may change the tree: its own events
wait in the queue until it returns. Rule for callers: after unlocking, always call `deliver`.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable

from ixion.broker.metadata.session import Event, Watcher

logger = logging.getLogger(__name__)


class Watch:
    __slots__ = ("active", "path", "session_id", "watcher")

    def __init__(self, path: str, session_id: int, watcher: Watcher) -> None:
        self.path = path
        self.session_id = session_id
        self.watcher = watcher
        self.active = True


class Watches:
    """Call `add`, `remove`, `drop_session`, `fire` and `call` under the lock of the tree, `deliver` without it."""

    def __init__(self) -> None:
        self._by_path: dict[str, list[Watch]] = {}
        self._by_session: dict[int, set[Watch]] = {}
        self._queue: deque[Callable[[], None]] = deque()
        self._lock = threading.Lock()  # guards _delivering and the check for an empty queue
        self._delivering = False

    def add(self, path: str, session_id: int, watcher: Watcher) -> Watch:
        watch = Watch(path, session_id, watcher)
        self._by_path.setdefault(path, []).append(watch)
        self._by_session.setdefault(session_id, set()).add(watch)
        return watch

    def remove(self, watch: Watch) -> None:
        if not watch.active:
            return
        watch.active = False
        left = self._by_path[watch.path]
        left.remove(watch)
        if not left:
            del self._by_path[watch.path]
        own = self._by_session[watch.session_id]
        own.remove(watch)
        if not own:
            del self._by_session[watch.session_id]

    def drop_session(self, session_id: int) -> None:
        for watch in list(self._by_session.get(session_id, ())):
            self.remove(watch)

    def fire(self, events: list[Event]) -> None:
        for event in events:
            for watch in self._by_path.get(event.path, ()):
                self._queue.append(_notice(watch, event))

    def call(self, callback: Callable[[], None]) -> None:
        """Queue a call in order with the events."""
        self._queue.append(callback)

    def deliver(self) -> None:
        with self._lock:
            if self._delivering:
                return
            self._delivering = True
        while True:
            with self._lock:
                if not self._queue:
                    self._delivering = False
                    return
                notice = self._queue.popleft()
            try:
                notice()
            except Exception:
                logger.exception("a metadata callback failed; the others continue")
            except BaseException:  # interrupted: the next thread delivers the rest
                self._delivering = False
                raise


def _notice(watch: Watch, event: Event) -> Callable[[], None]:
    def notify() -> None:
        if watch.active:
            watch.watcher(event)

    return notify
