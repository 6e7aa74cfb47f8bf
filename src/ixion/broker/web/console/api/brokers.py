"""The brokers of the cluster: what the metadata has, and what each of them answers about its disks.

The others are asked by this broker; one that does not answer is shown with the reason.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from typing import Final, NamedTuple, TypedDict, cast

from ixion.broker.web.console.api.figures import in_short_turns
from ixion.broker.web.console.inside import Inside
from ixion.broker.web.request import HttpRequest
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k35_describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from ixion.language.protocol.registry import ApiKey
from ixion.timer.turns import Steps

MOST_MOVES: Final = 500
ASKED_S: Final = 5.0  # answers of the others are shown for so long


class Disk(NamedTuple):
    path: str
    total: int  # -1: it cannot be used, or the broker does not say
    usable: int
    bad: bool


class BrokerRow(TypedDict):
    id: int
    endpoints: list[str]
    rack: str | None
    is_this: bool
    is_controller: bool
    leaders: int
    replicas: int
    out_of_sync: int
    answered: bool  # when this broker asked it; this one has nobody to ask
    why: str  # it did not answer
    answer_ms: float | None
    free_bytes: int | None  # on its disks; None: not known
    disk_bytes: int | None
    bad_directories: list[str]  # that it cannot use


class Move(TypedDict):
    topic: str
    partition: int
    replicas: list[int]
    adding: list[int]
    removing: list[int]
    caught_up: list[int]  # those of `adding` that are in sync


class Brokers(TypedDict):
    brokers: list[BrokerRow]
    moves_count: int
    moves: list[Move]  # of replicas, under way; the first of them


async def brokers(inside: Inside, _request: HttpRequest) -> Brokers:
    return await inside.history.shared("brokers", lambda: look(inside), ASKED_S)


async def look(inside: Inside) -> Brokers:
    # No topic is named: their directories and disks, without a partition.
    asked = inside.others.ask_all(ApiKey.DESCRIBE_LOG_DIRS, DescribeLogDirsRequest(topics=()), oldest=1, newest=4)
    mine = asyncio.to_thread(disks_here, [(each.path, each.state.offline) for each in inside.logs.directories])
    replies, own = await asyncio.gather(asked, mine)
    found = await in_short_turns(broker_rows(inside))
    for row in found["brokers"]:
        reply = replies.get(row["id"])
        if row["is_this"]:
            add_disks(row, own)
        elif reply is not None and reply.answer is not None:
            row["answered"] = True
            row["answer_ms"] = round(reply.took_ms, 1)
            results = cast(DescribeLogDirsResponse, reply.answer).results
            add_disks(
                row,
                [
                    Disk(each.log_dir, each.total_bytes, each.usable_bytes, each.error_code != ErrorCode.NONE)
                    for each in results
                ],
            )
        elif reply is not None:
            row["why"] = reply.why
    return found


def disks_here(directories: Sequence[tuple[str, bool]]) -> list[Disk]:
    """On a worker thread: a disk that fails may take its time."""
    found: list[Disk] = []
    for path, offline in directories:
        try:
            if offline:
                raise OSError
            room = os.statvfs(path)
            found.append(Disk(path, room.f_blocks * room.f_frsize, room.f_bavail * room.f_frsize, False))
        except OSError:
            found.append(Disk(path, -1, -1, True))
    return found


def add_disks(row: BrokerRow, disks: Sequence[Disk]) -> None:
    row["bad_directories"] = [each.path for each in disks if each.bad]
    good = [each for each in disks if not each.bad and each.total >= 0]
    if good:
        # Directories on one disk have the same figures.
        row["disk_bytes"] = sum({(each.total, each.usable): each.total for each in good}.values())
        row["free_bytes"] = sum({(each.total, each.usable): each.usable for each in good}.values())


def broker_rows(inside: Inside) -> Steps[Brokers]:
    leads: dict[int, int] = {}
    has: dict[int, int] = {}
    lags: dict[int, int] = {}
    moves: list[Move] = []
    moving = 0
    for topic in list(inside.image.topics.values()):
        for partition in topic.partitions:
            leads[partition.leader] = leads.get(partition.leader, 0) + 1
            for broker in partition.replicas:
                has[broker] = has.get(broker, 0) + 1
                if broker not in partition.isr:
                    lags[broker] = lags.get(broker, 0) + 1
            if partition.adding or partition.removing:
                moving += 1
                if len(moves) < MOST_MOVES:
                    moves.append(
                        Move(
                            topic=topic.name,
                            partition=partition.number,
                            replicas=list(partition.replicas),
                            adding=list(partition.adding),
                            removing=list(partition.removing),
                            caught_up=[each for each in partition.adding if each in partition.isr],
                        )
                    )
            yield
    known = inside.image.brokers
    return Brokers(
        moves_count=moving,
        moves=moves,
        brokers=[
            BrokerRow(
                id=number,
                endpoints=[
                    f"{name}://{host}:{port}"
                    for name, (host, port) in (known[number].endpoints.items() if number in known else ())
                ],
                rack=known[number].rack if number in known else None,
                is_this=number == inside.node_id,
                is_controller=number == inside.image.controller_id,
                leaders=leads.get(number, 0),
                replicas=has.get(number, 0),
                out_of_sync=lags.get(number, 0),
                answered=number == inside.node_id,
                why="" if number in known else "it is not registered",
                answer_ms=None,
                free_bytes=None,
                disk_bytes=None,
                bad_directories=[],
            )
            for number in sorted({*known, *has})
        ],
    )
