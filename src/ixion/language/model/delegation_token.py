"""A delegation token without its secret: its owner and its times."""

from __future__ import annotations

from typing import NamedTuple


class Token(NamedTuple):
    token_id: str
    owner: str  # principals, such as User:alice
    requester: str  # the owner, or a user that may create tokens for the owner (KIP-373)
    issued_ms: int
    max_ms: int  # it cannot be renewed beyond this time
    expires_ms: int
    renewers: tuple[str, ...] = ()

    @property
    def is_of_user(self) -> bool:
        """No login has another type of owner. Apache Kafka may have stored such a token."""
        return self.owner.startswith("User:")

    def concerns(self, principal: str) -> bool:
        """Whether the principal may renew, expire and describe the token."""
        return principal in (self.owner, self.requester, *self.renewers)

    def is_over(self, now_ms: int) -> bool:
        return self.max_ms < now_ms or self.expires_ms < now_ms

    def lives_until(self, expires_ms: int) -> Token:
        return self._replace(expires_ms=min(self.max_ms, expires_ms))
