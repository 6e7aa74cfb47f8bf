"""A disk that is really full, under a real `ixion serve`: writes are refused, reads go on, and all goes on by itself.

The disk is a small tmpfs. Only root may mount it, or a user whom sudo asks for no password, as on the machines of CI.
Elsewhere `tests/faults` shows the same on a disk that plays full.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from devtools.parts import do_without
from ixion.language.protocol.messages.k19_create_topics import CreatableTopic, CreateTopicsRequest
from ixion.language.protocol.registry import ApiKey
from tests.apis.group_kit import commit_request
from tests.apis.raw import Raw
from tests.apis.txn_kit import produce
from tests.broker.served import SECONDS, Served
from tests.faults.broker_life import find
from tests.log.support import batch

SIZE_MB = 8


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "disk"
    path.mkdir()
    as_root = [] if os.geteuid() == 0 else ["sudo", "-n"]
    command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE_MB}m,uid={os.geteuid()}", "tmpfs", str(path)]
    try:
        subprocess.run([*as_root, *command], check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        do_without("a file system of its own", f"no tmpfs can be mounted: {getattr(error, 'stderr', '') or error}")
    yield path
    subprocess.run([*as_root, "umount", str(path)], check=True)


def fill(disk: Path) -> None:
    """Takes every byte that is left."""
    with (disk / "filler").open("wb", buffering=0) as file:
        block = bytes(64 << 10)
        while block:
            try:
                file.write(block)
            except OSError:
                block = block[: len(block) // 2]


def until(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not done():
        assert time.monotonic() < deadline, "it does not go on by itself"
        time.sleep(0.05)


def create(raw: Raw, name: str) -> int:
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1, assignments=(), configs=())
    answer = raw.ask(ApiKey.CREATE_TOPICS, 5, CreateTopicsRequest(topics=(topic,), timeout_ms=20_000))
    return int(answer.topics[0].error_code)


def commit(raw: Raw, offset: int) -> int:
    answer = raw.ask(ApiKey.OFFSET_COMMIT, 7, commit_request("g", {("t", 0): offset}))
    return int(answer.topics[0].partitions[0].error_code)


def test_a_disk_fills_up_and_has_room_again(disk: Path, tmp_path: Path) -> None:
    few = ("--set", "offsets.topic.num.partitions=1", "--set", "transaction.state.log.num.partitions=1")
    words = (*few, "--data", str(disk / "data"), "--set", "replica.high.watermark.checkpoint.interval.ms=50")
    often = ("--set", "log.flush.offset.checkpoint.interval.ms=50", "--set", "log.retention.check.interval.ms=100")
    with Served(tmp_path, *words, *often) as served, Raw(served.bootstrap) as raw:
        assert create(raw, "t") == 0
        assert find(raw, "g", 0)
        until(lambda: commit(raw, 1) == 0)
        kept = 0
        while kept < 10:
            assert produce(raw, None, batch(b"x" * 1000), topic="t") == "NONE"
            kept += 1
        for _ in range(3):
            fill(disk)
            until(lambda: produce(raw, None, batch(b"y" * 100_000), topic="t") == "KAFKA_STORAGE_ERROR")
            assert create(raw, "other") != 0
            assert commit(raw, 2) != 0
            assert served.process.poll() is None
            os.unlink(disk / "filler")
            until(lambda: produce(raw, None, batch(b"z" * 1000), topic="t") == "NONE")
            until(lambda: commit(raw, 3) == 0)
        until(lambda: create(raw, "later") == 0)
        code, _, err = served.stop()
        assert code == 0, err
        assert "goes offline" not in err
        assert "is full" in err or "appends are refused" in err
    with Served(tmp_path, *words) as served, Raw(served.bootstrap) as raw:
        assert produce(raw, None, batch(b"more"), topic="t") == "NONE"
        assert produce(raw, None, batch(b"more"), topic="later") == "NONE"
