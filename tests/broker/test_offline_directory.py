"""A log directory that cannot be read at the start: its partitions stay offline, and come back with it."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from ixion.broker.controller.planning import NewTopic
from ixion.broker.log.files import Files
from ixion.broker.log.prepare import Origin
from ixion.broker.replica.results import AppendResult
from ixion.broker.startup.broker import Broker
from ixion.language.model.errors import ErrorCode
from tests.broker.support import broker_with, run
from tests.log.support import batch, stored


class Unreadable(Files):
    def __init__(self, path: Path | None = None) -> None:
        self.path = None if path is None else str(path)

    def list_dir(self, path: str) -> list[os.DirEntry[str]]:
        if path == self.path:
            raise OSError(errno.EIO, "Input/output error")
        return super().list_dir(path)


@pytest.mark.parametrize("mode", ["off", "record"])
def test_no_empty_log_is_led_in_place_of_one_in_an_offline_directory(tmp_path: Path, mode: str) -> None:
    paths = [tmp_path / "one", tmp_path / "two"]

    async def write(broker: Broker) -> None:
        parts = broker.parts
        parts.logs.prefer("t", 0, parts.logs.directories[1])
        wish = NewTopic(name="t", partitions=1, replication=1, config={"delivery.delay.mode": mode})
        (outcome,) = await parts.controller.topics.create([wish])
        assert outcome.code == ErrorCode.NONE
        while True:
            over: list[AppendResult] = []
            parts.replicas.append(1_000, 1, Origin.CLIENT, [("t", 0, batch(b"a", b"b"))], over.extend)
            if over and over[0].code == ErrorCode.NONE:
                return
            await broker.parts.loop.run_in_executor(None, lambda: None)

    async def look_without(broker: Broker) -> None:
        parts = broker.parts
        for _ in range(3):
            await parts.sole_controller.bring_back()
        assert parts.logs.get("t", 0) is None
        assert parts.replicas.partition("t", 0) is None
        assert parts.replicas.why_missing("t", 0) == ErrorCode.KAFKA_STORAGE_ERROR

    async def look(broker: Broker) -> None:
        log = broker.parts.logs.get("t", 0)
        assert log is not None
        assert [value for _, value in stored(log)] == [b"a", b"b"]

    for files, work in ((Files(), write), (Unreadable(paths[1]), look_without), (Files(), look)):

        async def life(files: Files = files, work=work) -> None:  # type: ignore[no-untyped-def]
            broker = broker_with(files, *paths)
            await broker.start()
            try:
                await work(broker)
            finally:
                await broker.stop(drain_ms=100)

        run(life)
