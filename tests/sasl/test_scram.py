"""SCRAM by the example of RFC 7677, against a client of the test's own, and against what is not SCRAM."""

from __future__ import annotations

import base64
import hashlib
import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ixion.language.sasl.exchange import SaslRefusedError
from ixion.language.sasl.scram import (
    MECHANISMS,
    ScramCredential,
    ScramExchange,
    credential_of,
    new_credential,
    parse_credential,
    salted_password,
)

NAMES = ["SCRAM-SHA-256", "SCRAM-SHA-512"]


class Client:
    """The other side, written from the RFC."""

    def __init__(self, mechanism: str, name: str, password: str, nonce: str = "rOprNGfwEbeRWgbNEkqO") -> None:
        self.digest = MECHANISMS[mechanism]
        self.password = password
        self.bare = f"n={name.replace('=', '=3D').replace(',', '=2C')},r={nonce}"

    def first(self) -> bytes:
        return b"n,," + self.bare.encode()

    def final(self, challenge: bytes) -> bytes:
        fields = dict(part.split("=", 1) for part in challenge.decode().split(","))
        salted = hashlib.pbkdf2_hmac(
            self.digest, self.password.encode(), base64.b64decode(fields["s"]), int(fields["i"])
        )
        without_proof = f"c=biws,r={fields['r']}"
        message = f"{self.bare},{challenge.decode()},{without_proof}".encode()
        key = hmac.digest(salted, b"Client Key", self.digest)
        signature = hmac.digest(hashlib.new(self.digest, key).digest(), message, self.digest)
        self.expected = b"v=" + base64.b64encode(
            hmac.digest(hmac.digest(salted, b"Server Key", self.digest), message, self.digest)
        )
        proof = bytes(left ^ right for left, right in zip(key, signature, strict=True))
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()


def exchange_for(mechanism: str, **users: str) -> ScramExchange:
    known = {name: new_credential(mechanism, password) for name, password in users.items()}
    return ScramExchange(mechanism, known.get)


def test_the_example_of_the_rfc() -> None:
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    salted = salted_password("SCRAM-SHA-256", "pencil", salt, 4096)
    known = {"user": credential_of("SCRAM-SHA-256", salted, salt, 4096)}
    exchange = ScramExchange("SCRAM-SHA-256", known.get, nonce="%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0")
    challenge = exchange.step(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO")
    assert challenge == b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    proof = b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    answer = exchange.step(b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0," + proof)
    assert answer == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    assert exchange.user == "user"


@pytest.mark.parametrize("mechanism", NAMES)
@pytest.mark.parametrize("name", ["alice", "a,b=c", "用户"])
def test_the_right_password(mechanism: str, name: str) -> None:
    exchange = exchange_for(mechanism, **{name: "sécret"})
    client = Client(mechanism, name, "sécret")
    assert exchange.step(client.final(exchange.step(client.first()))) == client.expected
    assert exchange.user == name


@pytest.mark.parametrize("name", ["alice", "nobody"])
def test_a_wrong_password_and_an_unknown_user_look_the_same(name: str) -> None:
    messages = []
    for _ in range(2):
        exchange = exchange_for("SCRAM-SHA-256", alice="right")
        client = Client("SCRAM-SHA-256", name, "wrong")
        challenge = exchange.step(client.first())
        with pytest.raises(SaslRefusedError) as caught:
            exchange.step(client.final(challenge))
        messages.append(str(caught.value))
        assert exchange.user is None
    assert messages == ["wrong name or password"] * 2


def test_an_unknown_user_has_always_the_same_salt() -> None:
    salts = [exchange_for("SCRAM-SHA-256").step(b"n,,n=nobody,r=x").split(b",")[1] for _ in range(2)]
    assert salts[0] == salts[1] != exchange_for("SCRAM-SHA-256").step(b"n,,n=other,r=x").split(b",")[1]


@pytest.mark.parametrize(
    ("first", "message"),
    [
        (b"p=tls-unique,,n=alice,r=x", "channel binding"),
        (b"n,a=bob,n=alice,r=x", "another user"),
        (b"n,,m=ext,n=alice,r=x", "cannot be read"),
        (b"n,,n=alice", "cannot be read"),
        (b"n,,r=x", "cannot be read"),
        (b"n,,n=,r=x", "cannot be read"),
        (b"n,,n=a=b,r=x", "cannot be read"),
        (b"n,,n=alice,n=bob,r=x", "cannot be read"),
        (b"", "cannot be read"),
        (b"\xff\xfe,,", "cannot be read"),
        (b"n,,n=" + b"a" * 5_000, "too long"),
    ],
)
def test_first_messages_that_are_refused(first: bytes, message: str) -> None:
    exchange = exchange_for("SCRAM-SHA-256", alice="right")
    with pytest.raises(SaslRefusedError, match=message):
        exchange.step(first)
    assert exchange.user is None


def test_nonces_proofs_and_headers_of_another_exchange_are_refused() -> None:
    exchange = exchange_for("SCRAM-SHA-256", alice="right")
    client = Client("SCRAM-SHA-256", "alice", "right")
    final = client.final(exchange.step(client.first()))
    for other in (
        final.replace(b"c=biws", b"c=eSws"),
        final.replace(b",r=", b",r=x"),
        final.rpartition(b",p=")[0],
        final[:-8],
        b"",
    ):
        again = exchange_for("SCRAM-SHA-256", alice="right")
        again.step(client.first())
        with pytest.raises(SaslRefusedError):
            again.step(other)
    replayed = exchange_for("SCRAM-SHA-256", alice="right")
    replayed.step(client.first())
    with pytest.raises(SaslRefusedError, match="nonce"):
        replayed.step(final)


@given(st.lists(st.binary(max_size=200), max_size=4))
def test_garbage_is_refused_and_never_lets_anybody_in(messages: list[bytes]) -> None:
    exchange = exchange_for_garbage()
    for message in messages:
        try:
            exchange.step(message)
        except SaslRefusedError:
            break
    assert exchange.user is None


def exchange_for_garbage() -> ScramExchange:
    known = ScramCredential(b"salt", b"s" * 32, b"k" * 32, 4096)
    return ScramExchange("SCRAM-SHA-256", {"alice": known}.get)


def test_credentials_are_written_as_kafka_writes_them() -> None:
    credential = ScramCredential(b"salt", b"stored", b"server", 8192)
    text = credential.text()
    assert text == "salt=c2FsdA==,stored_key=c3RvcmVk,server_key=c2VydmVy,iterations=8192"
    assert parse_credential(text) == credential
    assert "stored" not in repr(credential)
    for broken in ("", "salt=c2FsdA==", text.replace("c2FsdA==", "%%"), text.replace("8192", "many")):
        with pytest.raises(ValueError, match=r"not a SCRAM credential|invalid literal"):
            parse_credential(broken)


def test_an_unknown_user_resembles_the_known_ones_on_every_broker() -> None:
    """Its salt has the form of theirs, and does not change with a restart."""
    by_kafka = ScramCredential(b"1a2b3c4d5e6f7g8h9i0j1k2l3m", b"s" * 32, b"k" * 32, 8192)
    by_ixion = ScramCredential(bytes(range(128, 144)), b"s" * 32, b"l" * 32, 4096)

    def asked(name: str, *examples: ScramCredential) -> tuple[bytes, int]:
        exchange = ScramExchange("SCRAM-SHA-256", lambda _: None, examples=lambda: examples)
        fields = dict(part.split(b"=", 1) for part in exchange.step(f"n,,n={name},r=x".encode()).split(b","))
        return base64.b64decode(fields[b"s"]), int(fields[b"i"])

    for number in range(20):
        salt, iterations = asked(f"nobody{number}", by_kafka)
        assert (len(salt), iterations, salt.isalnum()) == (26, 8192, True)
        assert asked(f"nobody{number}", by_kafka) == (salt, iterations)
    both = {asked(f"nobody{number}", by_kafka, by_ixion)[1] for number in range(50)}
    assert both == {4096, 8192}
    assert asked("nobody", by_kafka) != asked("nobody", by_ixion)
    assert len(asked("nobody", by_ixion)[0]) == 16
