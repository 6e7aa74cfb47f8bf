"""A broker that ZooKeeper knows by a login (SASL, DIGEST-MD5), as Kafka's brokers by a JAAS file."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from devtools import parts
from devtools.zookeeper import RealZooKeeper
from ixion.broker.log.files import Files
from ixion.broker.metadata.errors import AccessDeniedError
from ixion.broker.metadata.zookeeper.session import open_session
from ixion.broker.security.zookeeper_login import zookeeper_login
from ixion.broker.startup.broker import Broker
from ixion.broker.startup.errors import StartupError
from ixion.config.broker import BrokerConfig
from tests.broker.support import broker_with, run
from tests.metadata.engines import end_from_outside

MODULE = "org.apache.zookeeper.server.auth.DigestLoginModule"
JAAS = f'{MODULE} required username="kafka" password="{{}}";'
PASSWORD = "kafka-secret"


def broker_on(connect: str, path: Path, **settings: str) -> Broker:
    given = {
        "zookeeper_connect": connect,
        "zookeeper_connection_timeout_ms": "20000",
        "broker_id": "1",
        "zookeeper_set_acl": "true",
    }
    return broker_with(Files(), path, **{**given, **settings})


def test_nodes_belong_to_the_user_of_the_login(tmp_path: Path) -> None:
    parts.need("zookeeper-3.9.4")
    jaas = tmp_path / "jaas.conf"
    jaas.write_text(f"KafkaServer {{\n a.B required;\n}};\nClient {{\n{JAAS.format(PASSWORD)}\n}};\n")

    async def work() -> None:
        connect = f"{zookeeper.connect}/sasl"
        broker = broker_on(connect, tmp_path / "d", zookeeper_sasl_jaas_file=str(jaas))
        await broker.start()
        renewal = broker.parts.renewal
        assert renewal is not None
        end_from_outside(broker.parts.session, zookeeper.connect)  # type: ignore[arg-type]
        while renewal.renewed == 0:
            await asyncio.sleep(0.01)
        assert await broker.parts.session.children("/brokers/ids") == ["1"]

        stranger = await open_session(connect, 10_000)
        for path in ("/controller", "/brokers/ids/1", "/config/topics", "/cluster/id"):
            assert isinstance((await stranger.get(path)).data, bytes)
            with pytest.raises(AccessDeniedError):
                await stranger.set(path, b"forged")
        with pytest.raises(AccessDeniedError):
            await stranger.create("/brokers/topics/forged", b"")
        with pytest.raises(AccessDeniedError):
            await stranger.get("/config/users")
        await stranger.close()

        login = zookeeper_login(BrokerConfig({"zookeeper.sasl.jaas.config": JAAS.format(PASSWORD)}))
        same = await open_session(connect, 10_000, login=login)
        await same.set("/config/topics", b"by the same user")
        await same.close()
        await broker.stop(drain_ms=100)

    with RealZooKeeper(tmp_path / "zookeeper", users={"kafka": PASSWORD, "other": "x"}) as zookeeper:
        run(work)


def test_a_start_ends_with_one_line_if_zookeeper_refuses_the_login(tmp_path: Path) -> None:
    parts.need("zookeeper-3.9.4")

    async def work() -> None:
        broker = broker_on(
            zookeeper.connect,
            tmp_path / "d",
            zookeeper_sasl_jaas_config=JAAS.format("wrong"),
            zookeeper_connection_timeout_ms="1500",
        )
        with pytest.raises(StartupError, match="refused the login") as caught:
            await broker.start()
        assert "\n" not in str(caught.value)
        assert "wrong" not in str(caught.value)

    with RealZooKeeper(tmp_path / "zookeeper", users={"kafka": PASSWORD}) as zookeeper:
        run(work)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, r"zookeeper\.set\.acl=true needs a certificate .* or a login by SASL"),
        ({"zookeeper_sasl_jaas_file": "/nowhere"}, "No such file"),
        ({"zookeeper_sasl_jaas_config": f"{MODULE} required;"}, "username"),
        ({"zookeeper_sasl_jaas_config": "x.Krb5LoginModule required;"}, "DigestLoginModule"),
        ({"zookeeper_sasl_jaas_config": JAAS, "zookeeper_sasl_jaas_file": "/x"}, "left out"),
    ],
)
def test_a_login_that_cannot_be_used_is_refused_at_the_start(
    tmp_path: Path, settings: dict[str, str], said: str
) -> None:
    async def work() -> None:
        with pytest.raises(StartupError, match=said):
            await broker_on("127.0.0.1:1", tmp_path / "d", **settings).start()

    run(work)
