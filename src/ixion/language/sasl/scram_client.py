"""The client's side of SCRAM; `scram` shows the four messages.

The client verifies the server's signature, which proves that the server knows the credential; otherwise an impostor
could pose as the server. The server's nonce must start with ours. Its iterations are bounded, because they cost us
processor time.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Callable
from functools import partial
from typing import Final

from ixion.language.sasl.exchange import ClientExchange, SaslRefusedError
from ixion.language.sasl.scram import (
    LEAST_ITERATIONS,
    MECHANISMS,
    TOKEN_AUTH,
    decode,
    encode,
    fields_of,
    salted_password,
)

MOST_CLIENT_ITERATIONS: Final = 1 << 17  # some 100 ms; Kafka's brokers allow 16,384 at most
_NONCE_BYTES: Final = 18


class ScramUser:
    """Name and password, and the last salted password, which a second login with the same salt reuses."""

    def __init__(self, mechanism: str, name: str, password: str, by_token: bool = False) -> None:
        """`by_token`: the name is the id of a delegation token, the password its HMAC in base64."""
        self.mechanism = mechanism
        self.by_token = by_token
        self.name = name
        self._password = password
        self._known: tuple[bytes, int, bytes] | None = None

    def knows(self, salt: bytes, iterations: int) -> bool:
        return self._known is not None and self._known[:2] == (salt, iterations)

    def salted(self, salt: bytes, iterations: int) -> bytes:
        known = self._known
        if known is None or known[:2] != (salt, iterations):
            known = (salt, iterations, salted_password(self.mechanism, self._password, salt, iterations))
            self._known = known
        return known[2]


class ScramClient(ClientExchange):
    def __init__(self, user: ScramUser, nonce: str | None = None) -> None:
        self._user = user
        self._digest = MECHANISMS[user.mechanism]
        self._nonce = nonce or encode(os.urandom(_NONCE_BYTES))
        self._bare = f"n={user.name.replace('=', '=3D').replace(',', '=2C')},r={self._nonce}"
        if user.by_token:
            self._bare += f",{TOKEN_AUTH}=true"
        self._signature: bytes | None = None  # the expected signature of the server

    def first(self) -> bytes:
        return f"n,,{self._bare}".encode()

    def prepare(self, received: bytes) -> Callable[[], object] | None:
        if self._signature is not None:
            return None
        try:
            _, salt, iterations = self._asked(received)
        except SaslRefusedError:
            return None  # `step` raises the error
        return None if self._user.knows(salt, iterations) else partial(self._user.salted, salt, iterations)

    def step(self, received: bytes) -> bytes | None:
        if self._signature is None:
            return self._prove(received)
        self._verify(received, self._signature)
        return None

    def _asked(self, received: bytes) -> tuple[str, bytes, int]:
        """Nonce, salt and iterations from the broker's message."""
        fields = fields_of(received)
        nonce, salt = fields.get("r", ""), decode(fields.get("s", "").encode())
        if not nonce.startswith(self._nonce) or len(nonce) == len(self._nonce):
            raise SaslRefusedError("the broker's nonce does not start with ours")
        try:
            iterations = int(fields.get("i", ""))
        except ValueError:
            iterations = 0
        if not salt or not LEAST_ITERATIONS <= iterations <= MOST_CLIENT_ITERATIONS:
            text = f"{LEAST_ITERATIONS} to {MOST_CLIENT_ITERATIONS} iterations are accepted"
            raise SaslRefusedError(f"the broker asks for {iterations} iterations; {text}")
        return nonce, salt, iterations

    def _prove(self, received: bytes) -> bytes:
        nonce, salt, iterations = self._asked(received)
        salted = self._user.salted(salt, iterations)
        client_key = hmac.digest(salted, b"Client Key", self._digest)
        without_proof = f"c=biws,r={nonce}".encode()
        signed = self._bare.encode() + b"," + received + b"," + without_proof
        signature = hmac.digest(hashlib.new(self._digest, client_key).digest(), signed, self._digest)
        proof = bytes(left ^ right for left, right in zip(client_key, signature, strict=True))
        server_key = hmac.digest(salted, b"Server Key", self._digest)
        self._signature = hmac.digest(server_key, signed, self._digest)
        return without_proof + b",p=" + encode(proof).encode()

    def _verify(self, received: bytes, signature: bytes) -> None:
        fields = fields_of(received)
        if "e" in fields:
            raise SaslRefusedError(fields["e"])
        if not hmac.compare_digest(decode(fields.get("v", "").encode()), signature):
            raise SaslRefusedError("the broker does not know the password")
