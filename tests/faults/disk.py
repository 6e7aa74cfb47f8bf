"""A disk that fails at one call: the table of what can happen at which, and the `Files` that makes it happen.

A walk runs a scenario once on a healthy disk and counts the calls, then again and again, with one fault at one call.

| fault        | the call                          | calls after it, until the disk is healed      |
|--------------|-----------------------------------|-----------------------------------------------|
| EIO          | fails                             | work                                          |
| ENOSPC       | fails; of a write, half is done   | fail if they need room                        |
| EMFILE       | fails                             | fail if they open a file                      |
| KILL_BEFORE  | is not made                       | are not made: the process is gone             |
| KILL_AFTER   | is made                           | are not made: the process is gone             |
"""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Callable
from enum import Enum
from typing import Final, NoReturn, TypeVar

from ixion.broker.log.files import Files, Part

T = TypeVar("T")


class Fault(Enum):
    EIO = errno.EIO
    ENOSPC = errno.ENOSPC
    EMFILE = errno.EMFILE
    KILL_BEFORE = -1
    KILL_AFTER = -2

    @property
    def kills(self) -> bool:
        return self.value < 0


KILLS: Final = (Fault.KILL_BEFORE, Fault.KILL_AFTER)
# Every call that touches the disk, and the faults that it can meet. (Reading is not killed: that changes nothing.)
TABLE: Final[dict[str, tuple[Fault, ...]]] = {
    "open": (Fault.EIO, Fault.ENOSPC, Fault.EMFILE, *KILLS),
    "open_existing": (Fault.EIO, Fault.EMFILE),
    "open_to_read": (Fault.EIO, Fault.EMFILE),
    "read_file": (Fault.EIO, Fault.EMFILE),
    "list_dir": (Fault.EIO, Fault.EMFILE),
    "read": (Fault.EIO,),
    "write": (Fault.EIO, Fault.ENOSPC, *KILLS),
    "truncate": (Fault.EIO, Fault.ENOSPC, *KILLS),
    "sync": (Fault.EIO, Fault.ENOSPC, *KILLS),
    "sync_dir": (Fault.EIO, Fault.ENOSPC, Fault.EMFILE, *KILLS),
    "rename": (Fault.EIO, Fault.ENOSPC, *KILLS),
    "remove": (Fault.EIO, *KILLS),
    "make_dir": (Fault.EIO, Fault.ENOSPC, *KILLS),
    "remove_tree": (Fault.EIO, Fault.EMFILE, *KILLS),
    "sql": (Fault.EIO, Fault.ENOSPC, *KILLS),  # a statement that changes the metadata store, or commits a change
}
NEED_ROOM: Final = frozenset(name for name, faults in TABLE.items() if Fault.ENOSPC in faults)
OPEN_FILES: Final = frozenset(name for name, faults in TABLE.items() if Fault.EMFILE in faults)


class Killed(BaseException):
    """The process has ended. No handler of errors may see it as one."""


class FaultyDisk(Files):
    """Counts calls; at call number `at` the fault happens. It never waits for a disk.

    `quiet`: a kill is an error of this and of every later call, so that a broker of many threads takes itself down. It
    changes nothing any more, and its client must not believe it any more.
    """

    def __init__(self, at: int = -1, fault: Fault = Fault.EIO, *, quiet: bool = False) -> None:
        self.at = at
        self.quiet = quiet
        self.fault = fault
        self.calls: list[tuple[str, str]] = []
        self.struck = False
        self.dead = False
        self.healed = False

    def heal(self) -> None:
        """There is room again, and files can be opened."""
        self.healed = True

    def _fails(self, what: str) -> bool:
        number = len(self.calls) - 1
        if number == self.at:
            self.struck = True
            return True
        if not self.struck or self.healed:
            return False
        lasting = {Fault.ENOSPC: NEED_ROOM, Fault.EMFILE: OPEN_FILES}.get(self.fault, frozenset())
        return what in lasting

    def _do(self, what: str, path: str, work: Callable[[], T], half: Callable[[], object] | None = None) -> T:
        if self.dead:
            self._end(path)
        self.calls.append((what, path))
        if not self._fails(what):
            return work()
        if self.fault.kills:
            self.dead = True
            if self.fault == Fault.KILL_AFTER:
                work()
            self._end(path)
        if half is not None and self.fault == Fault.ENOSPC:
            half()
        raise OSError(self.fault.value, os.strerror(self.fault.value), path)

    def _end(self, path: str) -> NoReturn:
        if self.quiet:
            raise OSError(errno.EIO, "the process is gone", path)
        raise Killed

    def sql(self, statement: str, work: Callable[[], T]) -> T:
        try:
            return self._do("sql", statement, work)
        except OSError as error:
            full = error.errno == errno.ENOSPC
            failure = sqlite3.OperationalError("database or disk is full" if full else "disk I/O error")
            failure.sqlite_errorname = "SQLITE_FULL" if full else "SQLITE_IOERR"
            raise failure from error

    @property
    def passes(self) -> bool:
        """Whether the disk is as good as before once it is healed."""
        return self.fault in (Fault.ENOSPC, Fault.EMFILE)

    def open(self, path: str) -> int:
        return self._do("open", path, lambda: Files.open(self, path))

    def open_existing(self, path: str) -> int:
        return self._do("open_existing", path, lambda: Files.open_existing(self, path))

    def open_to_read(self, path: str) -> int:
        return self._do("open_to_read", path, lambda: Files.open_to_read(self, path))

    def read_file(self, path: str) -> bytes:
        return self._do("read_file", path, lambda: Files.read_file(self, path))

    def list_dir(self, path: str) -> list[os.DirEntry[str]]:
        return self._do("list_dir", path, lambda: Files.list_dir(self, path))

    def read(self, fd: int, size: int, position: int) -> bytes:
        return self._do("read", name_of(fd), lambda: Files.read(self, fd, size, position))

    def write(self, fd: int, position: int, parts: list[Part]) -> None:
        whole = b"".join(parts)
        self._do(
            "write",
            name_of(fd),
            lambda: Files.write(self, fd, position, [whole]),
            lambda: os.pwrite(fd, whole[: len(whole) // 2], position),
        )

    def truncate(self, fd: int, size: int) -> None:
        self._do("truncate", name_of(fd), lambda: Files.truncate(self, fd, size))

    def sync(self, fd: int) -> None:
        self._do("sync", name_of(fd), lambda: None)

    def sync_dir(self, path: str) -> None:
        self._do("sync_dir", path, lambda: None)

    def rename(self, old: str, new: str) -> None:
        self._do("rename", old, lambda: Files.rename(self, old, new))

    def remove(self, path: str) -> None:
        self._do("remove", path, lambda: Files.remove(self, path))

    def make_dir(self, path: str) -> None:
        self._do("make_dir", path, lambda: Files.make_dir(self, path))

    def remove_tree(self, path: str) -> None:
        self._do("remove_tree", path, lambda: Files.remove_tree(self, path))


def name_of(fd: int) -> str:
    return os.readlink(f"/proc/self/fd/{fd}")


def cases(calls: list[tuple[str, str]], share: int) -> list[tuple[int, Fault]]:
    """One in `share` of all pairs of a call and a fault; every kind of file and every fault comes about as often."""
    pairs = [(number, fault) for number, (what, _) in enumerate(calls) for fault in TABLE[what]]
    return pairs[::share]
