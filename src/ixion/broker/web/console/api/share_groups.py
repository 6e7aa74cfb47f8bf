"""Share groups: members, assignments, where each share partition stands and what is in flight there.

Start offsets are asked of the share coordinator, which may be another broker. What is in flight only the leader of a
partition knows: of those that other brokers lead the page shows the start alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, TypedDict

from ixion.broker.share.states import ACKNOWLEDGED, ACQUIRED, ARCHIVED, AVAILABLE, DEFERRED, PENDING
from ixion.broker.web.console.api.figures import in_short_turns
from ixion.broker.web.console.inside import Inside
from ixion.timer.turns import Steps

if TYPE_CHECKING:
    from ixion.broker.coordinators.group.share.group import ShareGroup
    from ixion.broker.coordinators.group.share.offsets import StartOffset
    from ixion.broker.share.leader import ShareLeader

MOST_PARTITIONS: Final = 1000
PATIENCE_S: Final = 3.0  # for the share coordinator


class ShareRow(TypedDict):
    topic: str
    partition: int
    start: int | None  # everything before it is finished; None: nothing was delivered yet, or it is not known
    end: int | None  # None: another broker leads the partition
    lag: int | None  # behind the start and not finished
    available: int | None  # delivered once, and waiting for the next member; None: not delivered by this broker
    acquired: int | None
    deferred: int | None  # released with a delay


class Shares(TypedDict):
    partitions: int
    rows: list[ShareRow]
    answered: bool  # False: the share coordinator did not answer for some of them
    lag: int


def leader_of(inside: Inside, group: str, topic_id: bytes, number: int) -> ShareLeader | None:
    manager = inside.share_leaders()
    return None if manager is None else manager.known(group, topic_id, number)


def lag_here(inside: Inside, group: ShareGroup) -> Steps[int]:
    """What waits in the share partitions that this broker delivers."""
    total = 0
    for topic_id, known in list(group.known.items()):
        for number in list(known.initialized):
            leader = leader_of(inside, group.group_id, topic_id, number)
            if leader is not None and leader.core is not None:
                total += lag_of(leader) or 0
            yield
    return total


def lag_of(leader: ShareLeader) -> int | None:
    core = leader.core
    if core is None:
        return None
    tallies = core.runs.tallies
    finished = tallies[ACKNOWLEDGED] + tallies[ARCHIVED]
    return max(leader.partition.log.high_watermark - core.start - finished, 0)


async def shares(inside: Inside, group: ShareGroup) -> Shares:
    coordinator = inside.groups()
    places = [
        (topic.name, topic_id, number)
        for topic_id, known in list(group.known.items())
        if (topic := inside.image.ids.get(topic_id)) is not None and inside.caller.describes(topic.name)
        for number in sorted(known.initialized)
    ]
    places.sort()
    rows: list[ShareRow] = []
    unknown: dict[str, list[int]] = {}
    for name, topic_id, number in places[:MOST_PARTITIONS]:
        leader = leader_of(inside, group.group_id, topic_id, number)
        row = ShareRow(
            topic=name,
            partition=number,
            start=None,
            end=None,
            lag=None,
            available=None,
            acquired=None,
            deferred=None,
        )
        partition = inside.replicas.partitions.get((name, number))
        if partition is not None:
            row["end"] = partition.log.high_watermark
        if leader is not None and leader.core is not None:
            tallies = leader.core.runs.tallies
            row["start"], row["lag"] = leader.core.start, lag_of(leader)
            row["available"], row["deferred"] = tallies[AVAILABLE], tallies[DEFERRED]
            row["acquired"] = tallies[ACQUIRED] + tallies[PENDING]
        else:
            unknown.setdefault(name, []).append(number)
        rows.append(row)
        await asyncio.sleep(0)
    answered = True
    if unknown and coordinator is not None:
        offsets = coordinator.share_offsets
        describe = partial(offsets.describe, group.group_id)
        asked = [asyncio.ensure_future(starts(describe, each)) for each in unknown.items()]
        found, late = await asyncio.wait(asked, timeout=PATIENCE_S)
        for each in late:
            each.cancel()
        by_place = {
            (name, line.partition): line for each in found for name, lines in (each.result(),) for line in lines
        }
        for row in rows:
            line = by_place.get((row["topic"], row["partition"]))
            if line is not None and not line.code and line.start >= 0:
                row["start"] = line.start
                if row["end"] is not None:
                    row["lag"] = max(row["end"] - line.start - max(line.complete_count, 0), 0)
        answered = not late and not any(line.code for line in by_place.values())
    total = sum(row["lag"] or 0 for row in rows)
    return Shares(partitions=len(places), rows=rows, answered=answered, lag=total)


async def starts(describe: partial[Steps[None]], wanted: tuple[str, list[int]]) -> tuple[str, Sequence[StartOffset]]:
    name, numbers = wanted
    future: asyncio.Future[Sequence[StartOffset]] = asyncio.get_running_loop().create_future()

    def done(lines: Sequence[StartOffset]) -> None:
        if not future.done():
            future.set_result(lines)

    await in_short_turns(describe(name, numbers, done))
    return name, await future
