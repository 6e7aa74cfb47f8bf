"""Hundreds of idle connections and of readers that do not read: bounded memory, and others are served."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ixion.broker.network.response_writer import PIECE
from ixion.broker.startup.broker import Broker as RealBroker
from ixion.testing import Broker
from tests.broker.served import Served
from tests.crowd.crowd import close, delays_ms, fill, idle, slow
from tests.hostile.witness import memory_mb

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads the resident set from /proc")


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with Served(tmp_path) as running:
        fill(running.bootstrap)
        yield running
        running.stop_without_stalls()


def test_idle_connections(served: Served) -> None:
    before = memory_mb(served.process.pid)
    crowd = idle(served.bootstrap, 500)
    assert len(delays_ms(served.bootstrap, 50)) == 50
    assert memory_mb(served.process.pid) - before < 30
    close(crowd)


def test_slow_readers() -> None:
    """Each is owed five megabytes, three times; of that the broker has read a piece, whatever is asked for."""

    async def look(real: RealBroker) -> tuple[int, int]:
        snapshot = real.parts.server.snapshot()
        return snapshot.unsent_bytes, snapshot.closed.get("slow_reader", 0)

    with Broker() as broker:
        fill(broker.bootstrap)
        crowd = slow(broker.bootstrap, 200)
        answered = len(delays_ms(broker.bootstrap, 50))
        unsent, closed = broker.call(look)
        close(crowd)
        assert answered == len(delays_ms(broker.bootstrap, 50)) == 50
        assert unsent <= 200 * (PIECE + 1024)
        assert closed == 0  # what they hold is not worth it


def test_slow_readers_in_memory(served: Served) -> None:
    """A gigabyte is asked for and not read: no more than 200 MiB of it is ever there, and nothing afterwards."""
    pid = served.process.pid
    before = memory_mb(pid)
    crowd = slow(served.bootstrap, 200)
    assert len(delays_ms(served.bootstrap, 50)) == 50
    peak = memory_mb(pid, "VmHWM")
    close(crowd)
    assert peak - before < 200 + 64
    deadline = time.monotonic() + 20
    while memory_mb(pid) - before > 128 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert memory_mb(pid) - before <= 128
