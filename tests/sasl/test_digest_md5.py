from __future__ import annotations

import pytest

from ixion.language.sasl.digest_md5 import DigestMd5Client
from ixion.language.sasl.exchange import SaslRefusedError

CHALLENGE = b'realm="elwood.innosoft.com",nonce="OA6MG9tEQGm2hh",qop="auth",algorithm=md5-sess,charset=utf-8'


def of_the_rfc(password: str = "secret") -> DigestMd5Client:
    return DigestMd5Client("chris", password, "imap/elwood.innosoft.com", "OA6MHXh6VqTrRk")


def test_it_agrees_with_the_example_of_rfc_2831() -> None:
    client = of_the_rfc()
    assert client.first() == b""
    answer = client.step(CHALLENGE)
    assert answer is not None
    assert b"response=d388dad90d4bbd760a152321f2143af7" in answer
    assert b'username="chris"' in answer
    assert b'digest-uri="imap/elwood.innosoft.com"' in answer
    assert client.step(b"rspauth=ea40f60335c427b5527b84dbabcdfffd") is None


def test_a_server_that_does_not_know_the_password_is_refused() -> None:
    for proof in (b"rspauth=ea40f60335c427b5527b84dbabcdfffd", b"", b'rspauth="\xc3\xa4"'):
        client = of_the_rfc("another")
        client.step(CHALLENGE)
        with pytest.raises(SaslRefusedError, match="does not know the password"):
            client.step(proof)


@pytest.mark.parametrize(
    "challenge",
    [
        b"",
        b"\xff",
        b'realm="r"',
        b'nonce="n"',
        b'nonce="n",algorithm=md5',
        b'nonce="n",algorithm=md5-sess,qop="auth-conf"',
        b'nonce="n',
        b"nonce",
    ],
)
def test_other_challenges_are_refused(challenge: bytes) -> None:
    with pytest.raises(SaslRefusedError):
        of_the_rfc().step(challenge)


def test_quotes_in_names_are_escaped_and_each_login_has_its_own_nonce() -> None:
    answers = {DigestMd5Client('a"b\\c', "p", "zookeeper/x").step(CHALLENGE) for _ in range(2)}
    assert len(answers) == 2
    assert all(answer is not None and rb'username="a\"b\\c"' in answer for answer in answers)
