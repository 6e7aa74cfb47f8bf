"""Writes of the controller: fenced, settled after a lost connection, and cut into pieces that ZooKeeper takes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest

from ixion.broker.controller.cluster.fenced_tree import CHUNK_BYTES, CHUNK_OPERATIONS, DeposedError, FencedTree, chunks
from ixion.broker.controller.cluster.leadership import Leadership
from ixion.broker.controller.election import elect
from ixion.broker.metadata import paths
from ixion.broker.metadata.embedded import IN_MEMORY, EmbeddedStore
from ixion.broker.metadata.ensure import ensure
from ixion.broker.metadata.errors import BadVersionError, ConnectionLostError, NodeExistsError, NoNodeError
from ixion.broker.metadata.node import Create, Delete, Operation, Result, Set
from ixion.broker.metadata.on_loop import EmbeddedEngine, LoopSession


class Lossy(LoopSession):
    """A session that loses the connection at some transactions, before or after they were carried out."""

    losses: list[str]
    tried = 0

    async def multi(self, operations: Sequence[Operation]) -> list[Result]:
        self.tried += 1
        loss = self.losses.pop(0) if self.losses else ""
        if loss == "before":
            raise ConnectionLostError(operations[0].path, "test")
        results = await super().multi(operations)
        if loss == "after":
            raise ConnectionLostError(operations[0].path, "test")
        return results


def play(story: Callable[[Lossy, FencedTree], Awaitable[None]]) -> None:
    async def run() -> None:
        engine = EmbeddedEngine(EmbeddedStore(IN_MEMORY))
        session = Lossy(engine, engine.store.open_session(60_000))
        session.losses = []
        await ensure(session, paths.BASE)
        elected = await elect(session, 1, 0)
        await story(session, FencedTree(session, elected.epoch, elected.epoch_version))
        engine.close()

    asyncio.run(run())


def test_nothing_is_written_once_another_controller_was_elected() -> None:
    async def story(session: Lossy, tree: FencedTree) -> None:
        await tree.write([Create("/a", b"1")])
        await session.delete(paths.CONTROLLER)
        other = await elect(session, 2, 0)
        assert other.epoch == tree.controller_epoch + 1
        for operation in (Create("/b"), Set("/a", b"2"), Delete("/a")):
            with pytest.raises(DeposedError):
                await tree.write([operation])
        with pytest.raises(DeposedError):
            await tree.write_each([[Create(f"/b{n}")] for n in range(500)])
        with pytest.raises(DeposedError):
            await tree.write_states({("t", 0): Leadership(leader=1, leader_epoch=0, isr=(1,))})
        assert (await session.get("/a")).data == b"1"
        assert not [name for name in await session.children("/") if name.startswith("b") and name != "brokers"]

    play(story)


def test_a_controller_that_has_resigned_writes_nothing() -> None:
    async def story(session: Lossy, tree: FencedTree) -> None:
        tree.close()
        with pytest.raises(DeposedError):
            await tree.write([Create("/a")])
        assert await session.exists("/a") is None

    play(story)


def test_a_conflict_is_not_the_end_of_a_term() -> None:
    async def story(_session: Lossy, tree: FencedTree) -> None:
        await tree.write([Create("/a")])
        with pytest.raises(NodeExistsError) as conflict:
            await tree.write([Create("/b"), Create("/a")])
        assert conflict.value.operation == 1, "counted without the check"
        with pytest.raises(BadVersionError):
            await tree.write([Set("/a", b"", 7)])

    play(story)


@pytest.mark.parametrize("losses", [["after"], ["before"], ["before", "before", "after"]])
@pytest.mark.parametrize(
    "operations",
    [
        [Create("/new", b"x")],
        [Set("/a", b"2", 0)],
        [Set("/a", b"2")],
        [Delete("/a")],
        [Set("/a", b"2", 0), Create("/new", b"x")],
    ],
)
def test_a_write_is_done_once_however_the_connection_is_lost(losses: list[str], operations: list[Operation]) -> None:
    async def story(session: Lossy, tree: FencedTree) -> None:
        await session.create("/a", b"1")
        session.losses, session.tried = list(losses), 0
        results = await tree.write(operations)
        assert len(results) == len(operations)
        assert session.tried == len(losses) + (losses[-1] == "before")
        if isinstance(operations[0], Set):
            node = await session.get("/a")
            assert (node.data, node.stat.version) == (b"2", 1)
        if any(operation.path == "/new" for operation in operations):
            assert (await session.get("/new")).stat.version == 0
        if isinstance(operations[0], Delete):
            assert await session.exists("/a") is None

    play(story)


def test_a_state_that_another_version_has_is_left_out_and_read_again() -> None:
    async def story(session: Lossy, tree: FencedTree) -> None:
        for number in range(2):
            await ensure(session, [paths.partition_state("t", number)])
        wanted = {("t", n): Leadership(leader=1, leader_epoch=n, isr=(1, 2), partition_epoch=n) for n in range(3)}
        written = await tree.write_states(wanted)
        assert list(written) == [("t", 0)]
        assert (written["t", 0].partition_epoch, written["t", 0].controller_epoch) == (1, tree.controller_epoch)
        assert await tree.read_states([("t", 0), ("t", 2)]) == written

    play(story)


def test_the_epochs_of_isr_members_are_written_beside_the_isr() -> None:
    async def story(session: Lossy, tree: FencedTree) -> None:
        await ensure(session, [paths.partition_state("t", 0)])
        written = Leadership(leader=1, leader_epoch=0, isr=(1, 2), eligible=(3, 4), epochs={1: 1, 2: 1 << 40, 3: 2})
        await tree.write_states({("t", 0): written})
        read = (await tree.read_states([("t", 0)]))["t", 0]
        assert isinstance(read, Leadership)
        assert read.eligible == (3, 4)
        zxid = (await session.get(paths.partition_state("t", 0))).stat.modified_zxid
        assert (read.epochs[1], read.epochs[3]) == (1, 2)
        assert read.epochs[2] == zxid, "no broker can have registered after the write"
        assert read.epochs[4] == zxid, "its epoch is not known"

    play(story)


def test_a_state_of_a_newer_controller_ends_the_term() -> None:
    async def story(session: Lossy, tree: FencedTree) -> None:
        await ensure(session, [paths.partition_state("t", 0)])
        data = b'{"version":1,"leader":1,"leader_epoch":0,"controller_epoch":9,"isr":[1]}'
        await session.set(paths.partition_state("t", 0), data)
        with pytest.raises(DeposedError, match="epoch 9"):
            await tree.read_states([("t", 0)])

    play(story)


def test_nodes_that_are_there_already_do_not_stop_the_others() -> None:
    async def story(session: Lossy, tree: FencedTree) -> None:
        await session.create("/n3", b"old")
        await tree.create_all([Create(f"/n{number}", b"new") for number in range(6)])
        assert [(await session.get(f"/n{n}")).data for n in (2, 3, 4)] == [b"new", b"old", b"new"]
        await session.delete("/n4")
        await tree.delete_all([f"/n{number}" for number in range(6)])
        assert [name for name in await session.children("/") if name.startswith("n")] == []
        with pytest.raises(NoNodeError):
            await tree.create_all([Create("/no/parent")])

    play(story)


def test_a_lost_transaction_is_repeated_although_one_of_its_nodes_was_there_before() -> None:
    async def story(session: Lossy, tree: FencedTree) -> None:
        await session.create("/t")  # as the folder of the partitions, when a topic gets more of them
        session.losses = ["before"]
        await tree.create_all([Create("/t"), Create("/t/1"), Create("/t/1/state", b"s")])
        assert (await session.get("/t/1/state")).data == b"s"
        await session.create("/c", b"{}")
        session.losses = ["before"]
        await tree.write([Set("/c", b"{}"), Create("/topic", b"t")])
        assert (await session.get("/topic")).data == b"t"
        await session.delete("/c")
        session.losses = ["after"]
        await tree.write([Create("/c", b"{}"), Delete("/topic")])
        assert session.losses == []

    play(story)


def test_chunks_are_small_enough_and_keep_the_order() -> None:
    many = [Create(f"/{number:05d}", b"x" * 900) for number in range(2_000)]
    cut = chunks(many)
    assert [operation for chunk in cut for operation in chunk] == many
    assert all(sum(len(each.path) + 900 for each in chunk) <= CHUNK_BYTES for chunk in cut)
    assert all(len(chunk) <= CHUNK_OPERATIONS for chunk in chunks([Delete("/a")] * 2_000))
    assert [len(chunk) for chunk in chunks([Create("/a"), Create("/b", b"x" * CHUNK_BYTES), Create("/c")])] == [1, 1, 1]
    assert chunks([]) == []
