"""Flushes that acknowledged records wait for: one that fails is tried again, and none is taken for another log's."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ixion.broker.log.config import LogConfig
from ixion.broker.replica.manager import FLUSH_RETRY_MS
from ixion.language.model.errors import ErrorCode
from tests.log.support import QuickFiles
from tests.replica.world import World


class Sick(QuickFiles):
    def __init__(self) -> None:
        self.code = 0
        self.syncs = 0

    def sync(self, fd: int) -> None:
        self.syncs += 1
        if self.code:
            raise OSError(self.code, os.strerror(self.code))


@pytest.fixture
def files() -> Sick:
    return Sick()


@pytest.fixture
def world(tmp_path: Path, files: Sick) -> Iterator[World]:
    made = World(tmp_path, LogConfig(flush_messages=1), files=files)
    yield made
    made.close()


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EMFILE])
def test_a_flush_that_failed_is_tried_again_without_an_append(world: World, files: Sick, code: int) -> None:
    partition = world.lead()
    files.code = code
    waiting = world.produce(b"a", timeout_ms=60_000)
    for _ in range(3):
        assert world.flush() == 1
        assert world.flush() == 0, "not again at once"
        assert (waiting, partition.log.high_watermark) == ([], 0)
        world.advance(FLUSH_RETRY_MS + 50)
    files.code = 0
    assert world.flush() == 1
    assert [result.code for result in waiting] == [ErrorCode.NONE]
    assert partition.log.high_watermark == 1
    world.advance(10 * FLUSH_RETRY_MS)
    assert world.flush() == 0, "it is over"


def test_many_that_wait_for_a_sick_disk_are_one_attempt(world: World, files: Sick) -> None:
    world.lead()
    files.code = errno.EMFILE
    for _ in range(5):
        world.produce(b"a", timeout_ms=60_000)
        world.flush()
    world.advance(FLUSH_RETRY_MS + 50)
    assert world.flush() == 1


def test_a_disk_that_failed_for_good_is_left_alone(world: World, files: Sick) -> None:
    world.lead()
    files.code = errno.EIO
    world.produce(b"a", timeout_ms=60_000)
    world.flush()
    assert world.failed
    world.advance(FLUSH_RETRY_MS + 50)
    assert world.flush() == 0


def test_a_topic_created_again_waits_for_a_flush_of_its_own(world: World) -> None:
    world.lead()
    world.produce(b"old")
    world.settle()
    assert len(world.workers.waiting) == 1
    world.replicas.stop("t", 0, delete=True)
    again = world.lead(epoch=1)
    waiting = world.produce(b"new", timeout_ms=60_000)
    world.settle()
    assert len(world.workers.waiting) == 2, "the flush of the deleted log is not the new log's"
    world.flush()
    assert [result.code for result in waiting] == [ErrorCode.NONE]
    assert again.log.high_watermark == 1


def test_after_the_stop_no_flush_begins(world: World, files: Sick) -> None:
    partition = world.lead()
    files.code = errno.EMFILE
    world.produce(b"a", timeout_ms=60_000)
    world.flush()
    world.replicas.shutdown()
    world.advance(FLUSH_RETRY_MS + 50)
    world.replicas.flush_soon(partition)
    world.replicas.flush_sealed_soon(partition)
    assert world.flush() == 0
