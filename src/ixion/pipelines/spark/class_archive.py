"""An archive of the classes that Spark needs (Java's AppCDS), so that the next start need not load and verify them.

Starting Spark is mostly loading some twenty thousand classes from jars. A JVM can keep them, as it has them in memory,
in one file, and map that file when it starts:

    1  a run without an archive notes the names of its classes        -XX:DumpLoadedClassList
    2  when it has ended, a process of its own makes the archive      -Xshare:dump, at the lowest priority
    3  the next run starts with it                                    -XX:SharedArchiveFile

An archive belongs to one Java and one class path: its name is made from both. Java checks it when it maps the file: an
archive that is broken or does not fit is ignored, and the start takes as long as without one. A file gets its name by
one rename, once it is complete.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ixion.pipelines.spark.jars import cache_folder

FOLDER: Final = "IXION_CLASS_ARCHIVES"  # the environment variable that names their folder, or is "off"
OFF: Final = "off"
KEPT: Final = 4  # archives in the folder; each set of table formats has one
ROOM: Final = 1 << 30  # bytes that must be free on the disk; an archive takes 100 to 250 MB
MAKING_S: Final = 600  # Java is ended if it takes longer; 10 to 20 seconds are usual
FORGOTTEN_S: Final = 24 * 3600  # age at which leftovers of a killed process are removed
_DECIDED: Final = ("SharedArchiveFile", "ArchiveClassesAtExit", "Xshare", "DumpLoadedClassList")
_QUIET: Final = ("-Xlog:disable", "-Xlog:all=error:stderr")  # Java warns on standard output if an archive does not fit


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """The archive for one Java and one class path; the file may not exist yet."""

    java: str
    file: Path

    @property
    def there(self) -> bool:
        return self.file.is_file()

    @property
    def noted(self) -> Path:
        """The names of the classes that this process has loaded."""
        return self.file.with_suffix(f".{os.getpid()}.classes")

    @property
    def options(self) -> tuple[str, ...]:
        """Options for a JVM that starts now: use the archive, or note the classes for one."""
        if self.there:
            return (f"-XX:SharedArchiveFile={self.file}", "-Xshare:auto", *_QUIET)
        return (f"-XX:DumpLoadedClassList={self.noted}", *_QUIET) if self._can_be_made() else ()

    def _can_be_made(self) -> bool:
        folder = self.file.parent
        try:
            folder.mkdir(parents=True, exist_ok=True)
            return os.access(folder, os.W_OK) and shutil.disk_usage(folder).free > ROOM
        except OSError:
            return False


def archive_for(java: str, jars: Iterable[Path], java_options: str = "") -> Archive | None:
    """The archive for JAVA with JARS on its class path; None if archives are switched off, by the environment or
    because the user's own JAVA_OPTIONS decide about them."""
    folder = archive_folder()
    if folder is None or any(word in java_options for word in _DECIDED):
        return None
    name = hashlib.sha256()
    for path in (Path(java).resolve(), *sorted(jars)):
        try:
            found = path.stat()
        except OSError:
            return None
        name.update(f"{path} {found.st_size} {found.st_mtime_ns}\n".encode())
    return Archive(java=java, file=folder / f"{name.hexdigest()[:16]}.jsa")


def archive_folder() -> Path | None:
    """One for each user; None if archives are switched off."""
    said = os.environ.get(FOLDER, "")
    if said == OFF:
        return None
    return Path(said) if said else cache_folder() / "classes"


def make_archive(java: str, file: Path, noted: Path, class_path: str) -> bool:
    """Create FILE from the list NOTED, which is then removed. False if Java fails; nothing is left behind.

    It takes Java half a minute of processor time, so of several runs that end at once one makes it; the others wait
    for it, asleep."""
    with _alone(file):
        if file.is_file():
            noted.unlink(missing_ok=True)
            return True
        return _make(java, file, noted, class_path)


@contextmanager
def _alone(file: Path) -> Iterator[None]:
    """Hold the lock of FILE's folder."""
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def _make(java: str, file: Path, noted: Path, class_path: str) -> bool:
    unfinished = file.with_suffix(f".{os.getpid()}.unfinished")
    command = [
        *(java, "-Xshare:dump", f"-XX:SharedClassListFile={noted}", f"-XX:SharedArchiveFile={unfinished}"),
        *("-Xlog:disable", "-Xmx1g", "-cp", class_path),
    ]
    try:
        done = subprocess.run(command, capture_output=True, check=False, timeout=MAKING_S)  # noqa: S603 - the user's own
        if done.returncode or not unfinished.is_file():
            return False
        unfinished.replace(file)
    except (OSError, subprocess.TimeoutExpired):
        return False
    finally:
        unfinished.unlink(missing_ok=True)
        noted.unlink(missing_ok=True)
    _forget_old(file)
    return True


def make_in_background(archive: Archive, class_path: str) -> int | None:
    """As `make_archive`, in a process that outlives this one. Returns its id; None if there is nothing to do."""
    if archive.there or not archive.noted.is_file() or _has_folder(class_path):
        archive.noted.unlink(missing_ok=True)
        return None
    words = (archive.java, str(archive.file), str(archive.noted), class_path)
    with open(os.devnull, "r+b") as nothing:
        process = subprocess.Popen(  # noqa: S603 - ourselves
            [sys.executable, "-m", __name__, *words],
            stdin=nothing,
            stdout=nothing,
            stderr=nothing,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
    process.returncode = 0  # so that Python does not warn about a running process
    return process.pid


def _has_folder(class_path: str) -> bool:
    """Java creates no archive if the class path has a folder with files, such as Hadoop's settings."""
    return any(place.is_dir() and any(place.iterdir()) for place in map(Path, class_path.split(os.pathsep)))


def _forget_old(newest: Path) -> None:
    """Removes all archives but the newest few, and what was left unfinished."""
    archives = sorted(newest.parent.glob("*.jsa"), key=_used, reverse=True)
    left = [path for pattern in ("*.unfinished", "*.classes") for path in newest.parent.glob(pattern)]
    for path in (*archives[KEPT:], *(path for path in left if time.time() - _used(path) > FORGOTTEN_S)):
        path.unlink(missing_ok=True)


def _used(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:  # removed meanwhile
        return 0.0


if __name__ == "__main__":
    os.nice(19)
    make_archive(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4])
