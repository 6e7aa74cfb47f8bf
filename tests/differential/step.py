"""One request of a history, in a form that can be sent to both brokers."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.notation import Struct
from ixion.language.protocol.registry import ApiKey
from tests.differential.side import Side

# A leader or coordinator that is not ready yet, or a transaction whose markers are not written yet.
TRANSIENT: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.CONCURRENT_TRANSACTIONS,
    }
)
TRIES: Final = 100
PAUSE_S: Final = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    key: ApiKey
    version: int
    make: Callable[[Side], Struct]  # the request, with the ids that this broker has drawn
    after: Callable[[Side, Any], None] = lambda _side, _answer: None  # keeps drawn ids, waits for effects

    def send(self, side: Side) -> Any:
        """The answer, once it is no longer one on which every client tries again."""
        for _ in range(TRIES):
            answer = side.ask(self.key, self.version, self.make(side))
            if not codes_in(answer) & TRANSIENT:
                break
            time.sleep(PAUSE_S)
        self.after(side, answer)
        return answer


def codes_in(value: Any) -> set[int]:
    if isinstance(value, Struct):
        found: set[int] = set()
        for column in type(value).columns:
            each = getattr(value, column.name)
            found |= {each} if column.name == "error_code" else codes_in(each)
        return found
    if isinstance(value, tuple):
        return {code for each in value for code in codes_in(each)}
    return set()
