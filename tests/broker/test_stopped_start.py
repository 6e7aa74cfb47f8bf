"""A start that is stopped, or fails, while logs are being loaded: the next one finds all that was there.

The log that is being loaded is held up by a file of it that is a pipe: who opens a pipe to read waits for a writer.
"""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ixion.broker.log import checkpoint
from ixion.broker.log.clean_shutdown import FILE_NAME as MARKER
from ixion.broker.log.config import LogConfig
from ixion.broker.log.files import Files
from ixion.broker.replica.log_settings import log_config
from ixion.broker.startup import steps_storage
from ixion.broker.startup.errors import StartupError
from tests.broker.served import NO_PAGES, SECONDS, environment
from tests.broker.support import broker_on, broker_with, run, running
from tests.broker.test_restart import create, produce
from tests.log.support import QuickFiles, stored

TOPICS = [f"t{number}" for number in range(5)]
HELD = "t2"


def fill(path: Path) -> None:
    """Five topics, stopped cleanly; then the marker is lost, as after a crash."""

    async def work() -> None:
        async with running(path) as broker:
            for name in TOPICS:
                await create(broker, name)
                for number in range(4):
                    await produce(broker, name, b"%d" % number)

    run(work)
    (path / MARKER).unlink()


def check(path: Path) -> None:
    """All is there, for a start that is left alone."""

    async def work() -> None:
        async with running(path) as broker:
            for name in TOPICS:
                log = broker.parts.replicas.partitions[name, 0].log
                assert [value for _, value in stored(log)] == [b"0", b"1", b"2", b"3"]
                assert log.segments.first.trusted, "every batch was looked at, as after a crash"

    run(work)
    assert (path / MARKER).exists()


def offsets(path: Path) -> dict[str, dict[tuple[str, int], int]]:
    names = (checkpoint.RECOVERY_POINTS, checkpoint.HIGH_WATERMARKS)
    return {name: checkpoint.read_offsets(Files(), str(path / name)) for name in names}


@contextmanager
def held(path: Path) -> Iterator[tuple[subprocess.Popen[str], Callable[[], None]]]:
    """`ixion serve` that waits in the middle of loading: the process, and what lets it go on."""
    file = path / f"{HELD}-0" / "leader-epoch-checkpoint"
    content = file.read_bytes()
    file.unlink()
    os.mkfifo(file)
    process = subprocess.Popen(
        [sys.executable, "-m", "ixion", "serve", "--port", "0", "--data", str(path), "--log-level", "info", *NO_PAGES],
        cwd=path.parent,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        with file.open("wb", buffering=0) as pipe:  # which waits until the loader has opened it

            def feed() -> None:
                pipe.write(content)
                pipe.close()

            yield process, feed
    finally:
        process.kill()
        process.communicate()
        file.unlink(missing_ok=True)
        file.write_bytes(content)


def until_stopping(process: subprocess.Popen[str]) -> str:
    """What the broker has logged up to the line which says that the loader was stopped."""
    assert process.stderr is not None
    said = ""
    for line in process.stderr:
        said += line
        if "opens no further log" in line:
            return said
    raise AssertionError(f"the broker ended without stopping the loader: {said}")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_logs_are_loaded(tmp_path: Path, number: signal.Signals) -> None:
    fill(tmp_path / "d")
    before = offsets(tmp_path / "d")
    with held(tmp_path / "d") as (process, feed):
        process.send_signal(number)
        said = until_stopping(process)
        feed()
        out, rest = process.communicate(timeout=SECONDS)
        err = said + rest
        assert (process.returncode, out) == (0, ""), err
        assert "were not loaded" in err
    assert not (tmp_path / "d" / MARKER).exists()
    assert offsets(tmp_path / "d") == before
    check(tmp_path / "d")


def test_two_signals_while_logs_are_loaded(tmp_path: Path) -> None:
    fill(tmp_path / "d")
    before = offsets(tmp_path / "d")
    with held(tmp_path / "d") as (process, _):
        process.send_signal(signal.SIGINT)
        until_stopping(process)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=SECONDS)
        assert process.returncode == 128 + signal.SIGINT
    assert not (tmp_path / "d" / MARKER).exists()
    assert offsets(tmp_path / "d") == before
    check(tmp_path / "d")


@pytest.mark.parametrize("at", range(5))
def test_an_exception_while_logs_are_loaded(tmp_path: Path, at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path / "d")
    before = offsets(tmp_path / "d")
    calls = 0

    class Failing:
        def of(self, *given: Any) -> LogConfig:
            nonlocal calls
            calls += 1
            if calls > at:
                raise RuntimeError("out of the blue")
            return log_config(*given)

    async def work() -> None:
        monkeypatch.setattr(steps_storage, "LogConfigs", Failing)
        with pytest.raises(RuntimeError, match="blue"):
            await broker_on(tmp_path / "d").start()
        monkeypatch.undo()

    run(work)
    assert not (tmp_path / "d" / MARKER).exists()
    assert offsets(tmp_path / "d") == before
    check(tmp_path / "d")


def test_no_thread_works_on_a_log_that_is_closed(tmp_path: Path) -> None:
    """Nor on a directory whose lock was given back: retention that is under way when the broker stops ends first."""
    order: list[str] = []

    async def work() -> None:
        broker = broker_on(tmp_path / "d")
        await broker.start()
        await create(broker, "t")
        log = broker.parts.logs.logs["t", 0]
        told = threading.Event()

        def long_work() -> None:
            assert told.wait(SECONDS)
            assert not log.closed
            order.append("worker")

        under_way = broker.parts.loop.run_in_executor(broker.parts.scheduler.workers, long_work)
        for place, (name, action) in enumerate(broker.parts.undo):
            if name in ("logs", "scheduler"):

                def note(name: str = name, action: Callable[[], object] = action) -> None:
                    order.append(name)
                    told.set()
                    action()

                broker.parts.undo[place] = (name, note)
        await broker.stop(drain_ms=100)
        await under_way

    run(work)
    assert order == ["scheduler", "worker", "logs"]


class Full(QuickFiles):
    def open(self, path: str) -> int:
        if "meta.properties" in path:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        return super().open(path)


def test_a_start_that_finds_no_room_says_so_in_one_line_and_leaves_nothing(tmp_path: Path) -> None:
    async def work() -> None:
        with pytest.raises(StartupError, match=r"step 15 \(write_meta_properties\): .*No space left on device"):
            await broker_with(Full(), tmp_path / "d").start()
        assert not (tmp_path / "d").exists()
        async with running(tmp_path / "d") as broker:
            await create(broker, "t")

    run(work)
