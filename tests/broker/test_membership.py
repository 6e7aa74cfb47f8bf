"""What a member of a cluster reads from the tree on behalf of its controller."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

from ixion.broker.metadata import paths
from ixion.broker.metadata.node import ANY_VERSION, Check, Node, Operation, Result, Stat
from ixion.broker.startup.membership import make_control
from tests.broker.support import run


class Lagging:
    """A session with a server that learns of a transaction when it is asked for one itself."""

    def __init__(self, before: bytes, after: bytes) -> None:
        self.data = before
        self._after = after

    async def get(self, _path: str) -> Node:
        return Node(data=self.data, stat=cast(Stat, None))

    async def multi(self, operations: Sequence[Operation]) -> list[Result]:
        assert operations == [Check(paths.CONTROLLER_EPOCH, ANY_VERSION)], "it changes nothing"
        self.data = self._after
        return [None]


def control_on(session: Lagging) -> Any:
    alone = SimpleNamespace(
        session=session, image=None, replicas=None, logs=None, engine="", scheduler=SimpleNamespace(workers=None)
    )
    return make_control(cast(Any, alone))


def test_what_is_read_after_catching_up_is_what_the_controller_has_written() -> None:
    async def work() -> None:
        control = control_on(Lagging(b"4", b"5"))
        assert await control._last_controller_epoch() == 4
        await control._catch_up()
        assert await control._last_controller_epoch() == 5

    run(work)


def test_a_topic_whose_settings_are_garbage_keeps_its_records() -> None:
    async def work() -> None:
        control = control_on(Lagging(b"garbage", b""))
        assert await control._read_config("t") == {"retention.ms": "-1", "retention.bytes": "-1"}

    run(work)
