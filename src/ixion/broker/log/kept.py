"""`.ixion_kept`: since which registration the log directories of a broker have lost nothing.

A new controller must know whether a broker that has registered again still has all records (`controller.cluster.
restarts`). A process that was killed has lost nothing: what it appended is in the page cache. A machine that lost power
may have lost what was not synced. The boot id of the machine tells the two apart.

    life 1  starts without the file; registers as broker epoch 100; writes boot A, since 100
    life 2  killed and started again: boot A          -> registers as 120, and says: kept since 100
    life 3  after a loss of power: boot B             -> deletes the file, registers as 150 and says nothing; then
                                                         writes boot B, since 150
    life 4  after a clean stop and a new boot: boot C -> registers as 170, and says: kept since 150; writes boot C

The logs were kept if every directory has the file with the same `since`, and the present boot id or the marker of a
clean stop (`clean_shutdown`). `directories` is their number: one that was removed from log.dirs is missed. `inode` is
that of the file itself, so most copies are found out, such as a directory that was restored from a backup.

Every doubt counts as a loss, and so does an unknown boot id (other systems than Linux) without a clean stop. Not found
out: records that were lost within one boot without an error that the broker saw (a file system that was unmounted by
force, a folder that was deleted by hand), and a backup that was written over the files in place.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Final, NamedTuple

from ixion.broker.log.clean_shutdown import has_marker
from ixion.broker.log.files import Files

FILE_NAME: Final = ".ixion_kept"
_BOOT_ID: Final = "/proc/sys/kernel/random/boot_id"


class _Content(NamedTuple):
    boot: str
    since: int
    directories: int
    inode: int


def boot_id() -> str:
    """Another one after every boot of this machine; empty if it is not known."""
    try:
        with open(_BOOT_ID) as file:
            return file.read().strip()
    except OSError:
        return ""


def has_been_kept(directories: Sequence[str]) -> bool:
    """Whether an earlier life has written the file into one of the directories, whatever has happened since."""
    return any(os.path.exists(os.path.join(directory, FILE_NAME)) for directory in directories)


def read_kept_since(files: Files, directories: Sequence[str], boot: str) -> int | None:
    """The first broker epoch since which nothing was lost; None in any doubt. Call this before the logs are loaded,
    which deletes the marker of a clean stop."""
    since: set[int] = set()
    for directory in directories:
        found = _read(files, directory)
        if found is None or found.directories != len(directories):
            return None
        if not has_marker(directory) and (not boot or found.boot != boot):
            return None
        since.add(found.since)
    return since.pop() if len(since) == 1 else None


def write_kept_since(files: Files, directory: str, boot: str, since: int, directories: int) -> None:
    """Durable when it returns. Does nothing if the file says so already."""
    known = _read(files, directory)
    if known is not None and (known.boot, known.since, known.directories) == (boot, since, directories):
        return
    path = os.path.join(directory, FILE_NAME)
    fd = files.open(path + ".tmp")  # `replace_content` writes to this file and renames it
    inode = os.fstat(fd).st_ino
    files.close(fd)
    content = {"version": 0, "boot": boot, "since": since, "directories": directories, "inode": inode}
    files.replace_content(path, json.dumps(content, separators=(",", ":")).encode(), True)


def forget_kept(files: Files, directory: str) -> None:
    """It need not be durable: after a loss of power the boot id is another one."""
    files.remove(os.path.join(directory, FILE_NAME))


def _read(files: Files, directory: str) -> _Content | None:
    """None if there is no file, if it cannot be read, or if it is a copy."""
    path = os.path.join(directory, FILE_NAME)
    try:
        members = json.loads(files.read_file(path))
        found = _Content(
            str(members["boot"]), int(members["since"]), int(members["directories"]), int(members["inode"])
        )
        return found if members["version"] == 0 and found.inode == os.stat(path).st_ino else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
