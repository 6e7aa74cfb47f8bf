"""What a group has configured for its share partitions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from zlib import crc32

from ixion.broker.share.states import ARCHIVED, ARCHIVING

LONGEST_DELAY_MS: Final = 365 * 86_400_000  # a longer delay is cut to it; retention takes the record long before


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """How long a released record waits before it is delivered again.

        count   1      2      3     …
        delay   base   base * multiplier   base * multiplier²   … at most max

    Jitter takes up to that part of the delay away. It is computed from the offset, not drawn: the same release has the
    same delay in a test, in the simulator and at the next leader.
    """

    base_ms: int = 0  # 0: no backoff
    max_ms: int = 0
    multiplier: float = 1.0
    jitter: float = 0.0
    on_timeout: bool = False  # whether records whose lock has expired wait, too

    def delay_ms(self, count: int, offset: int) -> int:
        if self.base_ms <= 0:
            return 0
        try:
            delay = min(self.base_ms * self.multiplier ** max(count - 1, 0), self.max_ms)
        except OverflowError:
            delay = self.max_ms
        if self.jitter > 0:
            drawn = crc32(b"%d %d" % (offset, count)) / 0xFFFFFFFF  # 0 to 1
            delay *= 1 - self.jitter * drawn
        return min(max(int(delay), 1), LONGEST_DELAY_MS)


NO_BACKOFF: Final = Backoff()


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The settings of a group that matter to the leader; see `config.share_group_settings` for each."""

    lock_ms: int = 30_000
    delivery_limit: int = 5
    max_locks: int = 2000
    may_renew: bool = True
    committed_only: bool = False  # isolation level read_committed
    from_earliest: bool = False  # where a group begins: at the start of the log, at its end, or so far back in time
    back_ms: int | None = None
    backoff: Backoff = NO_BACKOFF
    dead_letters: str = ""  # the topic that learns of rejected and hopeless records; empty: none does
    copies: bool = False  # whether dead letters have key, value and headers of their record

    @property
    def hopeless(self) -> int:
        """The state of a record that was rejected, or has come back too often."""
        return ARCHIVING if self.dead_letters else ARCHIVED

    @property
    def throttled_from(self) -> int:
        """The number of failed deliveries from which on records are delivered in smaller and smaller pieces."""
        return max(2, (self.delivery_limit + 1) // 2)
