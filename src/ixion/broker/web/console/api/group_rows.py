"""Groups as JSON, from this broker or another one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypedDict

from ixion.broker.web.console.api.elsewhere import ranges
from ixion.broker.web.console.api.figures import Page
from ixion.broker.web.console.api.share_groups import Shares
from ixion.broker.web.console.inside import Inside

MOST_MEMBERS: Final = 500
MOST_OFFSETS: Final = 1000
MOST_ASSIGNED: Final = 100  # partitions that are listed of a member


class GroupRow(TypedDict):
    group: str
    protocol: str  # classic, consumer, share or streams
    state: str
    broker: int  # its coordinator; of groups of other brokers, what follows is on their own page only
    generation: int | None
    members: int | None
    topics: int | None  # with committed offsets; of a share group, those that it reads
    lag: int | None  # of partitions that have a replica here


class Groups(TypedDict):
    page: Page
    groups: list[GroupRow]
    silent: list[str]  # why groups of other brokers may be missing


class MemberRow(TypedDict):
    id: str
    instance_id: str | None
    client_id: str
    host: str
    assigned: list[str]
    assigned_count: int


class OffsetRow(TypedDict):
    topic: str
    partition: int
    committed: int
    end: int | None
    lag: int | None
    committed_ms: int


class GroupDetail(TypedDict):
    group: str
    broker: int  # its coordinator
    protocol: str
    state: str
    generation: int
    assignor: str
    members_count: int
    members: list[MemberRow]
    offsets_count: int
    offsets: list[OffsetRow]
    shares: Shares | None  # of a share group, instead of offsets
    lag: int
    lags: list[float]  # one a minute, the oldest first; the last is now


async def fill_in(inside: Inside, rows: Sequence[OffsetRow]) -> int:
    """The ends of partitions that have no replica here, from their leaders; returns the lag that these add."""
    by_topic: dict[str, list[OffsetRow]] = {}
    for row in rows:
        if row["end"] is None:
            by_topic.setdefault(row["topic"], []).append(row)
    total = 0
    for name, missing in by_topic.items():
        topic = inside.image.topics.get(name)
        if topic is None:
            continue
        known = [row for row in missing if row["partition"] < len(topic.partitions)]
        found = (await ranges(inside, topic, [row["partition"] for row in known])).found
        for row in known:
            part = found.get(row["partition"])
            if part is not None:
                lag = max(part.end - max(row["committed"], part.start), 0)
                row["end"], row["lag"] = part.end, lag
                total += lag
    return total
