"""Sending records: one, several, or the lines of a file.

A record goes to the partition that is named; else to that of its key, as every Kafka client chooses it, or, without a
key, to one that this broker leads. All records of a partition are one batch of one Produce request (acks=all): it is
written as a whole or not at all.
"""

from __future__ import annotations

import json
import random
from base64 import b64decode
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypedDict, cast

from ixion.broker.web.console.api.records import on_thread
from ixion.broker.web.console.api.topics import known
from ixion.broker.web.console.bodies import read_body, weighs_too_much
from ixion.broker.web.console.caller import PRODUCE_MS, ask_broker, refusal
from ixion.broker.web.console.inside import Inside
from ixion.broker.web.request import HttpRequest
from ixion.broker.web.response import RefusedError
from ixion.clients.core.producer.partitioner import keyed_partition
from ixion.clients.faults import error_code
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k00_produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from ixion.language.protocol.registry import ApiKey
from ixion.language.records.builder import BatchBuilder

if TYPE_CHECKING:
    from ixion.broker.metadata.image import TopicImage

LAST_BY_NAME: Final = 12  # of Produce: version 13 names topics by id only
MOST_RECORDS: Final = 1_000  # of one request
MOST_LINES: Final = 10_000


class Base64(TypedDict):
    base64: str


class HeaderToSend(TypedDict):
    name: str
    value: str | Base64 | None


class ValueToSend(TypedDict):
    value: str | Base64 | None


class RecordToSend(ValueToSend, total=False):
    key: str | Base64 | None
    headers: list[HeaderToSend]
    partition: int | None
    timestamp: int | None  # milliseconds since 1970; now, if there is none


class RecordsToSend(TypedDict):
    records: list[RecordToSend]


class TextToSend(TypedDict):
    text: str
    format: Literal["lines", "jsonl"]  # each line is a value; or a record, as the export writes it


class LinesToSend(TextToSend, total=False):
    partition: int | None


class Written(TypedDict):
    partition: int
    records: int
    offset: int | None  # of the first one; None: nothing was written
    error: str


class Sent(TypedDict):
    topic: str
    written: int
    refused: int
    partitions: list[Written]


class Outgoing(NamedTuple):
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    partition: int | None
    timestamp: int | None


async def send(inside: Inside, request: HttpRequest) -> Sent:
    topic = known(inside, request)
    found = cast(RecordsToSend, read_body(request.body, RecordsToSend))["records"]
    if not 0 < len(found) <= MOST_RECORDS:
        raise RefusedError(400, f"records has 1 to {MOST_RECORDS:,} records")
    return await deliver(inside, topic, [outgoing(each, f"record {number}") for number, each in enumerate(found)])


async def send_lines(inside: Inside, request: HttpRequest) -> Sent:
    topic = known(inside, request)
    found = cast(LinesToSend, read_body(request.body, LinesToSend))
    return await deliver(inside, topic, await on_thread(inside, lambda: list(read_lines(found)), "the file"))


def read_lines(found: LinesToSend) -> Iterator[Outgoing]:
    partition = found.get("partition")
    number = 0
    for number, line in enumerate(found["text"].split("\n"), 1):
        text = line.removesuffix("\r")
        if not text:
            continue
        if number > MOST_LINES:
            raise RefusedError(413, f"at most {MOST_LINES:,} lines in one request")
        if found["format"] == "lines":
            yield Outgoing(None, in_utf8(text, f"line {number}"), [], partition, None)
        else:
            yield read_line(text, f"line {number}", partition)


def read_line(text: str, where: str, partition: int | None) -> Outgoing:
    """A line of JSON. The partition of a line with an offset is that of the record that it was, not of the new one."""
    if weighs_too_much(text.encode(errors="replace")):
        raise RefusedError(413, f"{where} has too many values")
    try:
        line = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RefusedError(400, f"{where} is not JSON: {str(error)[:100]}") from None
    if not isinstance(line, dict) or "value" not in line:
        raise RefusedError(400, f'{where} is not an object with at least a "value"')
    headers = line.get("headers") or []
    pairs = list(headers.items()) if isinstance(headers, dict) else headers
    if not isinstance(pairs, list) or not all(isinstance(pair, (list, tuple)) and len(pair) == 2 for pair in pairs):
        raise RefusedError(400, f"{where}: headers are an object, or a list of [name, value]")
    if not all(isinstance(name, str) for name, _ in pairs):
        raise RefusedError(400, f"{where}: the name of a header is text")
    wanted = line.get("partition") if partition is None and "offset" not in line else partition
    timestamp = line.get("timestamp")
    if not all(each is None or (type(each) is int and abs(each) < 1 << 63) for each in (wanted, timestamp)):
        raise RefusedError(400, f"{where}: partition and timestamp are whole numbers")
    return Outgoing(
        read_bytes(line.get("key"), where),
        read_bytes(line["value"], where),
        [(in_utf8(name, where).decode(), read_bytes(value, where)) for name, value in pairs],
        wanted,
        timestamp,
    )


def outgoing(found: RecordToSend, where: str) -> Outgoing:
    headers = found.get("headers", [])
    return Outgoing(
        read_bytes(found.get("key"), where),
        read_bytes(found["value"], where),
        [(in_utf8(each["name"], where).decode(), read_bytes(each["value"], where)) for each in headers],
        found.get("partition"),
        found.get("timestamp"),
    )


def read_bytes(found: Any, where: str) -> bytes | None:
    """Text, bytes as `{"base64": …}`, or nothing. In a file, any other JSON is its own text."""
    if found is None:
        return None
    if isinstance(found, str):
        return in_utf8(found, where)
    if isinstance(found, dict) and found.keys() == {"base64"}:
        try:
            return b64decode(found["base64"], validate=True)
        except (TypeError, ValueError):
            raise RefusedError(400, f"{where}: {str(found['base64'])[:40]!r} is not base64") from None
    return in_utf8(json.dumps(found, ensure_ascii=False, separators=(",", ":")), where)


def in_utf8(text: str, where: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise RefusedError(400, f"{where}: half of a surrogate pair has no UTF-8 form") from None


async def deliver(inside: Inside, topic: TopicImage, found: list[Outgoing]) -> Sent:
    if not found:
        raise RefusedError(400, "there is nothing to send")
    parts = assigned(inside, topic, found)
    now_ms = inside.clock_ms()
    batches = await on_thread(inside, lambda: [(number, batch(each, now_ms)) for number, each in parts.items()], "this")
    data = tuple(PartitionProduceData(index=number, records=made) for number, made in batches)
    asked = ProduceRequest(
        acks=-1, timeout_ms=PRODUCE_MS, topic_data=(TopicProduceData(name=topic.name, partition_data=data),)
    )
    async with ask_broker(inside) as channel:
        version = await channel.version(ApiKey.PRODUCE, newest=LAST_BY_NAME)
        answer = cast(ProduceResponse, await channel.ask(ApiKey.PRODUCE, version, asked))
    results = [each for of_topic in answer.responses for each in of_topic.partition_responses]
    rows = [written(topic, each, len(parts[each.index])) for each in results]
    done = sum(row["records"] for row in rows if row["offset"] is not None)
    if not done:
        raise refusal(results[0].error_code, rows[0]["error"])
    return Sent(topic=topic.name, written=done, refused=len(found) - done, partitions=rows)


def assigned(inside: Inside, topic: TopicImage, found: list[Outgoing]) -> dict[int, list[Outgoing]]:
    count = len(topic.partitions)
    here = [each.number for each in topic.partitions if each.leader == inside.node_id]
    without_key = random.choice(here) if here else 0
    parts: dict[int, list[Outgoing]] = {}
    for each in found:
        number = each.partition
        if number is None:
            number = without_key if each.key is None else keyed_partition(each.key, count)
        if not 0 <= number < count:
            raise RefusedError(400, f"{topic.name} has no partition {number}")
        parts.setdefault(number, []).append(each)
    return parts


def batch(found: list[Outgoing], now_ms: int) -> bytes:
    builder = BatchBuilder()
    for each in found:
        builder.append(each.key, each.value, each.headers, now_ms if each.timestamp is None else each.timestamp)
    return bytes(builder.build())


def written(topic: TopicImage, found: PartitionProduceResponse, records: int) -> Written:
    code = error_code(found.error_code)
    if code is ErrorCode.NONE:
        return Written(partition=found.index, records=records, offset=found.base_offset, error="")
    text = found.error_message or code.explanation
    if code is ErrorCode.NOT_LEADER_OR_FOLLOWER:
        leader = next((each.leader for each in topic.partitions if each.number == found.index), -1)
        text = f"broker {leader} leads {topic.name}-{found.index}: use its page" if leader >= 0 else text
    texts = [each.batch_index_error_message for each in found.record_errors if each.batch_index_error_message]
    if texts and texts[0] not in text:
        text = f"{text} ({texts[0]})"
    return Written(partition=found.index, records=records, offset=None, error=text[:500])
