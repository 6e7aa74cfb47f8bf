"""Logins at the live page. A session is found by a secret: of a cookie, or a whole Authorization header.

Secrets are not kept, only their hashes under a key of this process. A session ends when it was not used for `IDLE_S`,
`LONGEST_S` after its login, when its proof expires, and when the user's credential is changed or deleted. There are at
most `MOST`, and `MOST_OF_ONE` of a user; the one that was not used for longest makes room.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ixion.timer.clock import NS_PER_MS, Clock, system_clock

if TYPE_CHECKING:
    from ixion.broker.security.gate import Gate

IDLE_S: Final = 30 * 60
LONGEST_S: Final = 12 * 3600
MOST: Final = 1_000
MOST_OF_ONE: Final = 20
FETCH: Final = 1  # a request that only an open gate admits


class Session:
    def __init__(self, gate: Gate, is_valid: Callable[[], bool], now_ns: int) -> None:
        """`gate`: the one that the login has opened. `is_valid`: whether its proof still counts."""
        self.gate: Final = gate
        self._is_valid = is_valid
        self._until_ns = now_ns + LONGEST_S * 1000 * NS_PER_MS
        self._used_ns = now_ns

    def use(self, now_ns: int) -> bool:
        """False if it has ended."""
        idle_ns = now_ns - self._used_ns
        self._used_ns = now_ns
        return (
            now_ns < self._until_ns
            and idle_ns < IDLE_S * 1000 * NS_PER_MS
            and self.gate.admits(FETCH)
            and self._is_valid()
        )

    def end(self) -> None:
        self._until_ns = 0


class Sessions:
    def __init__(self, clock: Clock = system_clock) -> None:
        self._clock = clock
        self._key = os.urandom(32)
        self._sessions: dict[bytes, Session] = {}  # the one that was used last is at the end

    def __len__(self) -> int:
        return len(self._sessions)

    def keep(self, secret: str, gate: Gate, is_valid: Callable[[], bool]) -> Session:
        of_user = [key for key, each in self._sessions.items() if each.gate.principal == gate.principal]
        if len(of_user) >= MOST_OF_ONE:
            self._sessions.pop(of_user[0]).end()
        elif len(self._sessions) >= MOST:
            self._sessions.pop(next(iter(self._sessions))).end()
        made = self._sessions[self._hash(secret)] = Session(gate, is_valid, self._clock())
        return made

    def find(self, secret: str) -> Session | None:
        key = self._hash(secret)
        found = self._sessions.pop(key, None)
        if found is None or not self.is_open(found):
            return None
        self._sessions[key] = found
        return found

    def is_open(self, session: Session) -> bool:
        return session.use(self._clock())

    def end(self, secret: str) -> None:
        found = self._sessions.pop(self._hash(secret), None)
        if found is not None:
            found.end()

    def _hash(self, secret: str) -> bytes:
        return hashlib.blake2b(secret.encode(errors="replace"), key=self._key, digest_size=32).digest()
