"""What one look at records may still cost. The event loop starts it and may call it off; a worker thread counts."""

from __future__ import annotations

from time import sleep
from typing import Final

from ixion.broker.web.response import RefusedError
from ixion.clients.filter.values import Limits
from ixion.timer.clock import NS_PER_MS, Clock, system_clock

LOOK_MS: Final = 5_000
MOST_READS: Final = 40  # of a megabyte, over all partitions
SHOWN_BYTES: Final = 8 << 20  # of keys, values and headers of all records that are returned
EVERY: Final = 32  # records after which others get the interpreter, a millisecond at most if they are small
# JSON of this size is parsed in some 2 ms, and a regular expression takes so many steps in 15 ms at most; the
# interpreter is not given away meanwhile.
FILTER_LIMITS: Final = Limits(json_bytes=256 << 10, match_steps=4_000_000)


class GoneError(RefusedError):
    """The browser does not wait any more."""


class Cost:
    def __init__(self, clock: Clock = system_clock, look_ms: int = LOOK_MS) -> None:
        self._clock = clock
        self._until_ns = clock() + look_ms * NS_PER_MS
        self._records = 0
        self._shown = 0
        self.reads = 0
        self.gone = False  # set by the loop, read by the thread

    def is_over(self, partitions: int = 1) -> bool:
        """Whether the look must end with what it has. Each of the partitions may be read once."""
        return (
            self.reads >= max(MOST_READS, partitions) or self._shown >= SHOWN_BYTES or self._clock() >= self._until_ns
        )

    def step(self) -> bool:
        """Called for each record, on the thread. False: the time is over. GoneError if nobody waits."""
        self._records += 1
        if self._records % EVERY:
            return True
        if self.gone:
            raise GoneError(503, "the browser has gone")
        sleep(0)
        return self._clock() < self._until_ns

    def shows(self, size: int) -> bool:
        """Count a record that is returned. False: no more of them."""
        self._shown += size
        return self._shown < SHOWN_BYTES
