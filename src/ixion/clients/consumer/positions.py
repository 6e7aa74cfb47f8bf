"""Where partitions without a position are read from: a reset that was asked for, what the group has committed, or
where the reset policy says."""

from __future__ import annotations

from collections.abc import Mapping

from ixion.clients.cluster import Cluster
from ixion.clients.consumer.errors import NoOffsetError
from ixion.clients.group_offsets import fetch_offsets
from ixion.clients.metadata import TopicPartition
from ixion.clients.offsets import list_offsets


def find_positions(
    cluster: Cluster,
    group: str | None,
    unplaced: Mapping[TopicPartition, int | None],
    policy: int | None,
    *,
    out_of_range: set[TopicPartition],
    read_committed: bool,
) -> dict[TopicPartition, int]:
    """`unplaced` holds the resets that were asked for, `policy` is one for the rest, or None. What is committed of a
    partition that is `out_of_range` is no help."""
    found: dict[TopicPartition, int] = {}
    resets = {place: reset for place, reset in unplaced.items() if reset is not None}
    open_places = [place for place in unplaced if place not in resets]
    if group is not None and any(place not in out_of_range for place in open_places):
        stored = fetch_offsets(cluster, group)
        found = {place: stored[place] for place in open_places if place in stored and place not in out_of_range}
    missing = [place for place in open_places if place not in found]
    if missing and policy is None:
        raise NoOffsetError(", ".join(map(str, missing)))
    for place in missing:
        assert policy is not None
        resets[place] = policy
    for time_ms in sorted(set(resets.values())):
        places = [place for place, each in resets.items() if each == time_ms]
        found.update(list_offsets(cluster, places, time_ms, read_committed=read_committed))
    return found
