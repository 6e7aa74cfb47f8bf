"""A disk that can crash: every change is written down, and a folder can be made as it was after any of them.

`Journal` does what `Files` does and notes each step. `materialize` replays the first n steps into a fresh folder. When
the process is killed, all steps so far are kept (they are in the page cache). When the power fails, a file keeps what
it had at its last sync, and of the steps since then only the first few, the last of them perhaps in part. Names
(created, renamed, deleted) keep their order and are never lost: a simplification, which journaling file systems with
ordered metadata come close to.
"""

from __future__ import annotations

import os
import random
from dataclasses import dataclass, field
from pathlib import Path

from ixion.broker.log.files import Part
from tests.log.support import QuickFiles

Step = tuple[str, str, int, bytes]  # what, path (or old path), number (position, size, file), bytes (or new path)


@dataclass(slots=True)
class Inode:
    durable: bytearray = field(default_factory=bytearray)
    pending: list[tuple[str, int, bytes]] = field(default_factory=list)

    def content(self, keep: int, torn: int | None = None) -> bytes:
        """What the file holds if the first `keep` pending changes came through, and `torn` bytes of the next."""
        data = bytearray(self.durable)
        for number, (what, where, piece) in enumerate(self.pending[: keep + (torn is not None)]):
            if number == keep:
                piece = piece[:torn]
            apply(data, what, where, piece)
        return bytes(data)


def apply(data: bytearray, what: str, where: int, piece: bytes) -> None:
    if what == "truncate":
        del data[where:]
        data.extend(bytes(max(0, where - len(data))))
    elif piece:
        data.extend(bytes(max(0, where - len(data))))
        data[where : where + len(piece)] = piece


class Journal(QuickFiles):
    def __init__(self, root: Path) -> None:
        self.root = str(root)
        self.steps: list[Step] = []
        self._paths: dict[int, str] = {}
        for path in sorted(root.rglob("*")):
            if path.is_dir():
                self._note("mkdir", str(path))
            else:
                self._note("create", str(path))
                self._note("write", str(path), 0, path.read_bytes())
                self._note("sync", str(path))

    def _note(self, what: str, path: str, number: int = 0, data: bytes = b"") -> None:
        self.steps.append((what, os.path.relpath(path, self.root), number, data))

    def open(self, path: str) -> int:
        if not os.path.exists(path):
            self._note("create", path)
        fd = super().open(path)
        self._paths[fd] = path
        return fd

    def open_existing(self, path: str) -> int:
        fd = super().open_existing(path)
        self._paths[fd] = path
        return fd

    def write(self, fd: int, position: int, parts: list[Part]) -> None:
        super().write(fd, position, parts)
        self._note("write", self._path(fd), position, b"".join(parts))

    def truncate(self, fd: int, size: int) -> None:
        super().truncate(fd, size)
        self._note("truncate", self._path(fd), size)

    def sync(self, fd: int) -> None:
        super().sync(fd)
        self._note("sync", self._path(fd))

    def rename(self, old: str, new: str) -> None:
        super().rename(old, new)
        self._note("rename", old, 0, os.path.relpath(new, self.root).encode())

    def remove(self, path: str) -> None:
        if os.path.exists(path):
            self._note("remove", path)
        super().remove(path)

    def make_dir(self, path: str) -> None:
        super().make_dir(path)
        self._note("mkdir", path)

    def _path(self, fd: int) -> str:
        # A file keeps its descriptor when it is renamed.
        return os.readlink(f"/proc/self/fd/{fd}")


def materialize(steps: list[Step], target: Path, power: random.Random | None = None, torn: int | None = None) -> None:
    """Makes `target` as the disk was after `steps`; `torn` bytes of the last write if that is given.

    With `power`, each file loses some of what was not synced.
    """
    names: dict[str, Inode] = {}
    folders: list[str] = []
    for number, (what, path, where, data) in enumerate(steps):
        if what == "mkdir":
            folders.append(path)
        elif what == "create":
            names[path] = Inode()
        elif what == "rename":
            names[data.decode()] = names.pop(path)
        elif what == "remove":
            names.pop(path, None)
        elif what == "sync":
            inode = names[path]
            inode.durable = bytearray(inode.content(len(inode.pending)))
            inode.pending.clear()
        elif path in names:
            piece = data[:torn] if torn is not None and number == len(steps) - 1 else data
            names[path].pending.append((what, where, piece))
    target.mkdir(parents=True, exist_ok=True)
    for folder in folders:
        (target / folder).mkdir(parents=True, exist_ok=True)
    for path, inode in names.items():
        if power is None:
            content = inode.content(len(inode.pending))
        else:
            keep = power.randint(0, len(inode.pending))
            content = inode.content(keep, power.randint(0, 200) if power.random() < 0.5 else None)
        (target / path).write_bytes(content)
