"""Where a follower's log is cut, so that it continues its leader's. Rules without I/O.

A follower fetches with its last epoch. If the leader's log has diverged from it, the answer names the largest epoch of
the leader that is not above that one, and where it ended there. The follower cuts and fetches again:

| the follower's largest epoch not above the answer's | it cuts to                                       |
|-----------------------------------------------------|--------------------------------------------------|
| is the answer's                                     | the end of that epoch, its own or the leader's,  |
|                                                     | whichever is smaller                             |
| is a smaller one                                    | where its own smaller epoch ended, and asks again|
| is not known                                        | the end in the answer                            |

Each round ends at a smaller epoch that both may know, so rounds end. The high watermark is never the place to cut a log
that has epochs: records above it may be committed (KIP-101, KIP-279).
"""

from __future__ import annotations

from ixion.log.log import Log


def start_offset(log: Log) -> int:
    """Where a follower begins. A log without epochs is older than them: it goes back to its high watermark."""
    return log.end_offset if log.epochs.latest >= 0 else min(log.high_watermark, log.end_offset)


def cut_at(log: Log, epoch: int, end: int) -> int:
    """Where to cut a log of which the leader says that its `epoch` ended at `end`."""
    own_epoch, own_end = log.epoch_end_offset(epoch)
    if own_epoch < 0 or own_end < 0:
        return min(end, log.end_offset)
    if own_epoch == epoch:
        return min(own_end, end, log.end_offset)
    return min(own_end, log.end_offset)
