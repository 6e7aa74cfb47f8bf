"""TLS and SASL in our own clients: let in, refused, and told apart from a lost connection."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ixion.clients import Consumer, Producer, TopicPartition, aio
from ixion.clients.core.connection import NEVER
from ixion.clients.faults import AuthenticationError, TimedOutError
from ixion.clients.security import read_security
from ixion.clients.settings import read_producer_settings
from tests.clients.faces import FACES, Face
from tests.security.secured import Secured

PLAIN = {"sasl_mechanism": "PLAIN", "sasl_username": "alice", "sasl_password": "a-secret"}
SCRAM = {"sasl_mechanism": "SCRAM-SHA-256", "sasl_username": "carol", "sasl_password": "c-secret"}
LOGINS = {"PLAIN": PLAIN, "SCRAM-SHA-256": SCRAM, "SCRAM-SHA-512": SCRAM | {"sasl_mechanism": "SCRAM-SHA-512"}}

VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


class SecuredClients(Secured):
    def settings(self, listener: str, **more: Any) -> dict[str, Any]:
        found: dict[str, Any] = {"security_protocol": "SSL" if listener == "MUTUAL" else listener}
        if "SSL" in found["security_protocol"]:
            found["ssl_truststore_location"] = str(self.authority.certificate)
        return found | more


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredClients]:
    made = SecuredClients(tmp_path_factory.mktemp("certificates"))
    with made.broker:
        made.broker.create_topic("t")
        made.add_user("carol", "c-secret", 1)
        made.add_user("carol", "c-secret", 2)
        yield made


def round_trip(address: str, settings: dict[str, Any], value: bytes) -> None:
    with Producer(address, **settings) as producer:
        offset = producer.send("t", value).result(30).offset
    with Consumer(address, **settings) as consumer:
        place = TopicPartition("t", 0)
        consumer.assign([place])
        consumer.seek(place, offset)
        assert consumer.poll(30)[0].value == value


@pytest.mark.parametrize("listener", ["SASL_PLAINTEXT", "SASL_SSL"])
@pytest.mark.parametrize("mechanism", LOGINS)
def test_they_log_in(secured: SecuredClients, listener: str, mechanism: str) -> None:
    round_trip(secured.address(listener), secured.settings(listener, **LOGINS[mechanism]), mechanism.encode())


def test_they_speak_tls_alone_and_with_a_certificate_from_a_file_or_as_text(secured: SecuredClients) -> None:
    round_trip(secured.address("SSL"), secured.settings("SSL"), b"tls")
    mutual = secured.settings("MUTUAL", ssl_keystore_location=str(secured.client))
    round_trip(secured.address("MUTUAL"), mutual, b"mutual")
    text = {
        "security_protocol": "SSL",
        "ssl_truststore_certificates": secured.authority.certificate.read_text(),
        "ssl_keystore_key": secured.client.with_suffix(".key").read_text(),
        "ssl_keystore_certificate_chain": secured.client.with_suffix(".crt").read_text(),
    }
    round_trip(secured.address("MUTUAL"), text, b"text")
    context = ssl.create_default_context(cafile=str(secured.authority.certificate))
    round_trip(secured.address("SSL"), {"security_protocol": "SSL", "ssl_context": context}, b"context")


def test_large_records_pass_over_tls_both_ways(secured: SecuredClients) -> None:
    round_trip(secured.address("SSL"), secured.settings("SSL"), bytes(900_000))


def test_a_member_of_a_group_logs_in_on_each_of_its_connections(secured: SecuredClients) -> None:
    address, settings = secured.address("SASL_SSL"), secured.settings("SASL_SSL", **SCRAM)
    with Producer(address, **settings) as producer:
        producer.send("t", b"for the group").result(30)
    with Consumer(address, group="g", topics=["t"], auto_offset_reset="earliest", **settings) as consumer:
        assert consumer.poll(30)
        consumer.commit()


def test_the_face_on_asyncio_logs_in_and_is_refused(secured: SecuredClients) -> None:
    address, settings = secured.address("SASL_SSL"), secured.settings("SASL_SSL", **SCRAM)

    async def send(**login: str) -> int:
        async with aio.Producer(address, **(settings | login)) as producer:
            return (await (await producer.send("t", b"x"))).offset

    assert asyncio.run(send()) >= 0
    with pytest.raises(AuthenticationError, match="wrong name or password"):
        asyncio.run(send(sasl_password="wrong"))


REFUSED: dict[str, tuple[str, dict[str, str], str]] = {
    "wrong password": ("SASL_PLAINTEXT", PLAIN | {"sasl_password": "x"}, "wrong name or password"),
    "wrong SCRAM password": ("SASL_SSL", SCRAM | {"sasl_password": "x"}, "wrong name or password"),
    "unknown user": ("SASL_SSL", SCRAM | {"sasl_username": "nobody"}, "wrong name or password"),
    "no SASL there": ("PLAINTEXT", PLAIN | {"security_protocol": "SASL_PLAINTEXT"}, "takes no SASL login"),
    "another authority": ("SSL", {"ssl_truststore_location": "stranger.pem"}, "certificate is not valid"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_refusal_is_raised_at_once_and_says_why(
    secured: SecuredClients, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(secured.authority.certificate.parent)
    listener, more, why = REFUSED[case]
    settings = secured.settings(listener) | more
    with Producer(secured.address(listener), **settings) as producer:
        with pytest.raises(AuthenticationError, match=why) as caught:
            producer.send("t", b"x")
        assert not caught.value.code.retriable
        assert secured.address(listener) in str(caught.value)
        with pytest.raises(AuthenticationError, match=why):  # a new call asks again
            producer.send("t", b"x")
    consumer = Consumer(secured.address(listener), **settings)
    consumer.assign([TopicPartition("t", 0)])
    with pytest.raises(AuthenticationError, match=why):
        consumer.poll(30)
    consumer.close()
    round_trip(secured.address("SSL"), secured.settings("SSL"), b"still there")


@pytest.mark.parametrize(("certificate", "why"), [("expired", "expired"), ("elsewhere", "IP address mismatch")])
def test_a_broker_whose_certificate_does_not_hold_is_refused(tmp_path: Path, certificate: str, why: str) -> None:
    bad: dict[str, Any] = {"days": -1} if certificate == "expired" else {"hosts": "DNS:elsewhere"}
    made = SecuredClients(tmp_path, {"ssl.keystore.location": tmp_path / "bad.pem"})
    made.authority.sign("bad", "/CN=broker", **bad)
    with made.broker:
        made.broker.create_topic("t")
        settings = made.settings("SSL")
        with Producer(made.address("SSL"), **settings) as producer, pytest.raises(AuthenticationError, match=why):
            producer.send("t", b"x")
        if certificate == "elsewhere":
            unchecked = made.settings("SSL", ssl_endpoint_identification_algorithm="")
            round_trip(made.address("SSL"), unchecked, b"unchecked")


def test_a_refused_client_does_not_ask_again_on_its_own(secured: SecuredClients) -> None:
    settings = secured.settings("SASL_PLAINTEXT", **PLAIN | {"sasl_password": "x"})
    producer = Producer(secured.address("SASL_PLAINTEXT"), **settings)
    with pytest.raises(AuthenticationError):
        producer.send("t", b"x")
    client = producer._machine.client
    assert client.denied is not None
    assert producer._machine.wake_s == NEVER
    producer._machine.tick(time.monotonic() + 60)
    assert client.machines == []
    producer.close()


def test_a_transactional_producer_that_is_refused_ends(secured: SecuredClients) -> None:
    settings = secured.settings("SASL_PLAINTEXT", **PLAIN | {"sasl_password": "x"})
    with (
        Producer(secured.address("SASL_PLAINTEXT"), transactional_id="t", **settings) as producer,
        pytest.raises(AuthenticationError, match="wrong name or password"),
    ):
        producer.init_transactions(30)


NO_TLS_THERE = "connection closed in the TLS handshake; does that port speak TLS"
TLS_WANTED = "before its first answer; does that listener require TLS"
LOGIN_WANTED = "at our first request; does that listener require a login"


@pytest.mark.parametrize("face", FACES, ids=lambda face: face.name)
@pytest.mark.parametrize(
    ("listener", "protocol", "why"),
    [
        ("PLAINTEXT", "SSL", NO_TLS_THERE),
        ("SASL_PLAINTEXT", "SASL_SSL", NO_TLS_THERE),
        ("SSL", "PLAINTEXT", TLS_WANTED),
        ("SASL_SSL", "SASL_PLAINTEXT", TLS_WANTED),
        ("SASL_PLAINTEXT", "PLAINTEXT", LOGIN_WANTED),
        ("SASL_SSL", "SSL", LOGIN_WANTED),
    ],
)
def test_a_listener_that_hangs_up_without_a_word_is_tried_again_and_the_likely_cause_is_named_at_once(
    secured: SecuredClients, listener: str, protocol: str, why: str, face: Face, caplog: pytest.LogCaptureFixture
) -> None:
    login = PLAIN if "SASL" in protocol else {}
    settings = secured.settings(protocol, **login)
    with face.consumer(secured.address(listener), group="g", topics=["t"], **settings) as consumer:
        while not (said := [record.getMessage() for record in caplog.records if record.name == "ixion.clients"]):
            assert consumer.poll(0.05) == []
    assert why in said[0]
    with (
        face.producer(secured.address(listener), max_block_ms=500, **settings) as producer,
        pytest.raises(TimedOutError, match=why),
    ):
        producer.send("t", b"x")


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
@pytest.mark.parametrize("own", ["", "foreign.pem"])
def test_a_broker_that_refuses_our_certificate_says_so(secured: SecuredClients, own: str, version: str) -> None:
    context = ssl.create_default_context(cafile=str(secured.authority.certificate))
    context.minimum_version = context.maximum_version = VERSIONS[version]
    if own:
        context.load_cert_chain(secured.authority.certificate.parent / own)
    with (
        Producer(secured.address("MUTUAL"), security_protocol="SSL", ssl_context=context) as producer,
        pytest.raises(AuthenticationError, match="the broker refuses our certificate, or requires one"),
    ):
        producer.send("t", b"x")


class TlsServer:
    """Shakes hands with one client at a time and sends its alert, if it has one; or says something else."""

    def __init__(self, context: ssl.SSLContext | None) -> None:
        self._context = context
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:{1}".format(*self._socket.getsockname())
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                found, _ = self._socket.accept()
            except OSError:
                return
            with found:
                if self._context is None:
                    found.recv(1024)
                    found.sendall(b"220 mail.example.org ESMTP\r\n")
                    continue
                try:
                    self._context.wrap_socket(found, server_side=True).close()
                except OSError:
                    pass

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_an_alert_about_our_certificate_is_an_authentication_failure(
    secured: SecuredClients, version: ssl.TLSVersion
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = context.maximum_version = version
    context.load_cert_chain(secured.pem)
    context.load_verify_locations(secured.authority.certificate)
    context.verify_mode = ssl.CERT_REQUIRED
    server = TlsServer(context)
    with (
        Producer(server.address, **secured.settings("SSL")) as producer,
        pytest.raises(AuthenticationError, match="refuses our certificate, or requires one"),
    ):
        producer.send("t", b"x")
    server.close()


def test_a_server_that_speaks_no_tls_is_named_as_such(secured: SecuredClients) -> None:
    server = TlsServer(None)
    with (
        Producer(server.address, **secured.settings("SSL")) as producer,
        pytest.raises(AuthenticationError, match="that port does not speak TLS"),
    ):
        producer.send("t", b"x")
    server.close()


TLS = {"security_protocol": "SSL"}
LOGIN = PLAIN | {"security_protocol": "SASL_SSL"}
CONTEXT = ssl.create_default_context()
WRONG: dict[str, tuple[type[Exception], dict[str, Any], str]] = {
    "protocol": (ValueError, {"security_protocol": "TLS"}, "security_protocol is 'TLS'; allowed are PLAINTEXT, SSL"),
    "mechanism": (ValueError, LOGIN | {"sasl_mechanism": "GSSAPI"}, "sasl_mechanism"),
    "no user": (ValueError, {"security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN"}, "sasl_username is missing"),
    "surplus login": (ValueError, PLAIN, "sasl_mechanism needs security_protocol SASL_PLAINTEXT or SASL_SSL"),
    "surplus TLS": (
        ValueError,
        {"ssl_truststore_location": "x"},
        "ssl_truststore_location needs security_protocol SSL",
    ),
    "no file": (ValueError, TLS | {"ssl_truststore_location": "/none"}, "cannot be read: No such"),
    "no PEM": (ValueError, TLS | {"ssl_truststore_location": __file__}, "no PEM certificates"),
    "no key": (ValueError, TLS | {"ssl_keystore_location": __file__}, "no PEM file with a private"),
    "half": (ValueError, TLS | {"ssl_keystore_key": "x"}, "certificate_chain is missing"),
    "number": (TypeError, LOGIN | {"sasl_password": 4711}, "sasl_password must be text"),
    "algorithm": (
        ValueError,
        TLS | {"ssl_endpoint_identification_algorithm": "http"},
        "allowed are 'https' and ''",
    ),
    "context": (ValueError, TLS | {"ssl_context": CONTEXT, "ssl_key_password": "x"}, "exclude each other"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_setting_is_named_when_the_client_is_made(case: str) -> None:
    kind, given, why = WRONG[case]
    with pytest.raises(kind, match=why) as caught:
        Producer("127.0.0.1:9092", **given)
    assert "4711" not in str(caught.value)
    with pytest.raises(kind, match=why):
        Consumer("127.0.0.1:9092", **given)


def test_the_names_of_other_clients_lead_to_ours() -> None:
    with pytest.raises(TypeError, match="unknown setting 'ssl_cafile'; here it is ssl_truststore_location"):
        read_producer_settings({"ssl_cafile": "ca.pem"})


def test_no_secret_is_in_the_text_of_settings() -> None:
    settings = read_producer_settings(PLAIN | {"security_protocol": "SASL_PLAINTEXT"})
    assert "a-secret" not in repr(settings) + repr(settings.client.security.credentials)
    assert "alice" in repr(settings.client.security.credentials)
    assert read_security({}).login() is None


def test_a_session_that_ends_is_renewed_on_the_same_connection(tmp_path: Path) -> None:
    made = SecuredClients(tmp_path, {"connections.max.reauth.ms": "3600000"})
    with made.broker:
        made.broker.create_topic("t")
        settings = made.settings("SASL_PLAINTEXT", **PLAIN)
        with Producer(made.address("SASL_PLAINTEXT"), linger_ms=0, **settings) as producer:
            producer.send("t", b"0").result(30)
            machines = producer._machine.client.machines
            assert all(machine.login_until_s < NEVER for machine in machines)
            for number in range(1, 20):
                for machine in machines:
                    machine.login_until_s = 0.0
                assert producer.send("t", b"%d" % number).result(30).offset == number
            assert producer._machine.client.machines == machines
            assert any(machine.login_until_s > 0 for machine in machines)
