"""Connect strings, and an ensemble of three whose servers come and go."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from devtools import parts
from devtools.zookeeper import RealZooKeeper
from ixion.broker.metadata.errors import MetadataError, NoNodeError, StoreUnusableError, TooLargeError
from ixion.broker.metadata.node import Check, Create, Set
from ixion.broker.metadata.session import Event
from ixion.broker.metadata.zookeeper.ensemble import InvalidConnectStringError, Server, parse_connect
from ixion.broker.metadata.zookeeper.link import CLOSED
from ixion.broker.metadata.zookeeper.session import MAX_REQUEST, ZooKeeperSession, open_session, why_not


@pytest.mark.parametrize(
    ("text", "servers", "chroot"),
    [
        ("zk", [("zk", 2181)], ""),
        (" zk:1 , other:2/ ", [("zk", 1), ("other", 2)], ""),
        ("a:1,b:2/kafka/main", [("a", 1), ("b", 2)], "/kafka/main"),
        ("[::1]:2181,[fe80::1]/k", [("::1", 2181), ("fe80::1", 2181)], "/k"),
    ],
)
def test_connect_strings(text: str, servers: list[tuple[str, int]], chroot: str) -> None:
    parsed = parse_connect(text)
    assert list(parsed.servers) == [Server(*server) for server in servers]
    assert parsed.chroot == chroot


@pytest.mark.parametrize("text", ["", "/kafka", "zk:port", "zk:0", "zk:70000", ":2181", "zk:2181/a//b", "zk/../x"])
def test_connect_strings_that_make_no_sense(text: str) -> None:
    with pytest.raises(InvalidConnectStringError, match=r"zookeeper\.connect="):
        parse_connect(text)


def test_a_refused_connection_is_reported_in_one_line() -> None:
    with pytest.raises(StoreUnusableError, match=r"\(127.0.0.1:1\): no server accepted a session within 300 ms"):
        asyncio.run(_open("127.0.0.1:1"))


def test_a_server_without_a_quorum_is_reported_in_one_line() -> None:
    """It closes the connection to a client that wants to write, also if it serves others in read-only mode."""
    said = why_not(300, f"zk:2181: {CLOSED}", tls=True)
    assert said.endswith("zk:2181: closed the connection, as a server without a quorum does, read-only or not")
    assert "quorum" not in why_not(300, "zk:2181: Connection refused")


async def _open(connect: str) -> None:
    await open_session(connect, 6_000, connect_timeout_ms=300)


def test_pipelined_requests_and_large_answers(zookeeper: RealZooKeeper) -> None:
    async def work() -> None:
        session = await open_session(f"{zookeeper.connect}/pipelined", 10_000)
        await session.create("/all")
        names = [f"{number:06d}-{'x' * 80}" for number in range(2_000)]
        await asyncio.gather(*(session.create(f"/all/{name}", b"d" * 100) for name in names))
        assert await session.children("/all") == names
        nodes = await asyncio.gather(*(session.get(f"/all/{name}") for name in names))
        assert {node.data for node in nodes} == {b"d" * 100}
        await session.create("/epoch")
        await asyncio.gather(*(session.multi([Check("/epoch", 0), Set(f"/all/{name}", b"new", 0)]) for name in names))
        with pytest.raises(TooLargeError, match="too large for ZooKeeper"):
            await session.create("/large", b"x" * MAX_REQUEST)
        await session.create("/large", b"x" * (MAX_REQUEST - 200))
        assert len((await session.get("/large")).data) == MAX_REQUEST - 200
        await session.close()

    asyncio.run(work())


def test_a_wrong_password_or_an_ended_session_cannot_come_back(zookeeper: RealZooKeeper) -> None:
    async def work() -> None:
        session = await open_session(f"{zookeeper.connect}/ended", 6_000)
        await session.create("/e", ephemeral=True)
        other = await open_session(f"{zookeeper.connect}/ended", 6_000)
        await session.close()
        assert await other.exists("/e") is None
        for refused in (session.get("/e"), session.create("/f")):
            with pytest.raises(MetadataError, match="closed"):
                await refused
        await other.close()

    asyncio.run(work())


def test_sessions_and_watches_outlive_every_server_of_an_ensemble(tmp_path: Path) -> None:
    """Each server is killed and started again in turn; another session writes meanwhile."""
    parts.need("zookeeper-3.9.4")

    async def work(zookeeper: RealZooKeeper) -> None:
        watching = await open_session(f"{zookeeper.connect}/k", 10_000, connect_timeout_ms=60_000)
        writing = await open_session(f"{zookeeper.connect}/k", 10_000, connect_timeout_ms=60_000)
        sessions = (watching.session_id, writing.session_id)
        await watching.create("/me", ephemeral=True)
        await writing.create("/n", b"0")
        seen: list[int] = []
        events: list[Event] = []

        async def look() -> None:
            seen.append(int((await watching.get("/n")).data))

        tasks = []

        def changed(event: Event) -> None:
            events.append(event)
            tasks.append(asyncio.ensure_future(look()))

        watching.watch("/n", changed)
        number = 0
        for server in range(3):
            zookeeper.kill(server)
            for _ in range(5):
                number += 1
                await set_for_sure(writing, number)
            zookeeper.launch(server)
            await asyncio.to_thread(zookeeper.wait)
        number += 1
        await set_for_sure(writing, number)
        while not seen or seen[-1] != number:  # the last change is noticed, whatever was missed before
            await asyncio.sleep(0.02)
        await asyncio.gather(*tasks)
        assert sorted(seen) == seen, "a later look never sees an older value"
        assert (watching.session_id, writing.session_id) == sessions
        assert await writing.exists("/me") is not None
        await watching.close()
        await writing.close()

    async def set_for_sure(session: ZooKeeperSession, number: int) -> None:
        """The outcome of a write under way is unknown when the connection is lost; setting it again is harmless."""
        while True:
            try:
                await session.set("/n", b"%d" % number)
                return
            except NoNodeError:
                raise
            except MetadataError:
                await asyncio.sleep(0.05)

    with RealZooKeeper(tmp_path, servers=3) as zookeeper:
        asyncio.run(asyncio.wait_for(work(zookeeper), 120))


def test_multi_reports_the_operation_that_was_refused(zookeeper: RealZooKeeper) -> None:
    async def work() -> None:
        session = await open_session(f"{zookeeper.connect}/multi", 6_000)
        await session.create("/epoch", b"1")
        with pytest.raises(MetadataError) as caught:
            await session.multi([Create("/a"), Check("/epoch", 7), Create("/b")])
        assert caught.value.operation == 1
        assert await session.exists("/a") is None
        await session.close()

    asyncio.run(work())
