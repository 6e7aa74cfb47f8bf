"""Delegation tokens: how a client logs in with one, and which principal it gets.

A token has an id, and the id's HMAC under the secret of the cluster. A client logs in by SCRAM with the id as its name
and the HMAC, in base64, as its password (`tokenauth=true`). No broker stores the password; each can compute it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Final

from ixion.language.model.delegation_token import Token

if TYPE_CHECKING:
    import asyncio

    from ixion.language.sasl.scram import ScramCredential, TokenLogin

MOST_TOKENS: Final = 10_000

Run = Callable[["Callable[[], ScramCredential]"], "asyncio.Future[ScramCredential]"]


class Tokens:
    def __init__(self, secret: str | None, clock_ms: Callable[[], int], run: Run | None = None) -> None:
        """`secret`: delegation.token.secret.key; None: tokens are disabled. `run`: runs work on a worker thread."""
        self._secret = secret.encode() if secret else None
        self._clock_ms = clock_ms
        self._run = run
        self._tokens: dict[str, Token] = {}
        self._by_hmac: dict[bytes, str] = {}
        self._credentials: dict[tuple[str, str], ScramCredential] = {}  # by token and mechanism
        self._salting: dict[tuple[str, str], asyncio.Future[ScramCredential]] = {}

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

    def prepare(self, mechanism: str, token_id: str) -> asyncio.Future[ScramCredential] | None:
        """Salt the password before the first login with a token, which takes some milliseconds on a worker thread. Call
        `login` when the future is done. None: call it now. Concurrent logins with the token share the work."""
        key = (token_id, mechanism)
        if key in self._credentials or self._live(token_id) is None or self._run is None:
            return None
        salting = self._salting.get(key)
        if salting is None:
            import base64

            from ixion.language.sasl.scram import new_credential

            password = base64.b64encode(self.hmac_of(token_id)).decode()
            salting = self._salting[key] = self._run(partial(new_credential, mechanism, password))
            salting.add_done_callback(partial(self._salted, key))
        return salting

    def login(self, mechanism: str, token_id: str) -> TokenLogin | None:
        """The login data for SCRAM; None if the token is unknown, has expired, or was not prepared."""
        from ixion.language.sasl.scram import TokenLogin

        token = self._live(token_id)
        credential = self._credentials.get((token_id, mechanism))
        if token is None or credential is None or not token.is_of_user:
            return None
        return TokenLogin(token.owner.partition(":")[2], credential, token.expires_ms)

    def _live(self, token_id: str) -> Token | None:
        token = self._tokens.get(token_id)
        return None if token is None or token.is_over(self._clock_ms()) else token

    def _salted(self, key: tuple[str, str], done: asyncio.Future[ScramCredential]) -> None:
        del self._salting[key]
        if not done.cancelled() and done.exception() is None and key[0] in self._tokens:
            self._credentials[key] = done.result()
