"""How far a reader of a log may read, and what it must know about transactions on the way.

Every reader names its bound; there is no default. A bound that was chosen by habit has lost data: a search that went to
the end of the log found a record that no other replica had, and compaction took records for the latest of their key
that were aborted later, or that no consumer could see yet.

    log_start ........ last_stable_offset ........ high_watermark ........ end_offset
                             STABLE                   COMMITTED               END
    `visible_end` may be anywhere: VISIBLE is the smaller of it and COMMITTED, VISIBLE_STABLE of it and STABLE.

| bound | its readers |
|---|---|
| END | followers, recovery, coordinators that load their state: they need what is not committed, too |
| COMMITTED | a broker that asks whether a record is there to stay |
| STABLE | a broker that needs the outcome of each transaction |
| VISIBLE | consumers at read_uncommitted, DeleteRecords, retention: committed and due (`replica.delivery_delay`) |
| VISIBLE_STABLE | consumers at read_committed, and compaction, which must not act on what they cannot see yet |

A transaction may end in any later segment, also in the active one. So the aborted transactions of a range come from
`aborted_within` only, which looks at all of them.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from ixion.broker.log.txn_index import AbortedTxn

if TYPE_CHECKING:
    from ixion.broker.log.log import Log


class Bound(IntEnum):
    END = 0
    COMMITTED = 1
    STABLE = 2
    VISIBLE = 3
    VISIBLE_STABLE = 4


def limit_of(log: Log, bound: Bound) -> int:
    """The offset at which a reader with this bound must stop."""
    if bound == Bound.END:
        return log.end_offset
    if bound == Bound.VISIBLE:
        return min(log.high_watermark, log.visible_end)
    if bound == Bound.VISIBLE_STABLE:
        return min(log.last_stable_offset, log.visible_end)
    return log.high_watermark if bound == Bound.COMMITTED else log.last_stable_offset


def aborted_within(log: Log, first: int, end: int) -> list[AbortedTxn]:
    """The aborted transactions with records in [first, end), if each transaction there is decided.

    The caller holds the log's lock.
    """
    found: list[AbortedTxn] = []
    for segment in log.segments.from_offset(first):
        if segment.txn_index.collect(first, end, found):
            break
    return found
