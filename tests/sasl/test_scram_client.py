"""The client's side of SCRAM: it gets in with the right password, and refuses a broker that cannot prove itself."""

from __future__ import annotations

import base64

import pytest

from ixion.language.sasl.exchange import SaslRefusedError
from ixion.language.sasl.scram import ScramCredential, ScramExchange, new_credential
from ixion.language.sasl.scram_client import MOST_CLIENT_ITERATIONS, ScramClient, ScramUser


def server(password: str, mechanism: str = "SCRAM-SHA-256") -> ScramExchange:
    credential = new_credential(mechanism, password)

    def find(name: str) -> ScramCredential | None:
        return credential if name == "al,i=ce" else None

    return ScramExchange(mechanism, find)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_both_sides_agree(mechanism: str) -> None:
    broker = server("secret", mechanism)
    client = ScramClient(ScramUser(mechanism, "al,i=ce", "secret"))
    proof = client.step(broker.step(client.first()))
    assert proof is not None
    assert client.step(broker.step(proof)) is None
    assert broker.user == "al,i=ce"


def test_it_agrees_with_the_example_of_rfc_7677() -> None:
    client = ScramClient(ScramUser("SCRAM-SHA-256", "user", "pencil"), "rOprNGfwEbeRWgbNEkqO")
    assert client.first() == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    proof = client.step(b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096")
    assert proof == (
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    assert client.step(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=") is None


def test_a_wrong_password_is_refused_by_the_broker() -> None:
    broker = server("secret")
    client = ScramClient(ScramUser("SCRAM-SHA-256", "al,i=ce", "wrong"))
    proof = client.step(broker.step(client.first()))
    assert proof is not None
    with pytest.raises(SaslRefusedError, match="wrong name or password"):
        broker.step(proof)


SALT = base64.b64encode(bytes(16)).decode()


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (f"r=stranger,s={SALT},i=4096", "nonce"),
        (f"r=mine,s={SALT},i=4096", "nonce"),
        (f"r=mine+,s={SALT},i={MOST_CLIENT_ITERATIONS + 1}", "iterations"),
        (f"r=mine+,s={SALT},i=1", "iterations"),
        (f"r=mine+,s={SALT},i=x", "iterations"),
        ("r=mine+,s=,i=4096", "iterations"),
        ("r=mine+,s=?,i=4096", "cannot be read"),
        ("nothing", "cannot be read"),
    ],
)
def test_a_broker_that_answers_otherwise_gets_no_proof(answer: str, why: str) -> None:
    client = ScramClient(ScramUser("SCRAM-SHA-256", "alice", "secret"), "mine")
    with pytest.raises(SaslRefusedError, match=why):
        client.step(answer.encode())


@pytest.mark.parametrize("answer", [b"v=", b"v=AAAA", b"e=other-error", b"x=y"])
def test_a_broker_that_cannot_prove_itself_is_refused(answer: bytes) -> None:
    client = ScramClient(ScramUser("SCRAM-SHA-256", "alice", "secret"), "mine")
    client.step(f"r=mine+,s={SALT},i=4096".encode())
    with pytest.raises(SaslRefusedError):
        client.step(answer)


def test_a_second_login_with_the_same_salt_derives_nothing_again(monkeypatch: pytest.MonkeyPatch) -> None:
    user = ScramUser("SCRAM-SHA-256", "alice", "secret")
    first = user.salted(b"salt", 4096)
    monkeypatch.setattr("ixion.language.sasl.scram_client.salted_password", None)
    assert user.salted(b"salt", 4096) == first
