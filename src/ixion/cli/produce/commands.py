"""`ixion produce`: sends a record per line."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, cast

from ixion.cli.access import CLUSTER, Access
from ixion.cli.command import Argument, Command, Option, UsageError, whole
from ixion.cli.options import administer, parse_pairs, unescape
from ixion.cli.output import counted, note
from ixion.language.model.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from ixion.cli.record_json import Outgoing
    from ixion.clients.admin.runner import AdminRunner
    from ixion.clients.producer import Producer
    from ixion.clients.settings import ProducerOptions

LARGEST_RECORD: Final = 256 * 1024 * 1024
LINGER_MS: Final = 5
REQUEST_MS: Final = 30_000


def produce(
    topic: str,
    files: list[str],
    as_json: bool,
    key: str | None,
    key_separator: str | None,
    headers_separator: str | None,
    header: list[str],
    null_marker: str | None,
    partition: int | None,
    acks: str,
    compression: str,
    create: bool,
    access: Access,
) -> None:
    from ixion.cli.produce.lines import LineFormat
    from ixion.cli.record_json import parse_line
    from ixion.clients.producer import Producer

    if as_json and (key is not None or key_separator or headers_separator or null_marker is not None):
        raise UsageError("a --json line has its key and headers itself; leave out --key, separators and --null-marker")
    if key is not None and key_separator is not None:
        raise UsageError("--key is the key of every record; leave out --key-separator")
    fixed = None if key is None else key.encode(errors="surrogateescape")
    parse = LineFormat(separator(key_separator), separator(headers_separator), null_marker, fixed).parse
    always = tuple((name, value.encode()) for name, value in parse_pairs(header, "--header").items())
    settings = producer_settings(acks, compression, access)
    with administer(access) as admin:
        partitions = look_for(admin, topic, create)
    with Producer(access.bootstrap, **settings) as producer:
        try:
            count = send_all(
                producer,
                topic,
                files or ["-"],
                parse_line if as_json else parse,
                always,
                lambda record: choose(record, partition, partitions),
            )
        except KeyboardInterrupt:
            producer.flush()
            raise
    if sys.stderr.isatty():
        note(f"{count:,} record{'' if count == 1 else 's'} to {topic}")


def separator(text: str | None) -> bytes | None:
    if text == "":
        raise UsageError("a separator has at least one character")
    return None if text is None else unescape(text)


def producer_settings(acks: str, compression: str, access: Access) -> ProducerOptions:
    if acks not in ("all", "-1", "1", "0"):
        raise UsageError(f"--acks must be all, 1 or 0, not {acks!r}")
    if compression not in ("none", "gzip", "snappy", "lz4", "zstd"):
        raise UsageError(f"--compression must be none, gzip, snappy, lz4 or zstd, not {compression!r}")
    secured = cast("ProducerOptions", access.security)
    timeout_ms = access.timeout_s * 1000
    request_ms = min(max(timeout_ms - LINGER_MS, 1), REQUEST_MS)
    return {
        **secured,
        "client_id": "ixion-cli",
        "acks": acks,
        "compression": compression,
        "linger_ms": LINGER_MS,
        "max_block_ms": timeout_ms,
        "request_timeout_ms": request_ms,
        "delivery_timeout_ms": max(timeout_ms, LINGER_MS + request_ms),
        # The broker decides whether a record is too large.
        "max_request_size": LARGEST_RECORD,
        "buffer_memory": LARGEST_RECORD,
    }


def choose(record: Outgoing, given: int | None, partitions: int) -> int | None:
    """The partition to send to; None for that of the key.

    A copied record stays in its partition if the topic has one of that number. Records of one key were in one
    partition, so they go into one partition either way, in their order.
    """
    if given is not None:
        return given
    if record.is_copy and record.partition is not None and record.partition >= partitions:
        return None
    return record.partition


def look_for(admin: AdminRunner, topic: str, create: bool) -> int:
    """The number of partitions, before the first line is read. A note tells if the broker creates the topic."""
    from ixion.clients.admin.starts import find_topic
    from ixion.clients.faults import UnknownTopicError

    try:
        return len(admin.run(find_topic, topic).partitions)
    except UnknownTopicError as unknown:
        if not create:
            raise
        count = len(admin.run(find_topic, topic, create=True).partitions)
        near = f" (did you mean {unknown.near!r}?)" if unknown.near else ""
        note(f"the broker created the topic {topic!r} with {counted(count, 'partition')}{near}")
        return count


def send_all(
    producer: Producer,
    topic: str,
    files: list[str],
    parse: Callable[[bytes], Outgoing],
    always: tuple[tuple[str, bytes | None], ...],
    chosen: Callable[[Outgoing], int | None],
) -> int:
    count = 0
    for name in files:
        for number, line in enumerate(lines_of(name, producer.flush), 1):
            try:
                record = parse(line)
            except ValueError as error:
                producer.flush()
                text = f"line {number} of {where_from(name)}: {error} ({counted(count, 'record')} before it sent)"
                raise KafkaError(ErrorCode.INVALID_RECORD, text) from None
            producer.send(
                topic,
                record.value,
                key=record.key,
                headers=always + record.headers,
                timestamp_ms=record.timestamp_ms,
                partition=chosen(record),
            )
            count += 1
    return count


def lines_of(name: str, when_quiet: Callable[[], None]) -> Iterator[bytes]:
    from ixion.cli.produce.lines import read_lines

    try:
        if name == "-":
            yield from read_lines(sys.stdin.fileno(), when_quiet, prompt() if typed() else nothing)
            return
        file = os.open(name, os.O_RDONLY)
        try:
            yield from read_lines(file, when_quiet, nothing)
        finally:
            os.close(file)
    except OSError as error:
        text = f"{where_from(name)} cannot be read: {error.strerror}"
        raise KafkaError(ErrorCode.INVALID_REQUEST, text) from None


def typed() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def prompt() -> Callable[[], None]:
    note("a line is a record; Ctrl-D ends")

    def show() -> None:
        print("> ", end="", file=sys.stderr, flush=True)

    return show


def nothing() -> None: ...


def where_from(name: str) -> str:
    return "standard input" if name == "-" else name


ACKS_OPTION: Final = Option(
    "acks",
    "--acks",
    "Replicas that must acknowledge.",
    metavar="all|1|0",
    default="all",
    complete="all|1|0",
)
COMPRESSION_OPTION: Final = Option(
    "compression",
    "--compression -z",
    "Codec of the batches.",
    metavar="none|gzip|snappy|lz4|zstd",
    default="none",
    complete="none|gzip|snappy|lz4|zstd",
)

PRODUCE: Final = Command(
    "produce",
    "Send a record per line of standard input or files, until their end. Records are written once and in order.",
    produce,
    arguments=(
        Argument("topic", "TOPIC", complete="topic"),
        Argument(
            "files", "FILE...", "Read these instead of standard input.", required=False, many=True, complete="file"
        ),
    ),
    options=(
        Option("key", "--key -k", "The key of every record.", metavar="KEY"),
        Option(
            "key_separator",
            "--key-separator -K",
            r"Split each line at TEXT into key and value; \t is a tab.",
            metavar="TEXT",
        ),
        Option(
            "headers_separator", "--headers-separator", "Split headers (a=1,b=2) off each line at TEXT.", metavar="TEXT"
        ),
        Option("header", "--header -H", "A header for every record; may be repeated.", metavar="NAME=VALUE", many=True),
        Option("null_marker", "--null-marker", "Read TEXT as a null key or value.", metavar="TEXT"),
        Option("as_json", "--json", "Lines are JSON, as 'consume --format json' writes them."),
        Option("partition", "--partition -p", "Send all records to this partition.", metavar="N", kind=whole(0)),
        ACKS_OPTION,
        COMPRESSION_OPTION,
        Option(
            "create",
            "--create",
            "Let the broker create a missing topic (default), or not.",
            default=True,
            negative="--no-create",
        ),
        *CLUSTER,
    ),
    examples=("echo hello | ixion produce greetings", "ixion produce orders --key-separator , orders.csv"),
)
