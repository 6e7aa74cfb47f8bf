"""What could not be done for want of room or of file descriptors is done later, without a restart."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from ixion.broker.controller.planning import NewTopic
from ixion.broker.metadata.errors import StoreFullError
from ixion.broker.metadata.node import Operation, Result
from ixion.broker.startup.recurring_tasks import bring_back
from ixion.language.model.errors import ErrorCode
from tests.broker.support import broker_with, run
from tests.broker.test_restart import create, produce, values
from tests.log.support import QuickFiles


class Sick(QuickFiles):
    code = 0

    def make_dir(self, path: str) -> None:
        if self.code:
            raise OSError(self.code, os.strerror(self.code), path)
        super().make_dir(path)


@pytest.mark.parametrize("code", [errno.EMFILE, errno.ENOSPC])
def test_a_partition_whose_log_could_not_be_made_comes_online_later(tmp_path: Path, code: int) -> None:
    files = Sick()

    async def work() -> None:
        broker = broker_with(files, tmp_path / "d")
        await broker.start()
        try:
            files.code = code
            await create(broker, "t")
            assert (await produce(broker, "t", b"a")).code == ErrorCode.KAFKA_STORAGE_ERROR
            await broker.parts.sole_controller.bring_back()
            assert ("t", 0) in broker.parts.replicas.offline
            files.code = 0
            broker.parts.logs.directories[0].state.full = False
            bring_back(broker.parts)
            for task in list(broker.parts.background):
                await task
            assert not broker.parts.replicas.offline
            assert (await produce(broker, "t", b"b")).code == ErrorCode.NONE
            assert values(broker, "t") == [b"b"]
            assert not list((tmp_path / "d").glob("*-stray"))
        finally:
            await broker.stop(drain_ms=100)

    run(work)


def test_a_full_disk_takes_no_new_topic(tmp_path: Path) -> None:
    async def work() -> None:
        broker = broker_with(QuickFiles(), tmp_path / "d")
        await broker.start()
        try:
            broker.parts.logs.directories[0].state.full = True
            (outcome,) = await broker.parts.controller.topics.create([NewTopic(name="t")])
            assert (outcome.code, "t" in broker.parts.image.topics) == (ErrorCode.KAFKA_STORAGE_ERROR, False)
            broker.parts.logs.directories[0].state.full = False
            await create(broker, "t")
        finally:
            await broker.stop(drain_ms=100)

    run(work)


def test_a_topic_that_a_full_store_could_not_forget_is_forgotten_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work() -> None:
        broker = broker_with(QuickFiles(), tmp_path / "d")
        await broker.start()
        controller, session = broker.parts.sole_controller, broker.parts.session
        try:
            await create(broker, "t")

            real = session.multi
            room = [True]  # for one change: the note that the topic is to go

            async def full(operations: Sequence[Operation]) -> list[Result]:
                if not room:
                    raise StoreFullError("metadata", "database or disk is full")
                room.pop()
                return await real(operations)

            monkeypatch.setattr(session, "multi", full)
            (outcome,) = await controller.topics.delete(["t"])
            assert outcome.code == ErrorCode.NONE, "it will go, whatever happens"
            assert controller.topics.half_deleted == {"t"}
            (again,) = await controller.topics.create([NewTopic(name="t")])
            assert again.code == ErrorCode.TOPIC_ALREADY_EXISTS
            monkeypatch.undo()
            await controller.bring_back()
            assert controller.topics.half_deleted == set()
            await create(broker, "t")
            assert (await produce(broker, "t", b"new")).first_offset == 0
        finally:
            await broker.stop(drain_ms=100)

    run(work)
