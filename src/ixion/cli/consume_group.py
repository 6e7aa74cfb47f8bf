"""`ixion consume --group`: read what the group assigns to us, and commit what was printed.

Offsets are committed every few seconds, before a rebalance takes partitions away, and at the end, behind the last
record that was written: a record may be printed twice (if we are killed in between), and none is left out. Ctrl-C
commits and leaves the group, so that the others go on at once.
"""

from __future__ import annotations

import sys
import time
from typing import Final

from ixion.cli.consume_copy import Copy, Watch
from ixion.cli.output import note
from ixion.cli.places import find_ends
from ixion.clients.cluster import Cluster
from ixion.clients.group_offsets import fetch_offsets
from ixion.clients.membership import Membership
from ixion.clients.metadata import TopicPartition
from ixion.clients.offsets import EARLIEST
from ixion.clients.reader import Reader
from ixion.clients.starts import Start, resolve_start

COMMIT_S: Final = 5.0  # Kafka's default


def consume_in_group(cluster: Cluster, group: str, copy: Copy, begin: Start, exit_at_end: bool) -> None:
    cluster.topic(copy.topic)  # an unknown one is reported with the nearest name
    member = Membership(cluster, group, [copy.topic])
    try:
        while not copy.is_done:
            places = member.join()
            if sys.stderr.isatty():
                numbers = ", ".join(str(place.partition) for place in sorted(places))
                note(f"generation {member.generation} of {group}: partitions {numbers or 'none'}")
            if read_assigned(cluster, group, member, copy, places, begin, exit_at_end):
                return
    finally:
        member.leave()


def read_assigned(
    cluster: Cluster,
    group: str,
    member: Membership,
    copy: Copy,
    places: list[TopicPartition],
    begin: Start,
    exit_at_end: bool,
) -> bool:
    """Copy until the group is balanced anew (False) or there is no more to do (True)."""
    offsets = starting_offsets(cluster, group, places, begin, copy.read_committed)
    ends = find_ends(cluster, places, copy.read_committed) if exit_at_end else None
    copy.positions = dict(offsets)
    committed = dict(offsets)
    reader = Reader(cluster, offsets, read_committed=copy.read_committed) if offsets else None
    watch = None if reader is None else Watch(reader)
    next_s = time.monotonic() + COMMIT_S
    try:
        while not member.must_rejoin:
            if copy.is_done or (ends is not None and all(copy.positions[place] >= end for place, end in ends.items())):
                return True
            if reader is None or watch is None:
                time.sleep(0.1)  # more members than partitions: we are a spare
            else:
                copy.once(reader, ends)
                watch.look()
            member.heartbeat_if_due()
            if time.monotonic() >= next_s:
                commit(member, copy, committed)
                next_s = time.monotonic() + COMMIT_S
        return False
    finally:
        if reader is not None:
            reader.close()
        commit(member, copy, committed)


def starting_offsets(
    cluster: Cluster, group: str, places: list[TopicPartition], begin: Start, read_committed: bool
) -> dict[TopicPartition, int]:
    """What the group has committed; where it has not, the place that --offset names, or the first record."""
    if not places:
        return {}
    stored = fetch_offsets(cluster, group)
    fresh = [place for place in places if place not in stored]
    start = Start(EARLIEST) if begin.stored else begin
    found = resolve_start(cluster, fresh, start, read_committed=read_committed) if fresh else {}
    return {place: stored[place] if place in stored else found[place] for place in places}


def commit(member: Membership, copy: Copy, committed: dict[TopicPartition, int]) -> None:
    """Commit what has moved since the last time."""
    sys.stdout.buffer.flush()
    moved = {place: offset for place, offset in copy.positions.items() if committed.get(place) != offset}
    if moved and member.commit(moved):
        committed.update(moved)
