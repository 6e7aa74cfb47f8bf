"""What no honest client sends, as a table: a name, the bytes, and how the broker must take it.

Each is sent on a connection that has shown itself by an ApiVersions request, or on a fresh one where that matters.
`Take.CLOSE`: the connection ends. `Take.REFUSE`: an answer that holds an error code. `Take.BEAR`: any answer; what was
asked may even be right, it is only very much. In each case nobody else notices.
"""

from __future__ import annotations

import random
import struct
import zlib
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any, NamedTuple

import cramjam

from ixion.language.protocol.envelope import frame_request
from ixion.language.protocol.headers import RequestHeader
from ixion.language.protocol.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ixion.language.protocol.messages.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from ixion.language.protocol.messages.k02_list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ixion.language.protocol.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from ixion.language.protocol.notation import Struct
from tests.log.support import batch
from tests.records import forge

MIB = 1 << 20


class Take(Enum):
    CLOSE = "close"
    REFUSE = "refuse"
    BEAR = "bear"


class Input(NamedTuple):
    name: str
    take: Take
    make: Callable[[], bytes]
    fresh: bool = False  # sent by a stranger
    cost_mb: int = 24  # that it may take beyond twice its own size while it is looked at


def frame(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def header(key: int, version: int) -> bytes:
    """Up to the client id; a flexible header has a count of tagged fields after it."""
    return struct.pack(">hhih", key, version, 7, 1) + b"x"


def asked(key: int, version: int, body: Struct, client_id: str = "x") -> bytes:
    sent = RequestHeader(api_key=key, api_version=version, correlation_id=7, client_id=client_id)
    return b"".join(bytes(part) for part in frame_request(sent, body))


def produced(records: bytes, topic: str = "hostile") -> bytes:
    data = TopicProduceData(name=topic, partition_data=(PartitionProduceData(index=0, records=records),))
    return asked(0, 9, ProduceRequest(acks=-1, timeout_ms=5000, topic_data=(data,)))


def compressed(payload: bytes, codec: int, count: int = 64) -> bytes:
    return produced(forge.batch(payload, attributes=codec, count=count))


def zeros(count: int = 64) -> bytes:
    """64 MiB of records that hold nothing."""
    value = bytes(MIB)
    return b"".join(forge.record(number, value=value) for number in range(count))


def of_many(count: int, make: Callable[[int], Any]) -> tuple[Any, ...]:
    return tuple(make(number) for number in range(count))


def framing() -> Iterator[Input]:
    yield Input("size -1", Take.CLOSE, lambda: struct.pack(">i", -1), True)
    yield Input("size 0", Take.CLOSE, lambda: struct.pack(">i", 0), True)
    yield Input("size -2147483648", Take.CLOSE, lambda: struct.pack(">i", -(2**31)), True)
    yield Input("size 2147483647", Take.CLOSE, lambda: struct.pack(">i", 2**31 - 1))
    yield Input("one more than allowed", Take.CLOSE, lambda: struct.pack(">i", 100 * MIB + 1))
    yield Input("seven bytes of a header", Take.CLOSE, lambda: frame(bytes(7)), True)
    yield Input("HTTP", Take.CLOSE, lambda: b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", True)
    yield Input("HTTP/2", Take.CLOSE, lambda: b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", True)
    yield Input("TLS", Take.CLOSE, lambda: b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(508), True)
    yield Input("SSH", Take.CLOSE, lambda: b"SSH-2.0-OpenSSH_9.6\r\n", True)
    for seed in range(5):
        noise = random.Random(seed).randbytes(4000)
        yield Input(f"noise {seed}", Take.CLOSE, lambda noise=noise: frame(noise), True)  # type: ignore[misc]
        yield Input(f"noise {seed} from a client", Take.CLOSE, lambda noise=noise: frame(noise))  # type: ignore[misc]


def requests() -> Iterator[Input]:
    for key in (9999, -1, 32767, 38, 58):  # 38 and 58 are Kafka's, and not served
        yield Input(f"key {key}", Take.CLOSE, lambda key=key: frame(header(key, 0) + bytes(20)))  # type: ignore[misc]
    for key in (17, 36):  # SASL, which this listener does not speak
        yield Input(f"key {key}", Take.BEAR, lambda key=key: frame(header(key, 0) + bytes(20)))  # type: ignore[misc]
    for key, version in ((0, 99), (0, 2), (1, -1), (3, 32767), (2, 0)):
        yield Input(
            f"key {key} version {version}",
            Take.CLOSE,
            lambda key=key, version=version: frame(header(key, version) + bytes(20)),  # type: ignore[misc]
        )
    good = asked(3, 9, MetadataRequest(topics=None))[4:]
    yield Input("one byte too few", Take.CLOSE, lambda: frame(good[:-1]))
    yield Input("one byte too many", Take.BEAR, lambda: frame(good + b"\0"))
    yield Input("half a megabyte too many", Take.BEAR, lambda: frame(good + bytes(MIB // 2)))
    yield Input("client id of -2", Take.CLOSE, lambda: frame(struct.pack(">hhih", 3, 0, 7, -2) + bytes(4)))
    yield Input("client id longer than the frame", Take.CLOSE, lambda: frame(struct.pack(">hhih", 3, 0, 7, 32767)))
    yield Input(
        "client id not UTF-8", Take.CLOSE, lambda: frame(struct.pack(">hhih", 3, 0, 7, 2) + b"\xff\xfe" + bytes(4))
    )
    flood = struct.pack(">hhih", 18, 3, 7, 1) + b"x"
    yield Input(
        "tagged fields of a header", Take.CLOSE, lambda: frame(flood + b"\xff\xff\x0f" + b"\x05\0" * 250_000), True
    )
    yield Input(
        "tagged fields that are claimed", Take.CLOSE, lambda: frame(flood + b"\xff\xff\xff\xff\x07" + bytes(50)), True
    )
    yield Input(
        "tagged fields of a body",
        Take.CLOSE,
        lambda: frame(header(3, 9) + b"\0" + b"\0\1\0\0" + b"\xff\xff\x0f" + b"\x05\0" * 250_000),
    )
    yield Input("an endless varint", Take.CLOSE, lambda: frame(flood + b"\x80" * 4000), True)
    yield Input("a varint of 11 bytes", Take.CLOSE, lambda: frame(flood + b"\xff" * 10 + b"\x01"), True)
    for count in (2**31 - 1, 10_000_000, -2):
        yield Input(
            f"{count} topics that are claimed",
            Take.CLOSE,
            lambda count=count: frame(header(3, 1) + struct.pack(">i", count) + bytes(100)),  # type: ignore[misc]
        )
    nested = struct.pack(">i", 1000) + (struct.pack(">h", 1) + b"t" + struct.pack(">i", 2**30)) * 1000
    yield Input(
        "partitions that are claimed within topics",
        Take.CLOSE,
        lambda: frame(header(0, 3) + struct.pack(">hhi", -1, -1, 1000) + nested),
    )
    yield Input(
        "a topic name that is not UTF-8",
        Take.CLOSE,
        lambda: frame(header(3, 1) + struct.pack(">ih", 1, 2) + b"\xff\xfe"),
    )


FLOOD_MB = 100  # a request holds 250 thousand elements at most, and each becomes an object or two of its answer


def floods() -> Iterator[Input]:
    """Each element is honest; there are only so many of them."""
    yield Input(
        "forty thousand topics",
        Take.BEAR,
        lambda: asked(
            3,
            9,
            MetadataRequest(
                topics=of_many(40_000, lambda n: MetadataRequestTopic(name=f"t{n}")), allow_auto_topic_creation=False
            ),
        ),
        cost_mb=FLOOD_MB,
    )
    yield Input(
        "forty thousand bad names",
        Take.BEAR,
        lambda: asked(3, 9, MetadataRequest(topics=of_many(40_000, lambda n: MetadataRequestTopic(name=f"/{n}")))),
        cost_mb=FLOOD_MB,
    )
    yield Input(
        "a fetch of forty thousand partitions",
        Take.BEAR,
        lambda: asked(
            1,
            12,
            FetchRequest(
                max_wait_ms=0,
                min_bytes=0,
                session_epoch=0,
                topics=(
                    FetchTopic(
                        topic="hostile",
                        partitions=of_many(
                            40_000, lambda n: FetchPartition(partition=n, fetch_offset=0, partition_max_bytes=1)
                        ),
                    ),
                ),
                forgotten_topics_data=(),
            ),
        ),
        cost_mb=FLOOD_MB,
    )
    yield Input(
        "offsets of forty thousand partitions",
        Take.BEAR,
        lambda: asked(
            2,
            7,
            ListOffsetsRequest(
                replica_id=-1,
                topics=(
                    ListOffsetsTopic(
                        name="hostile",
                        partitions=of_many(40_000, lambda n: ListOffsetsPartition(partition_index=n, timestamp=0)),
                    ),
                ),
            ),
        ),
        cost_mb=FLOOD_MB,
    )
    yield Input(
        "a produce to forty thousand partitions",
        Take.BEAR,
        lambda: asked(
            0,
            9,
            ProduceRequest(
                acks=-1,
                timeout_ms=0,
                topic_data=(
                    TopicProduceData(
                        name="hostile",
                        partition_data=of_many(40_000, lambda n: PartitionProduceData(index=n + 1, records=b"x")),
                    ),
                ),
            ),
        ),
        cost_mb=FLOOD_MB,
    )
    yield Input(
        "too many elements for one request",
        Take.CLOSE,
        lambda: asked(3, 9, MetadataRequest(topics=of_many(260_000, lambda n: MetadataRequestTopic(name="t")))),
    )


def batches() -> Iterator[Input]:
    yield Input("gzip, 64 MiB in 64 kB", Take.REFUSE, lambda: compressed(zlib.compress(zeros(), 9, 31), 1))
    yield Input(
        "snappy, 64 MiB in 3 MB", Take.REFUSE, lambda: compressed(bytes(cramjam.snappy.compress_raw(zeros())), 2)
    )
    yield Input("lz4, 64 MiB in 260 kB", Take.REFUSE, lambda: compressed(bytes(cramjam.lz4.compress(zeros())), 3))
    yield Input("zstd, 64 MiB in 6 kB", Take.REFUSE, lambda: compressed(bytes(cramjam.zstd.compress(zeros())), 4))
    yield Input("snappy that claims 4 GiB", Take.REFUSE, lambda: compressed(b"\xff\xff\xff\xff\x0f" + bytes(1000), 2))
    yield Input(
        "zstd that claims an exabyte",
        Take.REFUSE,
        lambda: compressed(
            bytes.fromhex("28b52ffde0") + (1 << 60).to_bytes(8, "little") + bytes.fromhex("030000") * 100, 4
        ),
    )
    yield Input(
        "zstd with a window of terabytes",
        Take.REFUSE,
        lambda: compressed(bytes.fromhex("28b52ffd00ff") + bytes.fromhex("02000f00") * 100, 4),
    )
    yield Input("gzip cut short", Take.REFUSE, lambda: compressed(zlib.compress(forge.record(), 9, 31)[:-4], 1, 1))
    yield Input(
        "gzip within gzip",
        Take.REFUSE,
        lambda: compressed(zlib.compress(zlib.compress(forge.record(), 9, 31), 9, 31), 1, 1),
    )
    yield Input(
        "half a million headers",
        Take.BEAR,
        lambda: produced(forge.batch(forge.record(headers=forge.varint(450_000) + b"\0\1" * 450_000))),
    )
    yield Input(
        "a billion headers that are claimed",
        Take.REFUSE,
        lambda: produced(forge.batch(forge.record(headers=forge.varint(10**9) + b"\0\1"))),
    )
    yield Input("headers of -1", Take.REFUSE, lambda: produced(forge.batch(forge.record(headers=forge.varint(-1)))))
    yield Input(
        "the largest timestamp",
        Take.BEAR,
        lambda: produced(forge.batch(forge.record(), base_timestamp=2**63 - 1, max_timestamp=2**63 - 1)),
    )
    yield Input(
        "the smallest timestamp",
        Take.BEAR,
        lambda: produced(forge.batch(forge.record(), base_timestamp=-(2**63), max_timestamp=-(2**63))),
    )
    yield Input(
        "timestamps that overflow",
        Take.BEAR,
        lambda: produced(forge.batch(forge.record(timestamp_delta=2**62), base_timestamp=2**62 + 2**61)),
    )
    yield Input("a megabyte more than a message may have", Take.REFUSE, lambda: produced(batch(bytes(2 * MIB))))
    yield Input("a topic that could be a path", Take.REFUSE, lambda: produced(batch(b"v"), "../../etc/passwd"))
    yield Input("a topic of 30 thousand letters", Take.REFUSE, lambda: produced(batch(b"v"), "x" * 30_000))
    yield Input(
        "a sequence at its end",
        Take.BEAR,
        lambda: produced(
            forge.batch(
                forge.record() + forge.record(1), count=2, producer_id=9, producer_epoch=0, base_sequence=2**31 - 1
            )
        ),
    )
    yield Input(
        "an epoch of -1",
        Take.REFUSE,
        lambda: produced(forge.batch(forge.record(), producer_id=9, producer_epoch=-1, base_sequence=0)),
    )


INPUTS = [*framing(), *requests(), *floods(), *batches()]
