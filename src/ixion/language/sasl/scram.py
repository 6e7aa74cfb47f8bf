"""SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677): each side proves that it knows the password. The password is
neither sent nor stored.

    client   n,,n=alice,r=CLIENT
    server   r=CLIENTSERVER,s=SALT,i=4096
    client   c=biws,r=CLIENTSERVER,p=PROOF
    server   v=SIGNATURE

For each user we store salt, iterations and two keys derived from the password (`ScramCredential`). To a client, an
unknown user looks like a wrong password: its salt depends only on the name and on a key that only brokers know, so that
every broker gives the same one, also after a restart; it looks like the salt of some user, with the iterations of that
user; and the exchange fails at its end.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ixion.language.sasl.exchange import Exchange, SaslRefusedError

if TYPE_CHECKING:
    import asyncio

MECHANISMS: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
LEAST_ITERATIONS: Final = 4_096
MOST_ITERATIONS: Final = 16_384
_NONCE_BYTES: Final = 18
_SALT_BYTES: Final = 16
_SECRET: Final = os.urandom(32)  # for the salts of unknown users if no user exists; one per process
_LETTERS: Final = b"0123456789abcdefghijklmnopqrstuvwxyz"  # Kafka's tools make salts of these
MAX_MESSAGE: Final = 4_096
# In the first message of a client that has a delegation token.
TOKEN_AUTH: Final = "tokenauth"  # noqa: S105


@dataclass(frozen=True, slots=True)
class ScramCredential:
    salt: bytes
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    iterations: int

    def text(self) -> str:
        """The form in which Kafka stores it in the metadata."""
        parts = {"salt": self.salt, "stored_key": self.stored_key, "server_key": self.server_key}
        return ",".join(f"{name}={encode(value)}" for name, value in parts.items()) + f",iterations={self.iterations}"


def parse_credential(text: str) -> ScramCredential:
    """ValueError if the text is not a SCRAM credential."""
    parts = dict(part.partition("=")[::2] for part in text.split(","))
    try:
        values = [base64.b64decode(parts[name], validate=True) for name in ("salt", "stored_key", "server_key")]
        return ScramCredential(values[0], values[1], values[2], int(parts["iterations"]))
    except (KeyError, binascii.Error) as error:
        raise ValueError(f"not a SCRAM credential: {error}") from error


def salted_password(mechanism: str, password: str, salt: bytes, iterations: int) -> bytes:
    """Slow on purpose: some milliseconds of processor time."""
    return hashlib.pbkdf2_hmac(MECHANISMS[mechanism], password.encode(), salt, iterations)


def credential_of(mechanism: str, salted: bytes, salt: bytes, iterations: int) -> ScramCredential:
    digest = MECHANISMS[mechanism]
    stored = hashlib.new(digest, _hmac(digest, salted, b"Client Key")).digest()
    return ScramCredential(salt, stored, _hmac(digest, salted, b"Server Key"), iterations)


def new_credential(mechanism: str, password: str, iterations: int = LEAST_ITERATIONS) -> ScramCredential:
    salt = os.urandom(_SALT_BYTES)
    return credential_of(mechanism, salted_password(mechanism, password, salt, iterations), salt, iterations)


class TokenLogin(NamedTuple):
    """The login data of a delegation token."""

    owner: str
    credential: ScramCredential
    expires_ms: int


class ScramExchange(Exchange):
    """The broker's side. `find` returns the credential of a user, or None. If the client sends tokenauth=true, its name
    is the id of a delegation token: then `prepare_token` and `find_token` are used."""

    def __init__(
        self,
        mechanism: str,
        find: Callable[[str], ScramCredential | None],
        nonce: str | None = None,
        find_token: Callable[[str], TokenLogin | None] | None = None,
        prepare_token: Callable[[str], asyncio.Future[Any] | None] | None = None,
        examples: Callable[[], Sequence[ScramCredential]] = tuple,
    ) -> None:
        """`examples`: the credentials of all users, always in the same order. An unknown user resembles one of them."""
        self._digest = MECHANISMS[mechanism]
        self._find = find
        self._find_token = find_token
        self._prepare_token = prepare_token
        self._examples = examples
        self._token: TokenLogin | None = None
        self._nonce = nonce or encode(os.urandom(_NONCE_BYTES))
        self._name = ""
        self._user: str | None = None
        self._credential: ScramCredential | None = None
        self._exists = False
        self._header = b""  # header of the first message, which the second one repeats
        self._first = b""  # both first messages, for the signatures
        self._full_nonce = ""

    @property
    def user(self) -> str | None:
        return self._user

    @property
    def expires_ms(self) -> int | None:
        return None if self._token is None else self._token.expires_ms

    @property
    def by_token(self) -> bool:
        return self._token is not None

    def prepare(self, received: bytes) -> asyncio.Future[Any] | None:
        if self._prepare_token is None or self._credential is not None or len(received) > MAX_MESSAGE:
            return None
        try:
            fields = fields_of(_split_first(received)[2])
            is_token = fields.get(TOKEN_AUTH, "").lower() == "true"
            return self._prepare_token(_name(fields.get("n", ""))) if is_token else None
        except SaslRefusedError:
            return None  # `step` raises the error

    def step(self, received: bytes) -> bytes:
        if len(received) > MAX_MESSAGE:
            raise SaslRefusedError("a SCRAM message is too long")
        return self._begin(received) if self._credential is None else self._end(received)

    def _begin(self, received: bytes) -> bytes:
        flag, identity, bare = _split_first(received)
        if flag.startswith(b"p"):
            raise SaslRefusedError("channel binding is not supported")
        fields = fields_of(bare)
        if "m" in fields or not fields.get("n") or not fields.get("r"):
            raise SaslRefusedError("a SCRAM message cannot be read")
        self._name = _name(fields["n"])
        if identity and _name(identity) != self._name:
            raise SaslRefusedError("acting as another user (authzid) is not supported")
        found = self._lookup(fields)
        self._exists = found is not None
        self._credential = found or self._stranger()
        self._header = received[: len(received) - len(bare)]
        self._full_nonce = fields["r"] + self._nonce
        answer = f"r={self._full_nonce},s={encode(self._credential.salt)},i={self._credential.iterations}".encode()
        self._first = bare + b"," + answer
        return answer

    def _lookup(self, fields: dict[str, str]) -> ScramCredential | None:
        if fields.get(TOKEN_AUTH, "").lower() != "true":
            return self._find(self._name)
        self._token = None if self._find_token is None else self._find_token(self._name)
        return None if self._token is None else self._token.credential

    def _end(self, received: bytes) -> bytes:
        credential = self._credential
        assert credential is not None
        without_proof, comma, proof_text = received.rpartition(b",p=")
        fields = fields_of(without_proof)
        proof = decode(proof_text)
        if not comma or self._user is not None or decode(fields.get("c", "").encode()) != self._header:
            raise SaslRefusedError("a SCRAM message cannot be read")
        if fields.get("r") != self._full_nonce:
            raise SaslRefusedError("a SCRAM message has the nonce of another exchange")
        signed = self._first + b"," + without_proof
        signature = _hmac(self._digest, credential.stored_key, signed)
        if len(proof) != len(signature):
            raise SaslRefusedError("wrong name or password")
        client_key = bytes(left ^ right for left, right in zip(proof, signature, strict=True))
        same = hmac.compare_digest(hashlib.new(self._digest, client_key).digest(), credential.stored_key)
        if not same or not self._exists:
            raise SaslRefusedError("wrong name or password")
        self._user = self._name if self._token is None else self._token.owner
        return b"v=" + encode(_hmac(self._digest, credential.server_key, signed)).encode()

    def _stranger(self) -> ScramCredential:
        examples = self._examples()
        secret = examples[0].server_key if examples else _SECRET
        made = hmac.digest(secret, b"salt of an unknown user " + self._name.encode(), "sha512")
        if not examples:
            return ScramCredential(made[:_SALT_BYTES], os.urandom(32), os.urandom(32), LEAST_ITERATIONS)
        like = examples[int.from_bytes(made[-8:], "big") % len(examples)]
        salt = (made * (1 + len(like.salt) // len(made)))[: len(like.salt)]
        if all(byte in _LETTERS for byte in like.salt):
            salt = bytes(_LETTERS[byte % len(_LETTERS)] for byte in salt)
        return ScramCredential(salt, os.urandom(32), os.urandom(32), like.iterations)


def _split_first(received: bytes) -> tuple[bytes, str, bytes]:
    """Flag, authorization id, and the rest of the client's first message."""
    parts = received.split(b",", 2)
    if len(parts) < 3 or parts[0][:1] not in (b"n", b"y", b"p") or (parts[1] and not parts[1].startswith(b"a=")):
        raise SaslRefusedError("a SCRAM message cannot be read")
    return parts[0], _text(parts[1][2:]), parts[2]


def fields_of(message: bytes) -> dict[str, str]:
    found: dict[str, str] = {}
    for part in _text(message).split(","):
        name, equals, value = part.partition("=")
        if not equals or name in found:
            raise SaslRefusedError("a SCRAM message cannot be read")
        found[name] = value
    return found


def _text(message: bytes) -> str:
    try:
        return message.decode()
    except UnicodeDecodeError:
        raise SaslRefusedError("a SCRAM message cannot be read") from None


def _name(escaped: str) -> str:
    name = escaped.replace("=2C", ",").replace("=3D", "=")
    if escaped.count("=") != escaped.count("=2C") + escaped.count("=3D"):
        raise SaslRefusedError("a SCRAM message cannot be read")
    return name


def _hmac(digest: str, key: bytes, message: bytes) -> bytes:
    return hmac.digest(key, message, digest)


def encode(value: bytes) -> str:
    return base64.b64encode(value).decode()


def decode(text: bytes) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise SaslRefusedError("a SCRAM message cannot be read") from None
