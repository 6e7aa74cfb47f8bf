"""Brokers that reach each other by TLS and SASL only: they copy, elect, hand over and come back as others do."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path

import pytest

from devtools.zookeeper import RealZooKeeper
from ixion.broker.controller.planning import NewTopic
from ixion.broker.log.files import Files
from ixion.broker.log.prepare import Origin
from ixion.broker.metadata import paths
from ixion.broker.metadata.config_node import encode_config
from ixion.broker.metadata.ensure import ensure
from ixion.broker.metadata.zookeeper.session import open_session
from ixion.broker.replica.results import AppendResult
from ixion.broker.startup.broker import Broker
from ixion.broker.startup.errors import StartupError
from ixion.broker.startup.parts import Options
from ixion.config.sources import load
from ixion.language.model.errors import ErrorCode
from ixion.language.sasl.scram import new_credential
from tests.log.support import batch
from tests.security.certificates import Authority
from tests.security.identity_provider import Provider

NUMBERS = count()
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
PASSWORD = "b-secret"
LOGIN = f'username="broker" password="{PASSWORD}"'
PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    made = Authority(tmp_path_factory.mktemp("authority"))
    made.sign("broker", "/O=ixion/CN=broker")
    return made


@pytest.fixture
def connect(zookeeper: RealZooKeeper) -> str:
    return f"{zookeeper.connect}/secured/{next(NUMBERS)}"


def secured(authority: Authority, protocol: str, mechanism: str = "") -> dict[str, str]:
    """Settings of a broker that has no listener of another kind; only brokers may do what brokers do."""
    given = {
        "listeners": f"{protocol}://127.0.0.1:0",
        "security.inter.broker.protocol": protocol,
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "super.users": "User:broker" if mechanism else "User:CN=broker,O=ixion",
    }
    if protocol.endswith("SSL"):
        given["ssl.keystore.location"] = str(authority.certificate.parent / "broker.pem")
        given["ssl.truststore.location"] = str(authority.certificate)
        given["ssl.client.auth"] = "none" if mechanism else "required"
    if mechanism:
        given["sasl.enabled.mechanisms"] = given["sasl.mechanism.inter.broker.protocol"] = mechanism
        given["connections.max.reauth.ms"] = "400"
    if mechanism == "OAUTHBEARER":
        provider, folder = Provider(), authority.certificate.parent
        (folder / "broker.jwt").write_text(provider.token(sub="broker"))
        given["sasl.oauthbearer.jwks.endpoint.url"] = provider.write(folder / "keys.json")
        given["sasl.oauthbearer.token.endpoint.url"] = (folder / "broker.jwt").as_uri()
    elif mechanism:
        module = f'{PLAIN} user_broker="{PASSWORD}"' if mechanism == "PLAIN" else SCRAM
        given[f"listener.name.{protocol.lower()}.{mechanism.lower()}.sasl.jaas.config"] = f"{module} {LOGIN};"
    return given


def broker_of(number: int, connect: str, path: Path, given: dict[str, str]) -> Broker:
    settings = {
        "zookeeper.connect": connect,
        "zookeeper.session.timeout.ms": "2000",
        "broker.id": str(number),
        "controlled.shutdown.retry.backoff.ms": "50",
        "replica.fetch.backoff.ms": "50",
        "log.dirs": str(path / str(number)),
        "log.cleaner.dedupe.buffer.size": "16777216",
        **given,
    }
    return Broker(load(assignments=[f"{name}={value}" for name, value in settings.items()]), Options(files=Files()))


async def add_user(connect: str, mechanism: str) -> None:
    """As Kafka's ConfigCommand --zookeeper does before the first broker of a cluster starts."""
    session = await open_session(connect, 6_000)
    path = paths.config("users", "broker")
    await ensure(session, [path.rpartition("/")[0]])
    await session.create(path, encode_config({mechanism: new_credential(mechanism, PASSWORD).text()}))
    await session.close()


def run(work: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(PATIENCE_S):
            await work()

    asyncio.run(bounded())


async def until(holds: Callable[[], bool]) -> None:
    while not holds():
        await asyncio.sleep(0.01)


async def append(broker: Broker, number: int) -> None:
    over: list[AppendResult] = []
    broker.parts.replicas.append(30_000, -1, Origin.CLIENT, [("t", 0, batch(b"%d" % number))], over.extend)
    await until(lambda: bool(over))
    assert over[0].code == ErrorCode.NONE


@pytest.mark.parametrize(
    ("protocol", "mechanism"),
    [("SSL", ""), ("SASL_PLAINTEXT", "PLAIN"), ("SASL_SSL", "SCRAM-SHA-512"), ("SASL_PLAINTEXT", "OAUTHBEARER")],
)
def test_three_brokers_with_secured_listeners_only_are_a_cluster(
    connect: str, tmp_path: Path, authority: Authority, protocol: str, mechanism: str
) -> None:
    given = secured(authority, protocol, mechanism)

    async def work() -> None:
        if mechanism.startswith("SCRAM"):
            await add_user(connect, mechanism)
        brokers = {number: broker_of(number, connect, tmp_path, given) for number in (1, 2, 3)}
        for broker in brokers.values():
            await broker.start()
        await until(lambda: all(len(each.parts.image.brokers) == 3 for each in brokers.values()))
        wish = NewTopic(name="t", assignment={0: (2, 1, 3)}, config={"min.insync.replicas": "2"})
        await brokers[1].parts.controller.topics.create([wish])
        await until(lambda: all(("t", 0) in each.parts.replicas.partitions for each in brokers.values()))
        partitions = {number: each.parts.replicas.partitions["t", 0] for number, each in brokers.items()}
        for number in range(10):
            await append(brokers[2], number)
        await brokers[2].stop(drain_ms=100)  # ControlledShutdown, over the same kind of connection
        assert set(partitions[1].isr) == {1, 3}
        assert partitions[1].leads
        for number in range(10):
            await append(brokers[1], number)
        brokers[2] = broker_of(2, connect, tmp_path, given)
        await brokers[2].start()
        await until(lambda: set(partitions[1].isr) == {1, 2, 3})  # AlterPartition to the controller
        assert brokers[2].parts.replicas.partitions["t", 0].log.end_offset == 20
        await brokers[1].stop(drain_ms=100)  # the controller, too
        await until(lambda: partitions[3].leads or brokers[2].parts.replicas.partitions["t", 0].leads)
        await append(brokers[3] if partitions[3].leads else brokers[2], 20)
        for number in (2, 3):
            await brokers[number].stop(drain_ms=100)

    run(work)


def test_a_broker_with_a_wrong_password_is_not_taken_in(
    connect: str, tmp_path: Path, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    """The controller cannot log in to it, and the log says so once."""
    given = secured(authority, "SASL_PLAINTEXT", "PLAIN")
    name = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
    other = {**given, name: f'{PLAIN} user_broker="another" {LOGIN};'}

    async def work() -> None:
        first, second = broker_of(1, connect, tmp_path, given), broker_of(2, connect, tmp_path, other)
        await first.start()
        await second.start()
        await until(lambda: "to broker 2 is sent again" in caplog.text)
        assert "1" not in map(str, second.parts.image.brokers)
        await second.stop(drain_ms=100)
        await first.stop(drain_ms=100)

    run(work)
    line = next(line for line in caplog.messages if "to broker 2 is sent again" in line)
    assert "authentication by PLAIN failed: wrong name or password" in line
    assert PASSWORD not in caplog.text


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"sasl.mechanism.inter.broker.protocol": "GSSAPI"}, "'GSSAPI', but must be one of PLAIN, SCRAM"),
        ({"sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-256"}, r"one of sasl.enabled.mechanisms \(PLAIN\)"),
        ({"listener.name.sasl_ssl.plain.sasl.jaas.config": f'{PLAIN} user_broker="x";'}, 'must have username="NAME"'),
        ({"ssl.truststore.location": "/nowhere.pem"}, "ssl.truststore.location"),
    ],
)
def test_a_start_that_could_not_reach_other_brokers_is_one_clear_line(
    tmp_path: Path, authority: Authority, changed: dict[str, str], message: str
) -> None:
    given = {**secured(authority, "SASL_SSL", "PLAIN"), **changed}

    async def work() -> None:
        with pytest.raises(StartupError, match=message) as refused:
            await broker_of(1, "127.0.0.1:1/x", tmp_path, given).start()
        assert PASSWORD not in str(refused.value)
        assert not (tmp_path / "1").exists(), "nothing is left behind"

    run(work)
