"""The records of a topic: the newest, from an offset, from a time; with a text, with a key, or those that fit a filter.

What one look may cost is bounded: in partitions, in bytes read, in time, in records shown and in bytes of each
(`cost`). The log is read as a consumer reads it (`replica.fetch`), up to the high watermark; batches are inflated and
searched on a worker thread, a few looks at a time, and no longer than the browser waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypedDict, TypeVar

from ixion.broker.apis.k02_list_offsets import find
from ixion.broker.log.view import Bound
from ixion.broker.replica.fetch import FetchTerms, fetch
from ixion.broker.replica.results import FetchResult, FetchWish
from ixion.broker.web.console.api import elsewhere
from ixion.broker.web.console.api.cost import FILTER_LIMITS, Cost
from ixion.broker.web.console.api.figures import in_short_turns
from ixion.broker.web.console.api.record_rows import ALONE, EXPORTED, IN_LISTS, RecordRow, Sizes, row_of
from ixion.broker.web.console.api.topics import known
from ixion.broker.web.console.inside import Inside
from ixion.broker.web.request import HttpRequest
from ixion.broker.web.response import RefusedError
from ixion.clients.filter.parse import Filter, compiled
from ixion.clients.filter.tokens import FilterError
from ixion.clients.starts import ago_ms
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.records.batches import iter_complete_batches
from ixion.language.records.compression import InflateLimits
from ixion.language.records.faults import LongWorkError

if TYPE_CHECKING:
    from ixion.broker.metadata.image import TopicImage
    from ixion.broker.web.console.api.registry import Registry
    from ixion.language.records.record import Record

T = TypeVar("T")

SHOWN: Final = 50
MOST_SHOWN: Final = 500
MOST_PARTITIONS: Final = 32
READ_BYTES: Final = 1 << 20  # of a partition at a time
WINDOWS: Final = 8  # of a search for the newest records, each four times as long as the one behind it
LARGEST_READ: Final = 32 << 20  # a batch may be larger than what was asked for
LIMITS: Final = InflateLimits(max_bytes=16 << 20, free_bytes=1 << 20)  # of a batch, inflated


class Place(TypedDict):
    partition: int
    start: int  # the first offset that can be read
    end: int  # behind the last one


class Records(TypedDict):
    topic: str
    partition: int | None  # None: all
    places: list[Place]
    query: str
    key: str
    filter: str
    records: list[RecordRow]
    searched: int  # records that were looked at
    too_long: int  # of these, those that the filter could not read, because they are too long
    complete: bool  # False: the search ended at its bounds
    next_offset: int | None  # of one partition: where the next page begins
    searched_from: int | None  # of one partition, of the newest: where older records end
    silent: list[int]  # partitions whose leader does not answer


class Wanted(NamedTuple):
    topic: str
    numbers: Sequence[int]
    limit: int
    text: str  # in lower case; empty: any
    key: bytes | None  # exactly; None: any
    filter: Filter | None
    sizes: Sizes
    cost: Cost
    registry: Registry | None = None

    @property
    def all_fit(self) -> bool:
        return not self.text and self.key is None and self.filter is None

    def fits(self, record: Record, number: int) -> bool:
        if self.key is not None and record.key != self.key:
            return False
        if self.text and not has_text(record, self.text):
            return False
        return self.filter is None or self.filter.fits(record, number)


def wanted_of(
    inside: Inside, request: HttpRequest, sizes: Sizes = IN_LISTS, default: int = SHOWN, most: int = MOST_SHOWN
) -> tuple[TopicImage, Wanted, int]:
    topic = known(inside, request)
    count = len(topic.partitions)
    number = request.number("partition", -1, -1, max(count - 1, 0))
    query = request.query
    wanted = Wanted(
        topic.name,
        range(min(count, MOST_PARTITIONS)) if number < 0 else (number,),
        request.number("limit", default, 1, most),
        query.get("q", "")[:200].lower(),
        query["key"].encode() if query.get("key") else None,
        filter_of(query.get("filter", "")),
        sizes,
        Cost(),
        None if sizes is EXPORTED else inside.registry,  # a file has the bytes themselves
    )
    return topic, wanted, number


def filter_of(text: str) -> Filter | None:
    if not text.strip():
        return None
    try:
        return compiled(text, FILTER_LIMITS)
    except FilterError as error:
        raise RefusedError(400, f"the filter cannot be read: {error}") from None


async def records(inside: Inside, request: HttpRequest) -> Records:
    topic, wanted, number = wanted_of(inside, request)
    return await look(inside, request, topic, wanted, number)


async def look(inside: Inside, request: HttpRequest, topic: TopicImage, wanted: Wanted, number: int) -> Records:
    offset = request.number("offset", -1, -1, 1 << 62)
    before = request.number("before", -1, -1, 1 << 62)
    since_ms = time_of(request.query.get("since", ""))
    places, silent = await places_of(inside, topic, wanted.numbers)
    starts: dict[int, int] = {}
    for place in places:
        if since_ms >= 0:
            starts[place["partition"]] = await offset_at(inside, topic.name, place, since_ms)
        elif offset >= 0:
            starts[place["partition"]] = min(max(offset, place["start"]), place["end"])
    newest = not starts
    found: list[RecordRow] = []
    searched = 0
    complete = True
    part = NOTHING
    for place in places:
        if newest:
            part = await newest_of(inside, wanted, place, place["end"] if before < 0 else min(before, place["end"]))
        else:
            part = await forward_from(inside, wanted, place, starts[place["partition"]])
        found += part.rows
        searched += part.searched
        complete = complete and part.complete
    found.sort(key=lambda row: (-row["timestamp"], -row["offset"]) if newest else (row["timestamp"], row["offset"]))
    alone = number >= 0 and bool(places)
    return Records(
        topic=topic.name,
        partition=None if number < 0 else number,
        places=places,
        query=wanted.text,
        key=(wanted.key or b"").decode(),
        filter="" if wanted.filter is None else wanted.filter.text,
        records=found[: wanted.limit],
        searched=searched,
        too_long=0 if wanted.filter is None else wanted.filter.too_long,
        complete=complete and len(wanted.numbers) == (len(topic.partitions) if number < 0 else 1),
        next_offset=part.next_offset if alone and not newest else None,
        searched_from=part.next_offset if alone and newest else None,
        silent=silent,
    )


def time_of(text: str) -> int:
    """Milliseconds since 1970; -1 if no time is given. A time without a zone is UTC, as the page shows times."""
    text = text.strip()[:40]
    if not text:
        return -1
    if text.isascii() and text.isdigit() and len(text) < 19:
        return int(text)
    try:
        if text.startswith("-"):
            return ago_ms(f"@{text}")
        moment = datetime.fromisoformat(text)
        return max(int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000), 0)
    except (ValueError, OverflowError):
        raise RefusedError(400, f"{text!r} is no time: give one such as 2026-05-01T12:00 (UTC) or -10m") from None


async def places_of(inside: Inside, topic: TopicImage, numbers: Sequence[int]) -> tuple[list[Place], list[int]]:
    """Where the records of each partition begin and end; and the partitions whose leader does not answer."""
    places: list[Place] = []
    others: list[int] = []
    for number in numbers:
        partition = inside.replicas.partition(topic.name, number)
        if partition is None or not partition.leads:
            others.append(number)
        else:
            log = partition.log
            end = min(log.high_watermark, log.visible_end)
            places.append(Place(partition=number, start=log.log_start, end=max(end, log.log_start)))
    if not others:
        return places, []
    found = await elsewhere.ranges(inside, topic, others)
    places += [Place(partition=number, start=each.start, end=each.end) for number, each in found.found.items()]
    return sorted(places, key=lambda each: each["partition"]), found.silent


def leader_elsewhere(inside: Inside, topic: str, number: int) -> int | None:
    """The other broker that leads the partition; None: this one does, or there is no leader."""
    partition = inside.replicas.partition(topic, number)
    if partition is not None and partition.leads:
        return None
    image = inside.image.topics.get(topic)
    leader = -1 if image is None or number >= len(image.partitions) else image.partitions[number].leader
    return leader if leader >= 0 and leader != inside.node_id else None


async def offset_at(inside: Inside, topic: str, place: Place, since_ms: int) -> int:
    leader = leader_elsewhere(inside, topic, place["partition"])
    if leader is not None:
        try:
            found = await elsewhere.offsets(inside, leader, topic, [place["partition"]], since_ms)
        except KafkaError as error:
            raise RefusedError(503, error.message or error.code.explanation) from error
        at = found.get(place["partition"], -1)
        return at if at >= 0 else place["end"]
    partition = inside.replicas.partition(topic, place["partition"])
    if partition is None:
        return place["end"]
    try:
        _, offset, _ = await in_short_turns(find(partition, since_ms, Bound.VISIBLE))
    except LongWorkError:
        raise RefusedError(503, "finding that time takes too long here: use ixion consume --from") from None
    except KafkaError as error:
        raise RefusedError(503, error.message or error.code.explanation) from error
    return offset if offset >= 0 else place["end"]


class Found(NamedTuple):
    rows: list[RecordRow]
    searched: int
    complete: bool
    next_offset: int  # of a look forward: where it goes on; of one backward: where it began


NOTHING: Final = Found([], 0, True, 0)


async def newest_of(inside: Inside, wanted: Wanted, place: Place, upto: int) -> Found:
    """The last records before an offset: offsets may have gaps, so each look goes further back than the one before."""
    back = wanted.limit
    rows: list[RecordRow] = []
    searched = 0
    complete = True
    for _ in range(WINDOWS):
        if upto <= place["start"] or len(rows) >= wanted.limit:
            break
        start = max(upto - back, place["start"])
        part = await forward_from(inside, wanted._replace(limit=back), place, start, upto)
        rows = part.rows + rows
        searched += part.searched
        if not part.complete:
            complete = False
            break
        upto = start
        back *= 4
    whole = complete and (upto <= place["start"] or len(rows) >= wanted.limit)
    shown = rows[-wanted.limit :]
    return Found(shown, searched, whole, upto if len(shown) == len(rows) else shown[0]["offset"])


async def forward_from(inside: Inside, wanted: Wanted, place: Place, start: int, upto: int = -1) -> Found:
    rows: list[RecordRow] = []
    searched = 0
    offset = start
    end = place["end"] if upto < 0 else upto
    while offset < end and len(rows) < wanted.limit and not wanted.cost.is_over(len(wanted.numbers)):
        wanted.cost.reads += 1
        result = await read(inside, wanted.topic, place["partition"], offset, READ_BYTES)
        part = await decoded(inside, result, wanted, offset, end, wanted.limit - len(rows))
        rows += part.rows
        searched += part.searched
        if part.next_offset <= offset:
            break
        offset = part.next_offset
    return Found(rows, searched, offset >= end or len(rows) >= wanted.limit, offset)


async def read(inside: Inside, topic: str, number: int, offset: int, size: int, wait_ms: int = 0) -> FetchResult:
    """As a consumer's fetch, of the leader wherever it is. It is taken back if the browser goes."""
    leader = leader_elsewhere(inside, topic, number)
    if leader is not None:
        try:
            return checked(await elsewhere.read(inside, leader, topic, number, offset, size), topic)
        except KafkaError as error:
            raise RefusedError(503, f"{topic}-{number} cannot be read: {error.message or error.code}") from error
    future: asyncio.Future[FetchResult] = asyncio.get_running_loop().create_future()
    give_up: list[Any] = []

    def done(results: list[FetchResult]) -> None:
        if not future.done():
            future.set_result(results[0])

    terms = FetchTerms(replica_id=-1, max_wait_ms=wait_ms, min_bytes=1, max_bytes=size, bound=Bound.VISIBLE)
    fetch(inside.replicas, terms, [FetchWish(topic, b"", number, offset, size)], done, give_up.append)
    try:
        result = await future
    except asyncio.CancelledError:
        for each in give_up:
            each()
        raise
    return checked(result, topic)


def checked(result: FetchResult, topic: str) -> FetchResult:
    if result.code != ErrorCode.NONE and result.code != ErrorCode.OFFSET_OUT_OF_RANGE:
        raise RefusedError(503, f"{topic}-{result.wish.number} cannot be read: {result.code.explanation}")
    return result


async def on_thread(inside: Inside, work: Callable[[], T], what: str) -> T:
    async with inside.working:
        try:
            return await asyncio.to_thread(work)
        except (KafkaError, LongWorkError) as error:
            raise RefusedError(503, f"{what} cannot be shown: {error}") from error


async def decoded(inside: Inside, result: FetchResult, wanted: Wanted, start: int, end: int, limit: int) -> Found:
    what = f"{wanted.topic}-{result.wish.number} from {start}"
    try:
        return await on_thread(inside, partial(decode, result, wanted, start, end, limit), what)
    except asyncio.CancelledError:
        wanted.cost.gone = True  # the thread ends with its next records
        raise


def decode(result: FetchResult, wanted: Wanted, start: int, end: int, limit: int) -> Found:
    data = bytes_of(result)
    number = result.wish.number
    rows: list[RecordRow] = []
    searched = 0
    offset = start
    for record in each_record(data):
        if record.offset < start:
            continue
        if record.offset >= end:
            return Found(rows, searched, True, end)
        if len(rows) >= limit or not wanted.cost.step():
            return Found(rows, searched, True, offset)
        searched += 1
        offset = record.offset + 1
        if wanted.fits(record, number):
            row = row_of(number, record, wanted.sizes, wanted.registry)
            rows.append(row)
            if not wanted.cost.shows(min(row["size"], wanted.sizes.text)):
                return Found(rows, searched, True, offset)
    for batch in iter_complete_batches(data):
        offset = max(offset, batch.next_offset)  # behind markers, and what compaction removed
    return Found(rows, searched, True, offset)


def bytes_of(result: FetchResult) -> bytes:
    records = result.records
    if len(records) > LARGEST_READ:
        raise RefusedError(503, f"a batch of {len(records):,} bytes is too large to show: use ixion consume")
    return records if isinstance(records, bytes) else records.read(0, records.size)


def each_record(data: bytes) -> Iterator[Record]:
    for batch in iter_complete_batches(data):
        if not batch.is_control:
            yield from batch.records(LIMITS)


def has_text(record: Record, wanted: str) -> bool:
    """Whether the key, the value or a header has the text; upper and lower case are the same."""
    needle = wanted.encode()
    for part in (record.key, record.value):
        if part is not None and needle in part.lower():
            return True
    return any(
        wanted in name.lower() or (value is not None and needle in value.lower()) for name, value in record.headers
    )


async def record(inside: Inside, request: HttpRequest) -> RecordRow:
    """One record, whole up to a megabyte."""
    topic = known(inside, request)
    at = request.at
    digits = at["partition"] + at["offset"]
    if not (digits.isascii() and digits.isdigit() and at["partition"] and 0 < len(at["offset"]) < 19):
        raise RefusedError(404, "partition and offset are numbers")
    number, offset = int(at["partition"][:9]), int(at["offset"])
    result = await read(inside, topic.name, number, offset, 1)

    def pick() -> RecordRow | None:
        found = each_record(bytes_of(result))
        return next((row_of(number, each, ALONE, inside.registry) for each in found if each.offset == offset), None)

    found = await on_thread(inside, pick, f"{topic.name}-{number} at {offset}")
    if found is None:
        raise RefusedError(404, "there is no record at this offset")
    return found
