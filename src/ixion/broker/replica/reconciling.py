"""Where a follower truncates its log so that it continues the leader's. Rules without I/O.

A follower fetches with its last epoch. If the logs have diverged, the answer names the leader's largest epoch that is
not above it, and the end offset of that epoch. The follower truncates and fetches again:

| the follower's largest epoch not above the answer's | it truncates to                                  |
|-----------------------------------------------------|--------------------------------------------------|
| is the answer's                                     | the end of that epoch, its own or the leader's,  |
|                                                     | whichever is smaller                             |
| is a smaller one                                    | the end of its own epoch, and fetches again      |
| is not known                                        | the end in the answer                            |

Each round ends at a smaller epoch, so the rounds end. A log with epochs is never truncated to its high watermark,
because records above it may be committed (KIP-101, KIP-279).
"""

from __future__ import annotations

from ixion.broker.log.log import Log


def start_offset(log: Log) -> int:
    """Where a follower begins: the end of its log, or the high watermark of a log without epochs."""
    return log.end_offset if log.epochs.latest >= 0 else min(log.high_watermark, log.end_offset)


def cut_at(log: Log, epoch: int, end: int) -> int:
    """Where to truncate a log, if the leader's `epoch` ended at `end`."""
    own_epoch, own_end = log.epoch_end_offset(epoch)
    if own_epoch < 0 or own_end < 0:
        return min(end, log.end_offset)
    if own_epoch == epoch:
        return min(own_end, end, log.end_offset)
    return min(own_end, log.end_offset)
