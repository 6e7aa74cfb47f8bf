"""The audit log: one line per refusal, at most BURST at once and RATE per second; the rest is counted.

    User:bob from 10.1.2.3 was refused Write on Topic:payments: no rule allows it

The logger is `ixion.audit`. At DEBUG it also gets a line when a right is granted; decisions are cached, so later uses
of the same right log nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from ixion.broker.acl.line_limit import LineLimit, shown
from ixion.language.model.acl_names import Operation, ResourceKind

logger = logging.getLogger("ixion.audit")

BURST: Final = 100
RATE: Final = 10  # lines per second


class Audit:
    def __init__(self, monotonic_ms: Callable[[], int]) -> None:
        self._limit = LineLimit(monotonic_ms, BURST, RATE)
        self.refused: dict[tuple[int, int], int] = {}  # number of refusals, by operation and kind of resource

    def note_refused(self, principal: str, host: str, operation: int, kind: int, name: str, why: str) -> None:
        key = (operation, kind)
        self.refused[key] = self.refused.get(key, 0) + 1
        left_out = self._limit.take()
        if left_out is None:
            return
        if left_out:
            logger.warning("%d refusals are not in this log: there were too many", left_out)
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
