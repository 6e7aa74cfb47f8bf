"""The cluster id when several brokers start at the same time on an empty tree."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from ixion.broker.metadata import paths
from ixion.broker.metadata.cluster_node import encode_cluster_id
from ixion.broker.metadata.errors import NodeExistsError, NoNodeError
from ixion.broker.metadata.node import Create
from ixion.broker.startup.parts import Parts
from ixion.broker.startup.steps_identity import cluster_id
from tests.broker.support import run


class SlowTree:
    """A tree in which another broker creates the cluster id just before this one does."""

    def __init__(self) -> None:
        self.nodes: dict[str, bytes] = {"/": b""}

    async def exists(self, path: str) -> object:
        return self.nodes.get(path)

    async def get(self, path: str) -> object:
        if path not in self.nodes:
            raise NoNodeError(path)
        return SimpleNamespace(data=self.nodes[path])

    async def multi(self, operations: list[Create]) -> None:
        for operation in operations:
            self.nodes[operation.path] = b""

    async def create(self, path: str, data: bytes, **_options: Any) -> None:
        self.nodes[path] = encode_cluster_id("the-id-of-the-other-one")
        raise NodeExistsError(path)


def test_the_broker_that_comes_second_takes_the_id_of_the_first() -> None:
    tree = SlowTree()
    parts = SimpleNamespace(engine=None, session=tree, paths=[], cluster_id="")

    async def scene() -> None:
        await cluster_id(cast(Parts, parts))

    run(scene)
    assert parts.cluster_id == "the-id-of-the-other-one"
    assert list(tree.nodes) == ["/", "/cluster", paths.CLUSTER_ID]
