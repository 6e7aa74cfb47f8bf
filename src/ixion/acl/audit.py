"""The audit log: one line per refusal, at most BURST at once and RATE per second; the rest is counted.

    User:bob from 10.1.2.3 was refused Write on Topic:payments: no rule allows it

The logger is `ixion.audit`. At DEBUG it also gets a line when a right is granted; decisions are cached, so later uses
of the same right log nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from ixion.acl.names import Operation, ResourceKind

logger = logging.getLogger("ixion.audit")

BURST: Final = 100
RATE: Final = 10  # lines per second
SHOWN: Final = 200  # characters of a name: a client may send 32,767 of them


class Audit:
    def __init__(self, monotonic_ms: Callable[[], int]) -> None:
        self._monotonic_ms = monotonic_ms
        self._room = BURST * 1_000  # thousandths of lines
        self._at_ms = monotonic_ms()
        self._left_out = 0
        self.refused: dict[tuple[int, int], int] = {}  # number of refusals, by operation and kind of resource

    def note_refused(self, principal: str, host: str, operation: int, kind: int, name: str, why: str) -> None:
        key = (operation, kind)
        self.refused[key] = self.refused.get(key, 0) + 1
        now_ms = self._monotonic_ms()
        self._room = min(BURST * 1_000, self._room + (now_ms - self._at_ms) * RATE)
        self._at_ms = now_ms
        if self._room < 1_000:
            self._left_out += 1
            return
        self._room -= 1_000
        if self._left_out:
            logger.warning("%d refusals are not in this log: there were too many", self._left_out)
            self._left_out = 0
        logger.warning(
            "%s from %s was refused %s on %s:%s: %s",
            *(shown(principal), host, Operation(operation).title, ResourceKind(kind).title, shown(name), shown(why)),
        )

    def note_granted(self, principal: str, host: str, operation: int, kind: int, name: str, why: str) -> None:
        if logger.isEnabledFor(logging.DEBUG):
            logger.debug(
                "%s from %s was granted %s on %s:%s: %s",
                *(shown(principal), host, Operation(operation).title, ResourceKind(kind).title, shown(name)),
                shown(why),
            )


def shown(name: str) -> str:
    """`name` on one line, so that a client cannot forge lines of the log."""
    text = name if name.isprintable() else repr(name)[1:-1]
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
