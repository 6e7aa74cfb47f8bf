"""Ten thousand members in one group and in ten thousand groups, in both protocols; a hundred thousand transactional ids
and producer ids; a crash, and a start on all that. Part of `python -m tests.crowd.soak`.

Every step has bounds, and the first that is passed ends the run: memory that stays, processor time of the broker, and
how long another client waits for an answer. That is measured as the time that the broker works before it answers, so
that a busy machine does not count.
"""

from __future__ import annotations

import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from ixion.language.model.errors import ErrorCode
from tests.apis.raw import Raw
from tests.broker.served import Served
from tests.crowd.ids import (
    classic_members,
    consumers,
    groups,
    open_transactions,
    producer_ids,
    transactional_ids,
    transactions,
)
from tests.crowd.test_ids import prepare
from tests.hostile.witness import Witness, memory_mb

SETTINGS = (
    "message.max.bytes=8000000",  # a classic group is one record, of 2 MB when it has 10,000 members
    "transaction.abort.timed.out.transaction.cleanup.interval.ms=5000",
)
WORDS = [word for setting in SETTINGS for word in ("--set", setting)]


def worked_ms(pid: int) -> float:
    """Of its first thread, which is the event loop's."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e6


@contextmanager
def bounded(served: Served, what: str, *, keeps_mb: int, works_s: float, waits_ms: int) -> Iterator[None]:
    pid = served.process.pid
    before_mb, before_ms = memory_mb(pid), worked_ms(pid)
    neighbour = Witness(served.bootstrap, partial(worked_ms, pid))
    begun = time.perf_counter()
    try:
        yield
    finally:
        neighbour.close()
    took_s = time.perf_counter() - begun
    kept_mb, worked_s = memory_mb(pid) - before_mb, (worked_ms(pid) - before_ms) / 1e3
    print(
        f"{what:45} {took_s:6.1f} s, the broker worked {worked_s:5.2f} s (at most {works_s:g}) and kept {kept_mb} MB"
        f" (at most {keeps_mb}); others waited for {neighbour.worst_ms:.0f} ms of work (at most {waits_ms})",
        flush=True,
    )
    assert kept_mb <= keeps_mb, f"{what}: {kept_mb} MB are kept"
    assert worked_s <= works_s, f"{what}: {worked_s:.1f} s of work"
    assert neighbour.worst_ms <= waits_ms, f"{what}: others wait for {neighbour.worst_ms:.0f} ms of work"


def soak(members: int, ids: int) -> None:
    """Bounds are for 10,000 members and 100,000 ids, some three times what was measured."""
    with tempfile.TemporaryDirectory() as path:
        with Served(Path(path), *WORDS) as served, Raw(served.bootstrap) as raw:
            prepare(raw)
            fill(served, raw, members, ids)
            served.stop_without_stalls(signal.SIGKILL)
        begun = time.perf_counter()
        with Served(Path(path), *WORDS) as served, Raw(served.bootstrap) as raw:
            pid = served.process.pid
            print(f"ready again after {time.perf_counter() - begun:.1f} s, {worked_ms(pid) / 1e3:.1f} s of work")
            with bounded(served, "what was there is loaded", keeps_mb=200, works_s=6, waits_ms=500):
                until(lambda: groups(raw) == 3 + 2 * members and transactions(raw) == ids + members)
            assert memory_mb(pid) <= 400, f"{memory_mb(pid)} MB after a start"
            assert worked_ms(pid) <= 15_000, f"{worked_ms(pid):.0f} ms of work for a start"
            with bounded(served, "the sessions of all members end", keeps_mb=20, works_s=30, waits_ms=1_000):
                until(lambda: all_is_empty(raw), patience_s=150)
            served.stop_without_stalls()


def fill(served: Served, raw: Raw, members: int, ids: int) -> None:
    good = {ErrorCode.NONE: members}
    with bounded(served, f"{members} classic members of one group", keeps_mb=120, works_s=6, waits_ms=500):
        assert classic_members(served.bootstrap, members, lambda _: "one") == (good, good)
    with bounded(served, f"{members} classic members of as many groups", keeps_mb=120, works_s=8, waits_ms=600):
        assert classic_members(served.bootstrap, members, lambda n: f"own {n}") == (good, good)
    with bounded(served, f"{members} members of one consumer group", keeps_mb=80, works_s=6, waits_ms=300):
        assert consumers(raw, members, lambda _: "consumers") == good
    with bounded(served, f"{members} that read different topics", keeps_mb=80, works_s=10, waits_ms=600):
        assert consumers(raw, members, lambda _: "tastes", "u", "v", "w") == good
    with bounded(served, f"{members} members of as many consumer groups", keeps_mb=120, works_s=8, waits_ms=200):
        assert consumers(raw, members, lambda n: f"consumers {n}") == good
    with bounded(served, f"{ids} transactional ids", keeps_mb=120, works_s=15, waits_ms=200):
        assert transactional_ids(raw, ids) == {ErrorCode.NONE: ids}
    with bounded(served, f"{members} transactions run out of time", keeps_mb=60, works_s=15, waits_ms=300):
        assert open_transactions(raw, members, 1_000) == good
        until(lambda: transactions(raw, "Ongoing", "PrepareAbort") == 0)
    with bounded(served, f"{ids} producer ids in one partition", keeps_mb=100, works_s=10, waits_ms=200):
        assert producer_ids(raw, ids) == {ErrorCode.NONE: ids}


def all_is_empty(raw: Raw) -> bool:
    return groups(raw, "Empty") == groups(raw)


def until(condition: Callable[[], bool], patience_s: float = 60) -> None:
    deadline = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.5)
