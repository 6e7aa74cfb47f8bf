"""The client's side of DIGEST-MD5 (RFC 2831), for ZooKeeper; Kafka's clients and brokers do not use it.

    client  (nothing)
    server  realm="zk-sasl-md5",nonce="…",charset=utf-8,algorithm=md5-sess
    client  username="kafka",realm="zk-sasl-md5",nonce="…",nc=00000001,cnonce="…",digest-uri="zookeeper/zk-sasl-md5",
            response=…,qop=auth,charset=utf-8
    server  rspauth=…

`response` and `rspauth` each prove that their sender knows the password, which is never sent. MD5 is weak: who hears an
exchange can try out passwords, so a long random one or TLS is needed. The nonce of each login is new (nc is always 1).
"""

from __future__ import annotations

import hmac
import os
import re
from hashlib import md5
from typing import Final

from ixion.language.sasl.exchange import ClientExchange, SaslRefusedError

_FIELD: Final = re.compile(r'\s*([\w-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s",]+))\s*(?:,|$)', re.DOTALL)
_COUNT: Final = "00000001"
_QOP: Final = "auth"
_NONCE_BYTES: Final = 18


class DigestMd5Client(ClientExchange):
    def __init__(self, user: str, password: str, uri: str, cnonce: str | None = None) -> None:
        """`uri`: service and host that the server expects, such as zookeeper/zk-sasl-md5."""
        self._user = user
        self._password = password
        self._uri = uri
        self._cnonce = cnonce or os.urandom(_NONCE_BYTES).hex()
        self._expected: str | None = None  # the server's proof

    def first(self) -> bytes:
        return b""

    def step(self, received: bytes) -> bytes | None:
        fields = _fields(received)
        if self._expected is None:
            return self._prove(fields)
        if not hmac.compare_digest(fields.get("rspauth", "").encode(), self._expected.encode()):
            raise SaslRefusedError("the server does not know the password")
        return None

    def _prove(self, fields: dict[str, str]) -> bytes:
        nonce, realm = fields.get("nonce"), fields.get("realm", "")
        if not nonce or fields.get("algorithm") != "md5-sess":
            raise SaslRefusedError("the server's challenge is not one of DIGEST-MD5")
        if _QOP not in fields.get("qop", _QOP).replace(",", " ").split():
            raise SaslRefusedError("the server wants more than a login (qop)")
        start = _digest(b":".join(map(_bytes, (self._user, realm, self._password))))
        key = _digest(start + f":{nonce}:{self._cnonce}".encode()).hex()

        def proof(role: str) -> str:
            what = _digest(f"{role}:{self._uri}".encode()).hex()
            return _digest(f"{key}:{nonce}:{_COUNT}:{self._cnonce}:{_QOP}:{what}".encode()).hex()

        self._expected = proof("")
        quoted = {
            "username": self._user,
            "realm": realm,
            "nonce": nonce,
            "cnonce": self._cnonce,
            "digest-uri": self._uri,
        }
        texts = [f'{name}="{_escaped(value)}"' for name, value in quoted.items()]
        texts += [f"nc={_COUNT}", f"qop={_QOP}", f"response={proof('AUTHENTICATE')}", "charset=utf-8"]
        return ",".join(texts).encode()


def _fields(received: bytes) -> dict[str, str]:
    try:
        text = received.decode()
    except UnicodeDecodeError:
        raise SaslRefusedError("the server's message is not UTF-8") from None
    found: dict[str, str] = {}
    position = 0
    while position < len(text):
        field = _FIELD.match(text, position)
        if field is None:
            raise SaslRefusedError("the server's message is not one of DIGEST-MD5")
        name, quoted, token = field[1], field[2], field[3]
        found.setdefault(name, token if quoted is None else re.sub(r"\\(.)", r"\1", quoted))
        position = field.end()
    return found


def _digest(data: bytes) -> bytes:
    return md5(data, usedforsecurity=False).digest()


def _bytes(text: str) -> bytes:
    """As the RFC wants: in ISO 8859-1 if it can be, also with charset=utf-8."""
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        return text.encode()


def _escaped(text: str) -> str:
    return re.sub(r'(["\\])', r"\\\1", text)
