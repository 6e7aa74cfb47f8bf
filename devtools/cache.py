"""Where fetched and built parts are kept, and how several processes share them.

A part is a directory that exists complete or not at all: it is made under a temporary name beside its place and
renamed when finished, under a lock file, so that of several processes that ask at once one works and the rest wait.
The place is `.cache/` in the checkout; IXION_CACHE names another, which several checkouts may share.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent


def cache_dir() -> Path:
    named = os.environ.get("IXION_CACHE")
    return Path(named).resolve() if named else CHECKOUT / ".cache"


@contextmanager
def locked(name: str) -> Iterator[None]:
    """Holds the lock NAME of this cache against all other processes."""
    locks = cache_dir() / "locks"
    locks.mkdir(parents=True, exist_ok=True)
    with (locks / name).open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield  # closing the file gives the lock back


def made_once(kind: str, name: str, make: Callable[[Path], None]) -> Path:
    """The directory KIND/NAME of the cache; if it is not there, MAKE fills an empty one that becomes it."""
    target = cache_dir() / kind / name
    if target.is_dir():
        return target
    with locked(f"{kind}-{name}"):
        if target.is_dir():  # another process made it while this one waited
            return target
        target.parent.mkdir(parents=True, exist_ok=True)
        unfinished = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=target.parent))
        try:
            make(unfinished)
            unfinished.rename(target)
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise
    return target
