"""The embedded engine: the tree in one SQLite file of the data directory, owned by one process.

**Durable.** An acknowledged change survives kill -9 and a power failure (write-ahead log, synchronous=FULL). Each
change of the tree is one transaction, so a `multi` is applied as a whole or not at all.

**One owner.** The file is locked while it is open; another process, or a second store in this one, is refused at once.
All sessions belong to the owner, so ephemeral nodes found when the file is opened were left by a process that did not
close it. They are deleted: a restarted broker need not wait for its old session to expire.

**Expiry.** A session without a call or `heartbeat` for longer than its timeout expires at the next `expire_sessions`,
which the owner calls regularly. Nothing expires at other times.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from ixion.broker.metadata.embedded_session import EmbeddedSession
from ixion.broker.metadata.errors import MetadataError, SessionExpiredError, StoreFullError, StoreUnusableError
from ixion.broker.metadata.node import Operation, Result
from ixion.broker.metadata.path_rules import ROOT
from ixion.broker.metadata.session import Event
from ixion.broker.metadata.sqlite_file import IN_MEMORY, open_file
from ixion.broker.metadata.sqlite_tree import SqliteTree
from ixion.broker.metadata.watches import Watch, Watches

FILE_NAME: Final = "metadata.sqlite"

Milliseconds = Callable[[], int]

__all__ = ["FILE_NAME", "IN_MEMORY", "EmbeddedStore"]


def monotonic_ms() -> int:
    return time.monotonic_ns() // 1_000_000


def unix_ms() -> int:
    return time.time_ns() // 1_000_000


def failure(file: str, error: sqlite3.Error) -> StoreUnusableError:
    kind = StoreFullError if error.sqlite_errorname == "SQLITE_FULL" else StoreUnusableError
    return kind(file, str(error))


class EmbeddedStore:
    """`file` may be `IN_MEMORY`: the same engine, without a file.

    `clock_ms` never goes back and decides on expiry; `now_ms` is the time of day and is only stored.
    """

    def __init__(self, file: str, *, clock_ms: Milliseconds = monotonic_ms, now_ms: Milliseconds = unix_ms) -> None:
        self.file: Final = file
        self._clock_ms = clock_ms
        self._now_ms = now_ms
        self._lock = threading.Lock()
        self._watches = Watches()
        self._sessions: dict[int, EmbeddedSession] = {}
        self._next_session = now_ms() << 16  # as in ZooKeeper: different from those of earlier processes
        self._connection = open_file(file)
        self._tree = SqliteTree(self._connection)
        self._closed = False
        self._zxid = 0
        try:
            self._zxid = self._connection.execute("SELECT zxid FROM counter").fetchone()[0]
            self._delete_all([path for _, path in self._tree.ephemerals()])
        except (sqlite3.Error, StoreUnusableError) as error:
            self._connection.close()
            raise StoreUnusableError(file, f"it cannot be read: {error}") from error

    @property
    def zxid(self) -> int:
        """The zxid of the last change."""
        return self._zxid

    def open_session(self, timeout_ms: int) -> EmbeddedSession:
        with self._lock:
            if self._closed:
                raise StoreUnusableError(self.file, "it was closed")
            self._next_session += 1
            session = EmbeddedSession(self, self._next_session, timeout_ms, self._clock_ms())
            self._sessions[session.session_id] = session
            return session

    def expire_sessions(self) -> None:
        with self._locked():
            now = self._clock_ms()
            for session in list(self._sessions.values()):
                if now - session.heard_ms > session.timeout_ms:
                    self._expire(session)

    def expire(self, session: EmbeddedSession) -> None:
        """End a session as if its timeout had passed, unless it has ended already."""
        with self._locked():
            if session.session_id in self._sessions:
                self._expire(session)

    def close(self) -> None:
        """Closes all sessions, then the file. A second call does nothing."""
        with self._locked():
            if self._closed:
                return
            try:
                for session in list(self._sessions.values()):
                    self._end(session)
            finally:
                self._closed = True
                self._connection.close()

    def abandon(self) -> None:
        """Closes the file without writing, as after a crash: sessions are left to expire."""
        with self._locked():
            if not self._closed:
                self._closed = True
                self._connection.close()

    # For the sessions.

    @contextmanager
    def tree(self, session: EmbeddedSession) -> Iterator[SqliteTree]:
        """The tree, for reading."""
        with self._lock:
            self._hear(session)
            try:
                yield self._tree
            except sqlite3.Error as error:
                raise failure(self.file, error) from error

    @contextmanager
    def watches(self, session: EmbeddedSession) -> Iterator[Watches]:
        with self._lock:
            self._hear(session)
            yield self._watches

    def change(self, session: EmbeddedSession, operations: Sequence[Operation]) -> list[Result]:
        results: list[Result] = []
        events: list[Event] = []
        with self._locked():
            self._hear(session)
            with self._transaction() as zxid:
                now = self._now_ms()
                for index, operation in enumerate(operations):
                    try:
                        result, caused = self._tree.apply(operation, zxid, now, session.session_id)
                    except MetadataError as error:
                        error.operation = index
                        raise
                    results.append(result)
                    events += caused
            self._watches.fire(events)
        return results

    def cancel(self, watch: Watch) -> None:
        with self._lock:
            self._watches.remove(watch)

    def heartbeat(self, session: EmbeddedSession) -> None:
        with self._lock:
            self._hear(session)

    def end(self, session: EmbeddedSession) -> None:
        with self._locked():
            if session.session_id in self._sessions:
                self._end(session)

    # Under the lock.

    @contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            with self._lock:
                yield
        finally:
            self._watches.deliver()

    @contextmanager
    def _transaction(self) -> Iterator[int]:
        """Yields its zxid. Commits all changes made inside, or none."""
        run = self._connection.execute
        zxid = self._zxid + 1
        try:
            run("BEGIN")
            yield zxid
            run("UPDATE counter SET zxid = ?", (zxid,))
            run("COMMIT")
        except BaseException as error:
            if self._connection.in_transaction:
                try:
                    run("ROLLBACK")
                except sqlite3.Error as worse:
                    raise failure(self.file, worse) from error
            if isinstance(error, sqlite3.Error):
                raise failure(self.file, error) from error
            raise
        self._zxid = zxid

    def holds(self, session: EmbeddedSession) -> bool:
        """Whether the session has not ended."""
        return session.session_id in self._sessions

    def _hear(self, session: EmbeddedSession) -> None:
        if session.session_id not in self._sessions:
            raise SessionExpiredError(ROOT, f"session {session.session_id:#x} has ended")
        session.heard_ms = self._clock_ms()

    def _expire(self, session: EmbeddedSession) -> None:
        self._end(session)
        for callback in session.expiry_callbacks:
            self._watches.call(callback)

    def _end(self, session: EmbeddedSession) -> None:
        owned = [path for owner, path in self._tree.ephemerals() if owner == session.session_id]
        events = self._delete_all(owned)
        del self._sessions[session.session_id]
        self._watches.drop_session(session.session_id)
        self._watches.fire(events)

    def _delete_all(self, paths: list[str]) -> list[Event]:
        if not paths:
            return []
        with self._transaction():
            return [event for path in paths for event in self._tree.delete(path)]
