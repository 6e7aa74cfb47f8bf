"""A delegation token, without its secret: the user that it stands for, and until when."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    token_id: str
    owner: str  # principals, such as User:alice
    requester: str  # asked for it; the owner, unless somebody else may create tokens for that user (KIP-373)
    renewers: tuple[str, ...] = ()
    issued_ms: int
    max_ms: int  # beyond which it cannot be renewed
    expires_ms: int

    def concerns(self, principal: str) -> bool:
        """Whether the principal may renew, expire and see it."""
        return principal in (self.owner, self.requester, *self.renewers)

    def is_over(self, now_ms: int) -> bool:
        return self.max_ms < now_ms or self.expires_ms < now_ms

    def lives_until(self, expires_ms: int) -> Token:
        return replace(self, expires_ms=min(self.max_ms, expires_ms))
