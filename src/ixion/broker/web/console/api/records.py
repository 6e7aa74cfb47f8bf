"""The records of a topic: the newest, from an offset, from a time; and those that come, as a stream.

What one look may cost is bounded: in partitions, in bytes read, in records shown and in bytes of each. The log is read
as a consumer reads it (`replica.fetch`), up to the high watermark; batches are inflated and searched on a worker
thread, `AT_ONCE` looks at a time.
"""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypedDict, TypeVar

from ixion.broker.apis.k02_list_offsets import find
from ixion.broker.log.view import Bound
from ixion.broker.replica.fetch import FetchTerms, fetch
from ixion.broker.replica.results import FetchResult, FetchWish
from ixion.broker.web.console.api.figures import in_short_turns
from ixion.broker.web.console.api.topics import known
from ixion.broker.web.console.inside import Inside
from ixion.broker.web.request import HttpRequest
from ixion.broker.web.response import Outlet, RefusedError, Response, Stream
from ixion.clients.starts import ago_ms
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.records.batches import iter_complete_batches
from ixion.language.records.compression import InflateLimits
from ixion.language.records.faults import LongWorkError

if TYPE_CHECKING:
    from ixion.broker.metadata.image import TopicImage
    from ixion.language.records.record import Record

T = TypeVar("T")

SHOWN: Final = 50
MOST_SHOWN: Final = 500
MOST_PARTITIONS: Final = 32
READ_BYTES: Final = 1 << 20  # of a partition at a time
MOST_READS: Final = 8  # of a partition, to find records that match
MOST_READS_IN_ALL: Final = 40
TEXT_BYTES: Final = 2_000  # shown of a key, value or header in a list
WHOLE_BYTES: Final = 1 << 20  # of a single record
MOST_HEADERS: Final = 20
HEADER_BYTES: Final = 300  # shown of a header in a list
WHOLE_HEADER_BYTES: Final = 64 << 10
LARGEST_READ: Final = 32 << 20  # a batch may be larger than what was asked for
LIMITS: Final = InflateLimits(max_bytes=16 << 20, free_bytes=1 << 20)  # of a batch, inflated
TAIL_WAIT_MS: Final = 15_000
TAIL_PAUSE_S: Final = 0.25
TAIL_BYTES: Final = 256 << 10
TAIL_RECORDS: Final = 100  # of one event; what is left out is counted


class Text(TypedDict):
    kind: str  # json, text, bytes (as base64) or null
    text: str
    size: int
    cut: bool


class Header(TypedDict):
    name: str
    value: Text


class RecordRow(TypedDict):
    partition: int
    offset: int
    timestamp: int
    key: Text
    value: Text
    headers: list[Header]
    size: int


class Place(TypedDict):
    partition: int
    start: int  # the first offset that can be read
    end: int  # behind the last one


class Records(TypedDict):
    topic: str
    partition: int | None  # None: all
    places: list[Place]
    query: str
    records: list[RecordRow]
    searched: int  # records that were looked at
    complete: bool  # False: the search ended at its bounds
    next_offset: int | None  # of one partition: where the next page begins
    not_here: list[int]  # partitions that other brokers lead


class Wanted(NamedTuple):
    topic: str
    numbers: Sequence[int]
    limit: int
    text: str  # in lower case; empty: all
    reads: Counter[str]  # so far, over all partitions


def wanted_of(inside: Inside, request: HttpRequest) -> tuple[TopicImage, Wanted, int]:
    topic = known(inside, request)
    count = len(topic.partitions)
    number = request.number("partition", -1, -1, max(count - 1, 0))
    numbers = range(min(count, MOST_PARTITIONS)) if number < 0 else (number,)
    limit = request.number("limit", SHOWN, 1, MOST_SHOWN)
    return topic, Wanted(topic.name, numbers, limit, request.query.get("q", "")[:200].lower(), Counter()), number


async def records(inside: Inside, request: HttpRequest) -> Records:
    topic, wanted, number = wanted_of(inside, request)
    offset = request.number("offset", -1, -1, 1 << 62)
    since_ms = time_of(request.query.get("since", ""))
    places, not_here = places_of(inside, topic, wanted.numbers)
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
    next_offset = None
    for place in places:
        if newest:
            part = await newest_of(inside, wanted, place)
        else:
            part = await forward_from(inside, wanted, place, starts[place["partition"]])
        found += part.rows
        searched += part.searched
        complete = complete and part.complete
        next_offset = part.next_offset
    found.sort(key=lambda row: (-row["timestamp"], -row["offset"]) if newest else (row["timestamp"], row["offset"]))
    return Records(
        topic=topic.name,
        partition=None if number < 0 else number,
        places=places,
        query=wanted.text,
        records=found[: wanted.limit],
        searched=searched,
        complete=complete and len(wanted.numbers) == (len(topic.partitions) if number < 0 else 1),
        next_offset=next_offset if number >= 0 and not newest else None,
        not_here=not_here,
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


def places_of(inside: Inside, topic: TopicImage, numbers: Sequence[int]) -> tuple[list[Place], list[int]]:
    places: list[Place] = []
    not_here: list[int] = []
    for number in numbers:
        partition = inside.replicas.partition(topic.name, number)
        if partition is None or not partition.leads:
            not_here.append(number)
        else:
            log = partition.log
            end = min(log.high_watermark, log.visible_end)
            places.append(Place(partition=number, start=log.log_start, end=max(end, log.log_start)))
    return places, not_here


async def offset_at(inside: Inside, topic: str, place: Place, since_ms: int) -> int:
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
    next_offset: int


async def newest_of(inside: Inside, wanted: Wanted, place: Place) -> Found:
    """The last records: offsets may have gaps, so each look goes further back than the one before."""
    back = wanted.limit
    upto = place["end"]
    rows: list[RecordRow] = []
    searched = 0
    for _ in range(MOST_READS):
        if upto <= place["start"] or len(rows) >= wanted.limit:
            break
        start = max(upto - back, place["start"])
        part = await forward_from(inside, wanted._replace(limit=back), place, start, upto)
        rows = part.rows + rows
        searched += part.searched
        upto = start
        back *= 4
    return Found(rows[-wanted.limit :], searched, upto <= place["start"] or len(rows) >= wanted.limit, place["end"])


async def forward_from(inside: Inside, wanted: Wanted, place: Place, start: int, upto: int = -1) -> Found:
    rows: list[RecordRow] = []
    searched = 0
    offset = start
    end = place["end"] if upto < 0 else upto
    for _ in range(MOST_READS):
        if offset >= end or len(rows) >= wanted.limit:
            break
        if wanted.reads.total() >= max(MOST_READS_IN_ALL, len(wanted.numbers)):
            break
        wanted.reads["reads"] += 1
        result = await read(inside, wanted.topic, place["partition"], offset, READ_BYTES)
        part = await decoded(inside, result, wanted, offset, end, wanted.limit - len(rows))
        if part.next_offset <= offset:
            break
        rows += part.rows
        searched += part.searched
        offset = part.next_offset
    return Found(rows, searched, offset >= end or len(rows) >= wanted.limit, offset)


async def read(inside: Inside, topic: str, number: int, offset: int, size: int, wait_ms: int = 0) -> FetchResult:
    """As a consumer's fetch. It is taken back if the browser goes."""
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
    if result.code != ErrorCode.NONE and result.code != ErrorCode.OFFSET_OUT_OF_RANGE:
        raise RefusedError(503, f"{topic}-{number} cannot be read: {result.code.explanation}")
    return result


async def on_thread(inside: Inside, work: Callable[[], T], what: str) -> T:
    async with inside.working:
        try:
            return await asyncio.to_thread(work)
        except (KafkaError, LongWorkError) as error:
            raise RefusedError(503, f"{what} cannot be shown: {error}") from error


async def decoded(inside: Inside, result: FetchResult, wanted: Wanted, start: int, end: int, limit: int) -> Found:
    what = f"{wanted.topic}-{result.wish.number} from {start}"
    return await on_thread(inside, partial(decode, result, wanted, start, end, limit), what)


def decode(result: FetchResult, wanted: Wanted, start: int, end: int, limit: int) -> Found:
    data = bytes_of(result)
    rows: list[RecordRow] = []
    searched = 0
    offset = start
    for record in each_record(data):
        if record.offset < start:
            continue
        if record.offset >= end:
            return Found(rows, searched, True, end)
        if len(rows) >= limit:
            return Found(rows, searched, True, offset)
        searched += 1
        offset = record.offset + 1
        if not wanted.text or fits(record, wanted.text):
            rows.append(row_of(result.wish.number, record, TEXT_BYTES))
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


def fits(record: Record, wanted: str) -> bool:
    """Whether the key, the value or a header has the text; upper and lower case are the same."""
    needle = wanted.encode()
    for part in (record.key, record.value):
        if part is not None and needle in part.lower():
            return True
    return any(
        wanted in name.lower() or (value is not None and needle in value.lower()) for name, value in record.headers
    )


def row_of(number: int, record: Record, most: int) -> RecordRow:
    headers = record.headers
    header = HEADER_BYTES if most == TEXT_BYTES else WHOLE_HEADER_BYTES
    return RecordRow(
        partition=number,
        offset=record.offset,
        timestamp=record.timestamp,
        key=text_of(record.key, most),
        value=text_of(record.value, most),
        headers=[Header(name=name[:200], value=text_of(value, header)) for name, value in headers[:MOST_HEADERS]],
        size=max(record.key_size, 0) + max(record.value_size, 0),
    )


def text_of(data: bytes | None, most: int) -> Text:
    if data is None:
        return Text(kind="null", text="", size=0, cut=False)
    part = data[:most]
    cut = len(part) < len(data)
    try:
        text = part.decode() if not cut else part.decode(errors="strict")
    except UnicodeDecodeError as error:
        if not cut or error.start < most - 4:  # else a character was cut in two
            return Text(kind="bytes", text=b64encode(part).decode(), size=len(data), cut=cut)
        text = part[: error.start].decode()
    if any(ord(each) < 32 and each not in "\t\n\r" for each in text[:200]):
        return Text(kind="bytes", text=b64encode(part).decode(), size=len(data), cut=cut)
    return Text(kind="json" if is_json(text, cut) else "text", text=text, size=len(data), cut=cut)


def is_json(text: str, cut: bool) -> bool:
    if not text.lstrip().startswith(("{", "[")):
        return False
    if cut:
        return True  # it looks like it
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


async def record(inside: Inside, request: HttpRequest) -> RecordRow:
    """One record, whole up to a megabyte."""
    topic = known(inside, request)
    at = request.at
    if not (at["partition"].isdigit() and at["offset"].isdigit() and len(at["offset"]) < 19):
        raise RefusedError(404, "partition and offset are numbers")
    number, offset = int(at["partition"][:9]), int(at["offset"])
    result = await read(inside, topic.name, number, offset, 1)

    def pick() -> RecordRow | None:
        found = each_record(bytes_of(result))
        return next((row_of(number, each, WHOLE_BYTES) for each in found if each.offset == offset), None)

    found = await on_thread(inside, pick, f"{topic.name}-{number} at {offset}")
    if found is None:
        raise RefusedError(404, "there is no record at this offset")
    return found


async def tail(inside: Inside, request: HttpRequest) -> Stream:
    """Records as they come. The id of an event is where each partition goes on, so a browser that reconnects misses
    none."""
    topic, wanted, _ = wanted_of(inside, request)
    places, _ = places_of(inside, topic, wanted.numbers)
    offsets = {place["partition"]: place["end"] for place in places}
    for part in request.headers.get("last-event-id", request.query.get("after", ""))[:2000].split(","):
        number, _, offset = part.partition(":")
        if number.isdigit() and offset.isdigit() and len(offset) < 19 and int(number[:9]) in offsets:
            offsets[int(number[:9])] = int(offset)

    async def feed(outlet: Outlet) -> None:
        await Tail(inside, wanted, offsets, outlet).run()

    return Stream(feed)


class Tail:
    """One fetch waits for each partition; what comes is sent in one event every quarter of a second."""

    def __init__(self, inside: Inside, wanted: Wanted, offsets: dict[int, int], outlet: Outlet) -> None:
        self._inside = inside
        self._wanted = wanted
        self._offsets = offsets
        self._outlet = outlet
        self._rows: list[RecordRow] = []
        self._left_out = 0
        self._came = asyncio.Event()

    async def run(self) -> None:
        await self._outlet.send(b"retry: 2000\n\n")
        async with asyncio.TaskGroup() as group:
            for number in self._offsets:
                group.create_task(self._follow(number))
            while True:
                try:
                    async with asyncio.timeout(TAIL_WAIT_MS / 1000):
                        await self._came.wait()
                except TimeoutError:
                    await self._outlet.send(b": still here\n\n")
                    continue
                self._came.clear()
                rows, self._rows = self._rows, []
                left_out, self._left_out = self._left_out, 0
                rows.sort(key=lambda row: (row["timestamp"], row["offset"]))
                data = json.dumps({"records": rows, "left_out": left_out}, ensure_ascii=False)
                here = ",".join(f"{number}:{offset}" for number, offset in self._offsets.items())
                await self._outlet.send(f"id: {here}\nevent: records\ndata: {data}\n\n".encode())
                await asyncio.sleep(TAIL_PAUSE_S)

    async def _follow(self, number: int) -> None:
        wanted = self._wanted
        while True:
            offset = self._offsets[number]
            result = await read(self._inside, wanted.topic, number, offset, TAIL_BYTES, TAIL_WAIT_MS)
            if result.code == ErrorCode.OFFSET_OUT_OF_RANGE:
                self._offsets[number] = max(result.log_start, 0)
                await asyncio.sleep(TAIL_PAUSE_S)
                continue
            part = await decoded(self._inside, result, wanted, offset, 1 << 62, 1 << 30)
            if part.next_offset > offset:
                self._offsets[number] = part.next_offset
                room = max(TAIL_RECORDS - len(self._rows), 0)
                self._rows += part.rows[-room:] if room else []
                self._left_out += max(len(part.rows) - room, 0)
                if part.rows:
                    self._came.set()
                await asyncio.sleep(TAIL_PAUSE_S)


async def export(inside: Inside, request: HttpRequest) -> Response:
    """The records of a look as JSON Lines, in the form that `ixion produce` reads."""
    found = await records(inside, request)
    lines = [
        json.dumps(
            {
                "topic": found["topic"],
                "partition": row["partition"],
                "offset": row["offset"],
                "timestamp": row["timestamp"],
                "key": exported(row["key"]),
                "value": exported(row["value"]),
                "headers": [[each["name"], exported(each["value"])] for each in row["headers"]],
            },
            ensure_ascii=False,
        )
        for row in found["records"]
    ]
    name = f"{found['topic']}.jsonl"
    return Response(
        "".join(f"{line}\n" for line in lines).encode(),
        kind="application/x-ndjson",
        headers=(("Content-Disposition", f'attachment; filename="{name}"'),),
    )


def exported(text: Text) -> Any:
    if text["kind"] == "null":
        return None
    return {"base64": text["text"]} if text["kind"] == "bytes" else text["text"]
