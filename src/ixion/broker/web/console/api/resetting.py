"""Where a group goes on reading: first what would change, then the change.

The change names, for each partition, the offset from which the preview has seen the group go on. If the group has
committed another one meanwhile, nothing is changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypedDict, TypeVar, cast

from ixion.broker.acl.numbers import DESCRIBE, TOPIC
from ixion.broker.web.console.api.records import time_of
from ixion.broker.web.console.bodies import read_body
from ixion.broker.web.console.caller import ask_broker, refusal
from ixion.broker.web.console.inside import Inside
from ixion.broker.web.request import HttpRequest
from ixion.broker.web.response import RefusedError
from ixion.clients.faults import error_code
from ixion.clients.starts import EARLIEST, LATEST, Start, between, is_number, parse_start
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k02_list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from ixion.language.protocol.messages.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from ixion.language.protocol.messages.k09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from ixion.language.protocol.messages.k10_find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ixion.language.protocol.registry import ApiKey

if TYPE_CHECKING:
    from ixion.clients.channel import Channel

LAST_BY_NAME: Final = 9  # of OffsetFetch and OffsetCommit: version 10 names topics by id only
LAST_WITH_ONE_KEY: Final = 3  # of FindCoordinator
FIRST_OF_MANY: Final = 8  # OffsetFetch has a list of groups from then on
MOST_PARTITIONS: Final = 1_000
HAS_MEMBERS: Final = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.ILLEGAL_GENERATION)

Place = tuple[str, int]
T = TypeVar("T")


class Goal(TypedDict):
    to: str  # earliest, latest, an offset, -10 (before the end), a time in UTC, -1h


class ToReset(Goal, total=False):
    topic: str  # all that the group has committed, if it is not named
    partitions: list[int]


class OffsetChange(TypedDict):
    topic: str
    partition: int
    committed: int | None  # None: nothing
    target: int


class OffsetFault(TypedDict):
    topic: str
    partition: int
    error: str


class ResetPreview(TypedDict):
    group: str
    to: str
    members: int  # None may be there when it is done
    changes: list[OffsetChange]
    same: int  # partitions that are there already
    faults: list[OffsetFault]


class ToChange(TypedDict):
    changes: list[OffsetChange]


class OffsetsChanged(TypedDict):
    group: str
    changed: int
    faults: list[OffsetFault]


async def preview(inside: Inside, request: HttpRequest) -> ResetPreview:
    group = request.at["group"]
    body = cast(ToReset, read_body(request.body, ToReset))
    start = start_of(body["to"])
    if "topic" in body:
        inside.caller.demand(DESCRIBE, TOPIC, body["topic"])
    async with ask_broker(inside) as channel:
        topic = body.get("topic")
        await find_coordinator(inside, channel, group)
        committed = await committed_of(channel, group, None)
        if topic is None:
            places = [place for place, offset in committed.items() if offset is not None]
        else:
            places = [(topic, number) for number in numbers_of(inside, topic, body.get("partitions"))]
        if not places:
            raise RefusedError(404, f"group {group[:200]!r} has committed nothing; name a topic")
        if len(places) > MOST_PARTITIONS:
            raise RefusedError(400, f"more than {MOST_PARTITIONS:,} partitions at once: name some of them")
        faults: dict[Place, str] = {}
        first = await offsets_at(channel, places, EARLIEST, faults)
        end = await offsets_at(channel, places, LATEST, faults)
        at_time = await offsets_at(channel, places, start.time_ms, faults) if start.is_time else {}
    changes = [
        OffsetChange(
            topic=name,
            partition=number,
            committed=committed.get((name, number)),
            target=between(start, first[name, number], end[name, number], at_time.get((name, number), -1)),
        )
        for name, number in places
        if (name, number) not in faults
    ]
    differing = [each for each in changes if each["committed"] != each["target"]]
    return ResetPreview(
        group=group,
        to=body["to"],
        members=members_of(inside, group),
        changes=differing,
        same=len(changes) - len(differing),
        faults=[OffsetFault(topic=name, partition=number, error=text) for (name, number), text in faults.items()],
    )


async def change(inside: Inside, request: HttpRequest) -> OffsetsChanged:
    group = request.at["group"]
    changes = cast(ToChange, read_body(request.body, ToChange))["changes"]
    if not 0 < len(changes) <= MOST_PARTITIONS:
        raise RefusedError(400, f"changes has 1 to {MOST_PARTITIONS:,} partitions")
    if len({(each["topic"], each["partition"]) for each in changes}) < len(changes):
        raise RefusedError(400, "a partition is named twice")
    async with ask_broker(inside) as channel:
        await find_coordinator(inside, channel, group)
        committed = await committed_of(channel, group, changes)
        for each in changes:
            now = committed.get((each["topic"], each["partition"]))
            if now != each["committed"]:
                raise RefusedError(
                    409,
                    f"{each['topic']}-{each['partition']} was committed at {'nothing' if now is None else now}"
                    " meanwhile: look at the changes again",
                )
        asked = OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=-1,
            member_id="",
            group_instance_id=None,
            topics=by_topic(
                changes,
                lambda name, rows: OffsetCommitRequestTopic(
                    name=name,
                    partitions=tuple(
                        OffsetCommitRequestPartition(
                            partition_index=each["partition"], committed_offset=each["target"], committed_metadata=""
                        )
                        for each in rows
                    ),
                ),
            ),
        )
        version = await channel.version(ApiKey.OFFSET_COMMIT, newest=LAST_BY_NAME)
        answer = cast(OffsetCommitResponse, await channel.ask(ApiKey.OFFSET_COMMIT, version, asked))
    codes = {(of.name, each.partition_index): each.error_code for of in answer.topics for each in of.partitions}
    refused = {place: error_code(code) for place, code in codes.items() if code}
    if len(refused) == len(codes):
        (_, code), *_ = refused.items()
        raise refusal(code, explained(code, group))
    return OffsetsChanged(
        group=group,
        changed=len(codes) - len(refused),
        faults=[
            OffsetFault(topic=name, partition=number, error=explained(code, group))
            for (name, number), code in refused.items()
        ],
    )


def explained(code: ErrorCode, group: str) -> str:
    if code in HAS_MEMBERS:
        return f"group {group!r} has members, which would overwrite the offsets: stop them first"
    if code is ErrorCode.NOT_COORDINATOR:
        return f"another broker coordinates group {group!r}: use its page"
    return code.explanation


def start_of(text: str) -> Start:
    """As in commands, but a time without a zone is UTC, as the page shows times."""
    word = text.strip().lower()
    if word in ("earliest", "beginning", "start", "latest", "end") or is_number(word.removeprefix("-")):
        start = parse_start(word[:30])
        if max(start.offset or 0, start.before_end or 0) >= 1 << 62:
            raise RefusedError(400, f"{text[:40]!r} is too large")
        return start
    time_ms = time_of(text.strip().removeprefix("@"))
    if time_ms < 0:
        raise RefusedError(400, "to is earliest, latest, an offset, -10, a time such as 2026-05-01T12:00, or -1h")
    return Start(time_ms)


def numbers_of(inside: Inside, topic: str, wanted: list[int] | None) -> list[int]:
    found = inside.image.topics.get(topic)
    count = 0 if found is None else len(found.partitions)
    numbers = list(range(count)) if wanted is None else list(dict.fromkeys(wanted))
    if found is None or not all(0 <= number < count for number in numbers):
        raise RefusedError(404, f"there is no topic {topic[:249]!r} with these partitions")
    return numbers


def members_of(inside: Inside, group: str) -> int:
    coordinator = inside.groups()
    shard = None if coordinator is None else coordinator.shards.at(coordinator.shards.partition_for(group))
    found = None if shard is None or shard.loading else shard.groups.get(group)
    return 0 if found is None else len(found.members)


async def find_coordinator(inside: Inside, channel: Channel, group: str) -> None:
    """RefusedError if another broker coordinates the group. Without any group yet, it makes their internal topic."""
    asked = FindCoordinatorRequest(key=group, key_type=0)
    version = await channel.version(ApiKey.FIND_COORDINATOR, newest=LAST_WITH_ONE_KEY)
    answer = cast(FindCoordinatorResponse, await channel.ask(ApiKey.FIND_COORDINATOR, version, asked))
    if answer.error_code:
        raise refusal(answer.error_code, answer.error_message or "")
    if answer.node_id != inside.node_id:
        raise RefusedError(409, f"broker {answer.node_id} coordinates group {group[:200]!r}: use its page")


async def committed_of(channel: Channel, group: str, some: list[OffsetChange] | None) -> dict[Place, int | None]:
    """What the group has committed, for all partitions or for some."""
    topics = None
    if some is not None:
        topics = by_topic(
            some,
            lambda name, rows: OffsetFetchRequestTopics(
                name=name, partition_indexes=tuple(each["partition"] for each in rows)
            ),
        )
    asked = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=group, topics=topics),))
    version = await channel.version(ApiKey.OFFSET_FETCH, oldest=FIRST_OF_MANY, newest=LAST_BY_NAME)
    answer = cast(OffsetFetchResponse, await channel.ask(ApiKey.OFFSET_FETCH, version, asked))
    (found,) = answer.groups
    if found.error_code:
        raise refusal(found.error_code, explained(error_code(found.error_code), group))
    committed: dict[Place, int | None] = {}
    for topic in found.topics:
        for each in topic.partitions:
            if each.error_code:
                raise refusal(each.error_code)
            committed[topic.name, each.partition_index] = each.committed_offset if each.committed_offset >= 0 else None
    return committed


async def offsets_at(channel: Channel, places: list[Place], time_ms: int, faults: dict[Place, str]) -> dict[Place, int]:
    asked = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=0,
        timeout_ms=30_000,
        topics=by_topic(
            [OffsetChange(topic=name, partition=number, committed=None, target=0) for name, number in places],
            lambda name, rows: ListOffsetsTopic(
                name=name,
                partitions=tuple(
                    ListOffsetsPartition(partition_index=each["partition"], timestamp=time_ms) for each in rows
                ),
            ),
        ),
    )
    version = await channel.version(ApiKey.LIST_OFFSETS)
    answer = cast(ListOffsetsResponse, await channel.ask(ApiKey.LIST_OFFSETS, version, asked))
    found: dict[Place, int] = {}
    for topic in answer.topics:
        for each in topic.partitions:
            if each.error_code:
                faults[topic.name, each.partition_index] = error_code(each.error_code).explanation
            found[topic.name, each.partition_index] = each.offset
    return found


def by_topic(rows: list[OffsetChange], make: Callable[[str, list[OffsetChange]], T]) -> tuple[T, ...]:
    found: dict[str, list[OffsetChange]] = {}
    for each in rows:
        found.setdefault(each["topic"], []).append(each)
    return tuple(make(name, of_topic) for name, of_topic in found.items())
