"""Sessions over TLS, with a ZooKeeper of Apache and with a tree of ours that misbehaves.

Nothing of a connection is left when the loop ends, no wait is without a bound, and an error is one line.
"""

from __future__ import annotations

import asyncio
import gc
import socket
import ssl
import warnings
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
import uvloop

from devtools import parts
from devtools.zookeeper import RealZooKeeper
from ixion.broker.metadata.errors import MetadataError, SessionExpiredError, StoreUnusableError
from ixion.broker.metadata.zookeeper import link
from ixion.broker.metadata.zookeeper.session import ZooKeeperSession, open_session
from ixion.broker.security.zookeeper_tls import ZooKeeperTls
from ixion.config.broker import BrokerConfig
from tests.metadata.engines import ServedTree, end_from_outside
from tests.metadata.zookeeper.tls_tree import TlsTree, server_context
from tests.security.certificates import Authority

LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "asyncio": asyncio.SelectorEventLoop,
    "uvloop": uvloop.new_event_loop,
}


class Certificates:
    def __init__(self, directory: Path) -> None:
        self.authority = Authority(directory)
        self.server = self.authority.sign("server", "/CN=server")
        self.client = self.authority.sign("client", "/CN=client")
        self.stranger = Authority(directory, "stranger").sign("unknown", "/CN=unknown")
        self.elsewhere = self.authority.sign("elsewhere", "/CN=elsewhere", hosts="DNS:elsewhere.example")

    def tls(self, own: Path | None = None, **others: str) -> Callable[[], ssl.SSLContext]:
        given = {"truststore.location": str(self.authority.certificate)}
        if own is not None:
            given["keystore.location"] = str(own)
        given |= {name.replace("_", "."): value for name, value in others.items()}
        return ZooKeeperTls(BrokerConfig({f"zookeeper.ssl.{name}": value for name, value in given.items()})).context


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def tree(known: Certificates) -> Iterator[TlsTree]:
    made = TlsTree(server_context(known.server, known.authority))
    yield made
    made.close()


@pytest.fixture(scope="module")
def real(known: Certificates, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealZooKeeper]:
    parts.need("zookeeper-3.9.4")
    own = (known.server, known.authority.certificate)
    with RealZooKeeper(tmp_path_factory.mktemp("zookeeper"), tls=own) as zookeeper:
        yield zookeeper


@pytest.fixture(params=LOOPS)
def run(request: pytest.FixtureRequest) -> Callable[[Coroutine[Any, Any, None]], None]:
    """Runs a test on a kind of loop, and fails if a socket or a transport is left to the garbage collector."""

    def run(work: Coroutine[Any, Any, None]) -> None:
        gc.collect()
        with warnings.catch_warnings(record=True) as left:
            warnings.simplefilter("always")
            with asyncio.Runner(loop_factory=LOOPS[request.param]) as runner:
                runner.run(asyncio.wait_for(work, 60))
            gc.collect()
        assert [str(each.message) for each in left if issubclass(each.category, ResourceWarning)] == []

    return run


async def lost(session: ZooKeeperSession) -> None:
    while session.connected:
        await asyncio.sleep(0.005)


async def again(session: ZooKeeperSession, path: str) -> bytes:
    while True:
        try:
            return (await session.get(path)).data
        except SessionExpiredError:
            raise
        except MetadataError:
            await asyncio.sleep(0.01)


def test_a_session_with_zookeeper_over_tls(real: RealZooKeeper, known: Certificates, run: Any) -> None:
    async def work() -> None:
        connect = f"{real.secure_connect}/tls"
        session = await open_session(connect, 6_000, connect_timeout_ms=30_000, tls=known.tls(known.client))
        other = await open_session(connect, 6_000, tls=known.tls(known.client, protocol="TLSv1.3"))
        await session.create("/me", b"x" * 500_000, ephemeral=True)
        assert len((await other.get("/me")).data) == 500_000
        await session.close()
        assert await other.exists("/me") is None, "the end of a session is sent over TLS, too"
        await other.close()

    run(work())


def test_zookeeper_goes_away_and_comes_back(known: Certificates, tmp_path: Path, run: Any) -> None:
    parts.need("zookeeper-3.9.4")

    async def work(zookeeper: RealZooKeeper) -> None:
        connect = f"{zookeeper.secure_connect}/away"
        session = await open_session(connect, 10_000, connect_timeout_ms=30_000, tls=known.tls(known.client))
        await session.create("/n", b"1")
        number = session.session_id
        zookeeper.kill()
        await lost(session)
        zookeeper.launch()
        await asyncio.to_thread(zookeeper.wait)
        assert await again(session, "/n") == b"1"
        assert session.session_id == number
        await session.close()

    with RealZooKeeper(tmp_path, tls=(known.server, known.authority.certificate)) as zookeeper:
        run(work(zookeeper))


def test_an_expired_session_leaves_no_transport(real: RealZooKeeper, known: Certificates, run: Any) -> None:
    async def work() -> None:
        connect = f"{real.secure_connect}/expired"
        session = await open_session(connect, 6_000, connect_timeout_ms=30_000, tls=known.tls(known.client))
        expired = asyncio.Event()
        session.on_expired(expired.set)
        end_from_outside(session, real.connect)
        await expired.wait()
        with pytest.raises(SessionExpiredError):
            await session.get("/")
        await session.close()

    run(work())


@pytest.mark.parametrize("own", ["none", "stranger"])
def test_zookeeper_refuses_a_client_without_a_known_certificate(
    real: RealZooKeeper, known: Certificates, run: Any, own: str
) -> None:
    async def work() -> None:
        mine = None if own == "none" else known.stranger
        with pytest.raises(StoreUnusableError) as caught:
            await open_session(real.secure_connect, 6_000, connect_timeout_ms=1_000, tls=known.tls(mine))
        said = str(caught.value)
        assert "refused the TLS connection" in said
        assert "zookeeper.ssl.keystore.location" in said
        assert "\n" not in said

    run(work())


def test_a_server_with_a_wrong_certificate_is_refused(known: Certificates, run: Any) -> None:
    async def said(own: Path) -> str:
        tree = TlsTree(server_context(own))
        try:
            with pytest.raises(StoreUnusableError) as caught:
                await open_session(tree.connect, 6_000, connect_timeout_ms=300, tls=known.tls())
            return str(caught.value)
        finally:
            await asyncio.to_thread(tree.close)

    async def work() -> None:
        assert "its certificate is not accepted: unable to get local issuer certificate" in await said(known.stranger)
        assert "its certificate is not accepted: IP address mismatch" in await said(known.elsewhere)

    run(work())


def test_a_reason_is_logged_once(known: Certificates, run: Any, caplog: pytest.LogCaptureFixture) -> None:
    """A server that is away for an hour is tried every second; its next reason is logged as well."""

    async def work() -> None:
        tree = TlsTree(server_context(known.server))
        session = await open_session(tree.connect, 6_000, tls=known.tls())
        await asyncio.to_thread(tree.close)
        tries = session._machine._tries
        while session._machine._tries < tries + 5:
            await asyncio.sleep(0.01)
        await session.close()

    run(work())
    lines = [record.getMessage() for record in caplog.records if "ZooKeeper" in record.getMessage()]
    assert sum("the connection to ZooKeeper was lost" in line for line in lines) == 1
    assert sum("cannot reach ZooKeeper, retrying" in line for line in lines) == 1


def test_names_are_not_checked_if_the_settings_say_so(known: Certificates, run: Any) -> None:
    async def work() -> None:
        tree = TlsTree(server_context(known.elsewhere))
        tls = known.tls(endpoint_identification_algorithm="")
        await (await open_session(tree.connect, 6_000, tls=tls)).close()
        await asyncio.to_thread(tree.close)

    run(work())


def test_tls_to_a_plain_port_and_the_reverse(tree: TlsTree, known: Certificates, run: Any) -> None:
    async def work() -> None:
        with pytest.raises(StoreUnusableError, match=r"as a port without TLS does; zookeeper\.connect must"):
            await open_session(served.connect, 6_000, connect_timeout_ms=300, tls=known.tls())
        with pytest.raises(StoreUnusableError, match=r"closed the connection.*zookeeper\.ssl\.client\.enable"):
            await open_session(tree.connect, 6_000, connect_timeout_ms=300)

    served = ServedTree()
    try:
        run(work())
    finally:
        served.close()


def test_a_handshake_that_stalls_is_given_up(known: Certificates, run: Any) -> None:
    """The server takes the connection and says nothing; the next one of the ensemble is tried."""

    async def work() -> None:
        tree = TlsTree(server_context(known.server))
        with socket.create_server(("127.0.0.1", 0)) as silent:
            stalled = f"127.0.0.1:{silent.getsockname()[1]}"
            with pytest.raises(StoreUnusableError, match=rf"{stalled}: silent for \d+ ms"):
                await open_session(stalled, 150, connect_timeout_ms=400, tls=known.tls())
            session = await open_session(f"{stalled},{tree.connect}", 1_000, connect_timeout_ms=30_000, tls=known.tls())
            await session.close()
        await asyncio.to_thread(tree.close)

    run(work())


def test_a_server_that_never_says_goodbye(
    tree: TlsTree, known: Certificates, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It answers to nothing any more, and keeps the connection open."""
    monkeypatch.setattr(link, "GOODBYE_S", 0.05)
    monkeypatch.setattr("ixion.broker.metadata.zookeeper.session.CLOSE_MS", 50)

    async def work() -> None:
        session = await open_session(tree.connect, 6_000, tls=known.tls(known.client))
        tree.freeze()
        await session.close()

    run(work())


def test_only_the_goodbye_is_missing(
    tree: TlsTree, known: Certificates, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end of the session is confirmed, and then the server does not end the connection."""
    monkeypatch.setattr(link, "GOODBYE_S", 0.05)

    async def work() -> None:
        session = await open_session(tree.connect, 6_000, tls=known.tls(known.client))
        dropped = link.Link.drop

        def drop(self: link.Link, *, politely: bool) -> None:
            if politely:
                tree.freeze()
            dropped(self, politely=politely)

        monkeypatch.setattr(link.Link, "drop", drop)
        await session.close()

    run(work())


@pytest.mark.parametrize("secure", [True, False], ids=["tls", "plain"])
def test_a_server_that_reads_no_more(
    known: Certificates, run: Any, monkeypatch: pytest.MonkeyPatch, secure: bool
) -> None:
    """What was written stays in our buffer, and must not keep the connection open."""
    monkeypatch.setattr(link, "GOODBYE_S", 0.05)
    monkeypatch.setattr("ixion.broker.metadata.zookeeper.session.CLOSE_MS", 50)
    made = TlsTree(server_context(known.server) if secure else None)

    async def work() -> None:
        session = await open_session(made.connect, 6_000, tls=known.tls() if secure else None)
        made.freeze()
        writes = [asyncio.ensure_future(session.create(f"/{number}", b"x" * 900_000)) for number in range(20)]
        await asyncio.sleep(0)
        await session.close()
        for write in writes:
            with pytest.raises(SessionExpiredError):
                await write

    try:
        run(work())
    finally:
        made.close()


def test_a_connection_that_is_cut_is_made_again(tree: TlsTree, known: Certificates, run: Any) -> None:
    async def work() -> None:
        session = await open_session(tree.connect, 6_000, tls=known.tls(known.client))
        await session.create("/n", b"1")
        for _ in range(5):
            tree.cut()
            assert await again(session, "/n") == b"1"
        await session.close()

    run(work())


def test_opening_and_closing_may_be_cancelled(tree: TlsTree, known: Certificates, run: Any) -> None:
    async def work() -> None:
        for turns in range(30):
            opening = asyncio.ensure_future(open_session(tree.connect, 6_000, tls=known.tls(known.client)))
            for _ in range(turns):
                await asyncio.sleep(0)
            if opening.cancel():
                with pytest.raises(asyncio.CancelledError):
                    await opening
            else:
                await opening.result().close()
        session = await open_session(tree.connect, 6_000, tls=known.tls(known.client))
        closing = asyncio.ensure_future(session.close())
        await asyncio.sleep(0)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing

    run(work())


def test_a_new_certificate_is_used_for_the_next_connection(
    tree: TlsTree, known: Certificates, run: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    own = tmp_path / "own.pem"
    own.write_bytes(known.stranger.read_bytes())
    tls = known.tls(own)
    own.write_text("half written")
    tls()
    tls()
    assert caplog.text.count("with the certificates read before: zookeeper.ssl.keystore.location") == 1
    own.write_bytes(known.client.read_bytes())

    async def work() -> None:
        await (await open_session(tree.connect, 6_000, tls=tls)).close()

    run(work())
