"""SASL in every order, over real connections: what the broker answers, and when it ends the connection.

The model is the table of `ixion.broker.security.gate`. Bare messages (SaslHandshake 0) and hostile ones are below it.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.envelope import decode_response, encode_request
from ixion.language.protocol.headers import RequestHeader
from ixion.language.protocol.messages.k03_metadata import MetadataRequest
from ixion.language.protocol.messages.k17_sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from ixion.language.protocol.messages.k18_api_versions import ApiVersionsRequest
from ixion.language.protocol.messages.k36_sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from ixion.language.protocol.notation import Struct
from ixion.language.sasl.plain import plain_message
from ixion.language.sasl.scram_client import ScramClient, ScramUser
from ixion.testing import Broker
from tests.security.secured import JAAS

ENDS = "the connection ends"


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(
        {
            "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
            "security.inter.broker.protocol": "SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": JAAS,
            "connection.failed.authentication.delay.ms": "1",
            "sasl.server.max.receive.size": "65536",
        }
    ) as running:

        async def add(real: Any) -> None:
            from ixion.language.sasl.scram import new_credential

            text = new_credential("SCRAM-SHA-256", "s-secret").text()
            await real.parts.controller.configs.alter("users", "sue", lambda _: {"SCRAM-SHA-256": text})

        running.call(add)
        yield running


class Wire:
    def __init__(self, broker: Broker) -> None:
        host, _, port = broker.bootstrap.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=60)

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send(self, data: bytes) -> None:
        """One frame, or nothing if the broker has ended the connection."""
        try:
            self._socket.sendall(struct.pack(">i", len(data)) + data)
        except ConnectionError:
            pass

    def receive(self) -> bytes | None:
        """One frame; None: the connection has ended."""
        found = b""
        try:
            while len(found) < 4 or len(found) < 4 + struct.unpack(">i", found[:4])[0]:
                chunk = self._socket.recv(65536)
                if not chunk:
                    return None
                found += chunk
        except ConnectionError:
            return None
        return found[4:]

    def ask(self, key: int, version: int, body: Struct) -> Any:
        header = RequestHeader(api_key=key, api_version=version, correlation_id=7, client_id="c")
        self.send(b"".join(bytes(part) for part in encode_request(header, body)))
        received = self.receive()
        return None if received is None else decode_response(key, version, received)[1]


class Model:
    """What the table says: `state` is closed, chosen, open, again (authenticating again) or ended."""

    def __init__(self) -> None:
        self.state = "closed"
        self.mechanism = ""
        self.user = ""

    def handshake(self, mechanism: str) -> ErrorCode:
        if self.state in ("chosen", "again"):
            return self._end(ErrorCode.ILLEGAL_SASL_STATE)
        if mechanism not in ("PLAIN", "SCRAM-SHA-256"):
            return self._end(ErrorCode.UNSUPPORTED_SASL_MECHANISM)
        if self.state == "open" and mechanism != self.mechanism:
            return self._end(ErrorCode.ILLEGAL_SASL_STATE)
        self.mechanism = mechanism
        self.state = "again" if self.state == "open" else "chosen"
        return ErrorCode.NONE

    def authenticate(self, user: str) -> ErrorCode:
        if self.state == "closed":
            return self._end(ErrorCode.ILLEGAL_SASL_STATE)
        if self.state == "open":
            return ErrorCode.ILLEGAL_SASL_STATE
        known = user in ("alice", "bob") and self.mechanism == "PLAIN"
        if not known or (self.state == "again" and user != self.user):
            return self._end(ErrorCode.SASL_AUTHENTICATION_FAILED)
        self.state, self.user = "open", user
        return ErrorCode.NONE

    def metadata(self) -> str:
        if self.state != "open":
            self.state = "ended"
            return ENDS
        return "answer"

    def _end(self, code: ErrorCode) -> ErrorCode:
        self.state = "ended"
        return code


STEPS = ("versions", "metadata", "PLAIN", "SCRAM-SHA-256", "GSSAPI", "alice", "bob", "nobody")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True)
@given(st.lists(st.sampled_from(STEPS), min_size=1, max_size=8))
@example(["PLAIN", "alice", "metadata", "PLAIN", "alice", "metadata", "alice", "metadata"])
@example(["PLAIN", "alice", "PLAIN", "bob"])
@example(["PLAIN", "alice", "PLAIN", "metadata"])
@example(["PLAIN", "PLAIN"])
@example(["PLAIN", "versions", "alice", "metadata"])
@example(["alice"])
def test_any_sequence_is_answered_as_the_table_says(broker: Broker, steps: list[str]) -> None:
    model = Model()
    with Wire(broker) as wire:
        for step in steps:
            if step == "versions":
                expected: object = "answer"
                body: Struct = ApiVersionsRequest(client_software_name="c", client_software_version="1")
                found: object = "answer" if wire.ask(18, 3, body) is not None else ENDS
            elif step == "metadata":
                expected = model.metadata()
                found = "answer" if wire.ask(3, 9, MetadataRequest(topics=())) is not None else ENDS
            elif step in ("PLAIN", "SCRAM-SHA-256", "GSSAPI"):
                expected = model.handshake(step)
                answer = wire.ask(17, 1, SaslHandshakeRequest(mechanism=step))
                assert isinstance(answer, SaslHandshakeResponse)
                found = ErrorCode(answer.error_code)
            else:
                expected = model.authenticate(step)
                password = {"alice": "a-secret", "bob": "b-secret"}.get(step, "x")
                message = SaslAuthenticateRequest(auth_bytes=plain_message(step, password))
                answer = wire.ask(36, 1, message)
                assert isinstance(answer, SaslAuthenticateResponse)
                found = ErrorCode(answer.error_code)
            assert found == expected, (steps, step)
            if model.state == "ended":
                assert wire.receive() is None
                return


def test_bare_messages_after_version_0(broker: Broker) -> None:
    with Wire(broker) as wire:
        assert wire.ask(17, 0, SaslHandshakeRequest(mechanism="PLAIN")).error_code == 0
        wire.send(plain_message("alice", "a-secret"))
        assert wire.receive() == b""
        assert wire.ask(3, 9, MetadataRequest(topics=())) is not None
        again = wire.ask(17, 0, SaslHandshakeRequest(mechanism="PLAIN"))
        assert again.error_code == ErrorCode.UNSUPPORTED_VERSION
        assert wire.receive() is None
    with Wire(broker) as wire:
        client = ScramClient(ScramUser("SCRAM-SHA-256", "sue", "s-secret"))
        assert wire.ask(17, 0, SaslHandshakeRequest(mechanism="SCRAM-SHA-256")).error_code == 0
        wire.send(client.first())
        proof = client.step(wire.receive() or b"")
        assert proof is not None
        wire.send(proof)
        assert client.step(wire.receive() or b"") is None
        assert wire.ask(3, 9, MetadataRequest(topics=())) is not None


@pytest.mark.parametrize("message", [b"", b"\0alice\0wrong", b"\0" * 30_000, b"x" * 65_536])
def test_a_refused_bare_message_gets_no_answer(broker: Broker, message: bytes) -> None:
    with Wire(broker) as wire:
        assert wire.ask(17, 0, SaslHandshakeRequest(mechanism="PLAIN")).error_code == 0
        wire.send(message)
        assert wire.receive() is None


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"n,,n=sue,r=",
        b"n,a=root,n=sue,r=abc",
        b"p=tls-unique,,n=sue,r=abc",
        b"n,,m=1,n=sue,r=abc",
        b"n,,n=sue,n=root,r=abc",
        b"n,,n=s=ue,r=abc",
        b"\xff" * 100,
        b"n,,n=" + b"x" * 60_000 + b",r=a",
    ],
)
def test_hostile_scram(broker: Broker, message: bytes) -> None:
    with Wire(broker) as wire:
        wire.ask(17, 1, SaslHandshakeRequest(mechanism="SCRAM-SHA-256"))
        answer = wire.ask(36, 1, SaslAuthenticateRequest(auth_bytes=message))
        assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert wire.receive() is None


def test_an_endless_exchange_ends(broker: Broker) -> None:
    """SCRAM has two steps; no client gets a third, however it repeats the first."""
    with Wire(broker) as wire:
        wire.ask(17, 1, SaslHandshakeRequest(mechanism="SCRAM-SHA-256"))
        first = SaslAuthenticateRequest(auth_bytes=b"n,,n=sue,r=abc")
        assert wire.ask(36, 1, first).error_code == 0
        assert wire.ask(36, 1, first).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert wire.receive() is None


def test_a_recorded_login_is_worth_nothing_on_another_connection(broker: Broker) -> None:
    client = ScramClient(ScramUser("SCRAM-SHA-256", "sue", "s-secret"))
    with Wire(broker) as wire:
        wire.ask(17, 1, SaslHandshakeRequest(mechanism="SCRAM-SHA-256"))
        proof = client.step(bytes(wire.ask(36, 1, SaslAuthenticateRequest(auth_bytes=client.first())).auth_bytes))
        assert proof is not None
        assert wire.ask(36, 1, SaslAuthenticateRequest(auth_bytes=proof)).error_code == 0
    with Wire(broker) as wire:
        wire.ask(17, 1, SaslHandshakeRequest(mechanism="SCRAM-SHA-256"))
        assert wire.ask(36, 1, SaslAuthenticateRequest(auth_bytes=client.first())).error_code == 0
        answer = wire.ask(36, 1, SaslAuthenticateRequest(auth_bytes=proof))
        assert "nonce of another exchange" in answer.error_message


def test_a_message_over_the_limit_is_not_read(broker: Broker) -> None:
    with Wire(broker) as wire:
        wire.ask(17, 1, SaslHandshakeRequest(mechanism="PLAIN"))
        wire.send(b"\0" * 70_000)
        assert wire.receive() is None
