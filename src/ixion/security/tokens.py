"""Delegation tokens as this broker knows them: how a client logs in with one, and which principal it gets.

A token is an id, and its HMAC under the secret of the cluster. A client logs in by SCRAM with the id as its name and
the HMAC, in base64, as its password (`tokenauth=true`). No broker stores a password: every broker can compute it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from ixion.model.delegation_token import Token

if TYPE_CHECKING:
    from ixion.sasl.scram import ScramCredential, TokenLogin

MOST_TOKENS: Final = 10_000


class Tokens:
    def __init__(self, secret: str | None, clock_ms: Callable[[], int]) -> None:
        """`secret`: delegation.token.secret.key; None: there are no tokens."""
        self._secret = secret.encode() if secret else None
        self._clock_ms = clock_ms
        self._tokens: dict[str, Token] = {}
        self._by_hmac: dict[bytes, str] = {}
        self._credentials: dict[tuple[str, str], ScramCredential] = {}  # by token and mechanism

    @property
    def enabled(self) -> bool:
        return self._secret is not None

    def __len__(self) -> int:
        return len(self._tokens)

    def all(self) -> Iterable[Token]:
        return list(self._tokens.values())

    def find(self, token_hmac: bytes) -> Token | None:
        token_id = self._by_hmac.get(token_hmac)
        return None if token_id is None else self._tokens[token_id]

    def get(self, token_id: str) -> Token | None:
        return self._tokens.get(token_id)

    def hmac_of(self, token_id: str) -> bytes:
        import hmac  # only a broker with tokens needs it

        assert self._secret is not None, "there are no tokens"
        return hmac.digest(self._secret, token_id.encode(), "sha512")

    def put(self, token: Token) -> None:
        self._tokens[token.token_id] = token
        self._by_hmac[self.hmac_of(token.token_id)] = token.token_id

    def remove(self, token_id: str) -> None:
        if self._tokens.pop(token_id, None) is not None:
            del self._by_hmac[self.hmac_of(token_id)]
            for key in [key for key in self._credentials if key[0] == token_id]:
                del self._credentials[key]

    def login(self, mechanism: str, token_id: str) -> TokenLogin | None:
        """What SCRAM compares with. The first login with a token costs some milliseconds, for the salted password."""
        import base64

        from ixion.sasl.scram import TokenLogin, new_credential

        token = self._tokens.get(token_id)
        if token is None or token.is_over(self._clock_ms()):
            return None
        key = (token_id, mechanism)
        credential = self._credentials.get(key)
        if credential is None:
            password = base64.b64encode(self.hmac_of(token_id)).decode()
            credential = self._credentials[key] = new_credential(mechanism, password)
        return TokenLogin(token.owner.partition(":")[2], credential, token.expires_ms)
