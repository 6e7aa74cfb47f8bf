"""The authorizer of a broker: the rules in force, and the rights of each principal under them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from ixion.broker.acl.audit import Audit
from ixion.broker.acl.rights import Memory, Rights
from ixion.broker.acl.rules import Rules
from ixion.language.model.acl_binding import same_host

MOST_PRINCIPALS: Final = 1_000  # with cached rights; a connection keeps the rights of its own principal


class Authorizer:
    def __init__(self, super_users: Iterable[str], allow_if_none: bool, monotonic_ms: Callable[[], int]) -> None:
        self.rules = Rules(super_users, allow_if_none)
        self.audit = Audit(monotonic_ms)
        self.memory = Memory()
        self._rights: dict[tuple[str, str], Rights] = {}

    def rights_of(self, principal: str, host: str) -> Rights:
        """`host`: the address of the client, without the port."""
        key = (principal, host)
        rights = self._rights.get(key)
        if rights is None:
            if len(self._rights) >= MOST_PRINCIPALS:
                self._rights.clear()
            rights = self._rights[key] = Rights(self.rules, self.audit, principal, same_host(host), self.memory)
        return rights


def parse_super_users(text: str) -> list[str]:
    """`User:alice;User:CN=bob,O=org`: separated by semicolons, because names in certificates contain commas."""
    found = [part.strip() for part in text.split(";") if part.strip()]
    for principal in found:
        check_principal(principal)
    return found


def check_principal(principal: str) -> None:
    kind, colon, _ = principal.partition(":")
    if not colon or not kind:
        raise ValueError(f"a principal is a type and a name, such as User:alice, not {principal!r}")
