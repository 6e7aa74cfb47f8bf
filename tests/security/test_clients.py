"""Clients that authenticate, and clients that should not get in: librdkafka, kafka-python and aiokafka."""

from __future__ import annotations

import shutil
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from ixion.broker.startup.broker import Broker as RealBroker
from ixion.broker.startup.errors import StartupError
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k03_metadata import MetadataRequest, MetadataResponse
from ixion.language.protocol.messages.k17_sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from ixion.language.protocol.messages.k36_sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from ixion.language.protocol.messages.k50_describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    UserName,
)
from ixion.language.protocol.messages.k51_alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from ixion.testing import Broker
from tests.apis.asking import Asking
from tests.security.certificates import Authority
from tests.security.secured import Secured


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    made = Secured(tmp_path_factory.mktemp("certificates"))
    with made.broker:
        made.broker.create_topic("t")
        made.add_user("carol", "c-secret", 1)
        made.add_user("carol", "c-secret", 2)
        yield made


LOGINS = {
    "PLAIN": {"sasl_mechanism": "PLAIN", "sasl_username": "alice", "sasl_password": "a-secret"},
    "SCRAM-SHA-256": {"sasl_mechanism": "SCRAM-SHA-256", "sasl_username": "carol", "sasl_password": "c-secret"},
    "SCRAM-SHA-512": {"sasl_mechanism": "SCRAM-SHA-512", "sasl_username": "carol", "sasl_password": "c-secret"},
}


def round_trip(options: dict[str, Any], topic: str) -> None:
    producer = Producer(options)
    producer.produce(topic, b"hello")
    assert producer.flush(30) == 0
    consumer = Consumer(options | {"group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    message = None
    end = time.monotonic() + 60
    while message is None and time.monotonic() < end:
        message = consumer.poll(1)
    consumer.close()
    assert message is not None
    assert message.value() == b"hello"


@pytest.mark.parametrize("listener", ["SASL_PLAINTEXT", "SASL_SSL"])
@pytest.mark.parametrize("mechanism", LOGINS)
def test_librdkafka_logs_in(secured: Secured, listener: str, mechanism: str) -> None:
    round_trip(secured.options(listener, **LOGINS[mechanism]), f"{listener}-{mechanism}")


def test_librdkafka_over_tls_alone_and_with_a_certificate(secured: Secured) -> None:
    round_trip(secured.options("SSL"), "tls")
    round_trip(secured.options("MUTUAL", ssl_keystore_location="") | pem(secured.client), "mutual")


def pem(path: Path) -> dict[str, str]:
    return {"ssl.certificate.location": str(path), "ssl.key.location": str(path), "ssl.keystore.location": ""}


def refused(options: dict[str, Any], reason: str = "") -> None:
    """librdkafka cannot get in, and says why, at this try or at a later one."""
    said: list[str] = []
    admin = AdminClient(options | {"error_cb": lambda error: said.append(str(error)), "log_level": 0})
    with pytest.raises(KafkaException):
        admin.list_topics(timeout=2)
    deadline = time.monotonic() + 60
    while reason not in " ".join(said):
        assert time.monotonic() < deadline, said
        admin.poll(0.1)


@pytest.mark.parametrize(
    "login",
    [
        {"sasl_mechanism": "PLAIN", "sasl_username": "alice", "sasl_password": "wrong"},
        {"sasl_mechanism": "PLAIN", "sasl_username": "carol", "sasl_password": "c-secret"},
        {"sasl_mechanism": "SCRAM-SHA-256", "sasl_username": "carol", "sasl_password": "wrong"},
        {"sasl_mechanism": "SCRAM-SHA-512", "sasl_username": "nobody", "sasl_password": "c-secret"},
    ],
)
def test_wrong_credentials_are_refused_with_a_reason(secured: Secured, login: dict[str, str]) -> None:
    refused(secured.options("SASL_PLAINTEXT", **login), "wrong name or password")


def test_no_client_gets_in_by_the_wrong_door(secured: Secured) -> None:
    refused(secured.options("SASL_PLAINTEXT") | {"security.protocol": "PLAINTEXT"})
    refused(secured.options("SSL") | {"security.protocol": "PLAINTEXT"})
    refused(secured.options("MUTUAL"), "alert certificate required")
    refused(secured.options("MUTUAL") | pem(secured.foreign), "alert unknown ca")
    refused(secured.options("SSL") | {"ssl.ca.location": str(secured.stranger.certificate)})
    round_trip(secured.options("SSL"), "still-there")


def test_requests_before_the_login_end_the_connection(secured: Secured) -> None:
    with Asking(secured.address("SASL_PLAINTEXT")) as asking, pytest.raises((ConnectionError, EOFError, OSError)):
        asking.ask(MetadataRequest(topics=None), MetadataResponse)
    with Asking(secured.address("SASL_PLAINTEXT")) as asking:
        answer = asking.ask(SaslHandshakeRequest(mechanism="GSSAPI"), SaslHandshakeResponse)
        assert answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
        assert answer.mechanisms == ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
    with Asking(secured.address("SASL_PLAINTEXT")) as asking:
        outcome = asking.ask(SaslAuthenticateRequest(auth_bytes=b"x"), SaslAuthenticateResponse)
        assert outcome.error_code == ErrorCode.ILLEGAL_SASL_STATE
    with Asking(secured.broker.bootstrap) as asking:
        answer = asking.ask(SaslHandshakeRequest(mechanism="PLAIN"), SaslHandshakeResponse)
        assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE, "a listener without SASL"


def test_a_large_request_before_the_login_is_not_read(secured: Secured) -> None:
    host, port = secured.address("SASL_PLAINTEXT").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall((600 * 1024).to_bytes(4, "big") + b"\x00\x24\x00\x02" + bytes(100))
        assert connection.recv(100) == b"", "closed as soon as the size is known"


def test_users_are_described_changed_and_deleted(secured: Secured) -> None:
    with Asking(secured.broker.bootstrap) as asking:
        everybody = asking.ask(DescribeUserScramCredentialsRequest(users=None), DescribeUserScramCredentialsResponse)
        carol = next(result for result in everybody.results if result.user == "carol")
        assert [(info.mechanism, info.iterations) for info in carol.credential_infos] == [(1, 4096), (2, 4096)]
        one = DescribeUserScramCredentialsRequest(users=(UserName(name="dave"),))
        (missing,) = asking.ask(one, DescribeUserScramCredentialsResponse).results
        assert missing.error_code == ErrorCode.RESOURCE_NOT_FOUND
    secured.add_user("dave", "first")
    login = {"sasl_mechanism": "SCRAM-SHA-256", "sasl_username": "dave", "sasl_password": "first"}
    round_trip(secured.options("SASL_PLAINTEXT", **login), "dave")
    secured.add_user("dave", "second")
    refused(secured.options("SASL_PLAINTEXT", **login), "wrong name")
    delete = AlterUserScramCredentialsRequest(
        deletions=(ScramCredentialDeletion(name="dave", mechanism=1),), upsertions=()
    )
    with Asking(secured.broker.bootstrap) as asking:
        for code in (ErrorCode.NONE, ErrorCode.RESOURCE_NOT_FOUND):
            (result,) = asking.ask(delete, AlterUserScramCredentialsResponse).results
            assert result.error_code == code
    refused(secured.options("SASL_PLAINTEXT", **(login | {"sasl_password": "second"})), "wrong name")


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"iterations": 100}, ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ({"iterations": 1_000_000}, ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ({"name": ""}, ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ({"mechanism": 7}, ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        ({"salt": b""}, ErrorCode.UNACCEPTABLE_CREDENTIAL),
    ],
)
def test_credentials_that_are_refused(secured: Secured, changes: dict[str, Any], code: ErrorCode) -> None:
    good: dict[str, Any] = {"name": "eve", "mechanism": 1, "iterations": 4096, "salt": b"s", "salted_password": b"p"}
    upsertion = ScramCredentialUpsertion(**(good | changes))
    with Asking(secured.broker.bootstrap) as asking:
        request = AlterUserScramCredentialsRequest(deletions=(), upsertions=(upsertion,))
        (result,) = asking.ask(request, AlterUserScramCredentialsResponse).results
    assert result.error_code == code


def test_a_new_certificate_is_used_without_a_restart(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    first, second = authority.sign("first", "/CN=first"), authority.sign("second", "/CN=second")
    used = tmp_path / "used.pem"
    shutil.copy(first, used)
    settings = {
        "listeners": "SSL://127.0.0.1:0",
        "security.inter.broker.protocol": "SSL",
        "ssl.keystore.location": used,
    }
    with Broker(settings) as broker:
        assert common_name(broker.bootstrap, authority) == "first"
        shutil.copy(second, used)
        end = time.monotonic() + 60
        while common_name(broker.bootstrap, authority) != "second" and time.monotonic() < end:
            time.sleep(0.1)
        assert common_name(broker.bootstrap, authority) == "second"


def common_name(address: str, authority: Authority) -> str:
    host, port = address.split(":")
    context = ssl.create_default_context(cafile=str(authority.certificate))
    plain = socket.create_connection((host, int(port)), timeout=30)
    with context.wrap_socket(plain, server_hostname=host) as secure:
        subject: Any = (secure.getpeercert() or {})["subject"]
        return str(dict(pair for part in subject for pair in part)["commonName"])


def test_sixty_stalled_handshakes_keep_no_client_out(secured: Secured) -> None:
    host, port = secured.address("SSL").split(":")
    stalled = [socket.create_connection((host, int(port)), timeout=30) for _ in range(70)]
    try:
        round_trip(secured.options("SSL"), "not-stalled")
    finally:
        for each in stalled:
            each.close()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"listeners": "SSL://127.0.0.1:0", "security.inter.broker.protocol": "SSL"}, r"ssl\.keystore\.location"),
        (
            {"listeners": "SASL_PLAINTEXT://127.0.0.1:0", "security.inter.broker.protocol": "SASL_PLAINTEXT"},
            r"sasl\.enabled\.mechanisms is 'GSSAPI'",
        ),
        (
            {
                "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
                "security.inter.broker.protocol": "SASL_PLAINTEXT",
                "sasl.enabled.mechanisms": "PLAIN",
            },
            r"listener\.name\.sasl_plaintext\.plain\.sasl\.jaas\.config",
        ),
    ],
)
def test_a_listener_that_no_client_could_use_is_refused_at_the_start(settings: dict[str, str], message: str) -> None:
    with pytest.raises(StartupError, match=message):
        Broker(settings).start()


def test_stores_that_are_not_pem_are_refused_with_the_way_out(tmp_path: Path) -> None:
    store = tmp_path / "store.jks"
    store.write_bytes(b"\xfe\xed\xfe\xed" + bytes(100))
    settings = {
        "listeners": "SSL://127.0.0.1:0",
        "security.inter.broker.protocol": "SSL",
        "ssl.keystore.location": store,
    }
    with pytest.raises(StartupError, match="openssl pkcs12"):
        Broker(settings).start()


def test_a_stop_does_not_wait_for_a_handshake_that_stalls(tmp_path: Path) -> None:
    pem = Authority(tmp_path).sign("broker", "/CN=broker")
    settings = {"listeners": "SSL://127.0.0.1:0", "security.inter.broker.protocol": "SSL", "ssl.keystore.location": pem}
    broker = Broker(settings).start()
    host, port = broker.bootstrap.split(":")
    with socket.create_connection((host, int(port)), timeout=30):

        async def handshaking(real: RealBroker) -> bool:
            processors = [each for acceptor in real.parts.server.acceptors for each in acceptor.processors]
            return any(processor.handshaking for processor in processors)

        while not broker.call(handshaking):
            time.sleep(0.01)
        stopping = threading.Thread(target=broker.stop, daemon=True)
        stopping.start()
        stopping.join(60)
        assert not stopping.is_alive()


def test_a_certificate_that_cannot_be_read_any_more_keeps_the_one_in_use(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    pem = authority.sign("broker", "/CN=broker")
    settings = {"listeners": "SSL://127.0.0.1:0", "security.inter.broker.protocol": "SSL", "ssl.keystore.location": pem}
    with Broker(settings) as broker:
        pem.write_text("-----BEGIN half of a file")
        assert common_name(broker.bootstrap, authority) == "broker"
        pem.unlink()
        assert common_name(broker.bootstrap, authority) == "broker"
