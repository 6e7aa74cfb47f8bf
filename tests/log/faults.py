"""A disk that fails at a chosen step: the k-th call of `Files` from when it is armed.

Use it for one fault in one operation of the log. To walk through every call with every fault, see
`tests/faults/disk.py`; for power failures, `tests/log/journal.py`.
"""

from __future__ import annotations

import os

from ixion.broker.log.files import Part
from tests.log.support import QuickFiles


class FaultyFiles(QuickFiles):
    """Calls are counted while armed. From the k-th on, `times` of them fail with the error number; -1 for all of them.

    A write that fails has written half. A close that fails has closed, as Linux does it.
    """

    def __init__(self) -> None:
        self.armed = False
        self.calls: list[str] = []
        self._at = 0
        self._times = 0
        self._number = 0
        self._kind = ""

    def arm(self, at: int = 0, number: int = 0, times: int = 1) -> None:
        self.armed = True
        self.calls = []
        self._at, self._number, self._times = at, number, times
        self._kind = ""

    def arm_kind(self, kind: str, at: int, number: int) -> None:
        """Only calls of this kind are counted; the k-th fails."""
        self.arm(at, number)
        self._kind = kind

    def disarm(self) -> list[str]:
        self.armed = False
        return self.calls

    def _fails(self, name: str) -> bool:
        if not self.armed or self._kind not in ("", name):
            return False
        self.calls.append(name)
        count = len(self.calls)
        return bool(self._at) and count >= self._at and (self._times < 0 or count < self._at + self._times)

    def _step(self, name: str) -> None:
        if self._fails(name):
            raise self._error()

    def _error(self) -> OSError:
        return OSError(self._number, os.strerror(self._number))

    def open(self, path: str) -> int:
        self._step("open")
        return super().open(path)

    def open_existing(self, path: str) -> int:
        self._step("open_existing")
        return super().open_existing(path)

    def open_to_read(self, path: str) -> int:
        self._step("open_to_read")
        return super().open_to_read(path)

    def close(self, fd: int) -> None:
        super().close(fd)
        self._step("close")

    def read(self, fd: int, size: int, position: int) -> bytes:
        self._step("read")
        return super().read(fd, size, position)

    def write(self, fd: int, position: int, parts: list[Part]) -> None:
        if self._fails("write"):
            data = b"".join(parts)
            super().write(fd, position, [data[: len(data) // 2]])
            raise self._error()
        super().write(fd, position, parts)

    def truncate(self, fd: int, size: int) -> None:
        self._step("truncate")
        super().truncate(fd, size)

    def sync(self, fd: int) -> None:
        self._step("sync")

    def sync_dir(self, path: str) -> None:
        self._step("sync_dir")

    def rename(self, old: str, new: str) -> None:
        self._step("rename")
        super().rename(old, new)

    def remove(self, path: str) -> None:
        self._step("remove")
        super().remove(path)

    def make_dir(self, path: str) -> None:
        self._step("make_dir")
        super().make_dir(path)
