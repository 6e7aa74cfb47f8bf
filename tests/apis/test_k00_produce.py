from __future__ import annotations

import socket

import pytest

from ixion.broker.apis.k00_produce import STEP
from ixion.broker.startup.broker import Broker as RealBroker
from ixion.language.model.errors import ErrorCode
from ixion.language.model.ids import ZERO_ID
from ixion.language.protocol.envelope import frame_request
from ixion.language.protocol.headers import RequestHeader
from ixion.language.protocol.messages.k00_produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from ixion.language.protocol.registry import ApiKey
from ixion.language.records.builder import BatchBuilder
from ixion.language.records.compression import Codec
from ixion.testing.broker import Broker
from tests.apis.asking import Asking, versions
from tests.log.support import batch, stored
from tests.records import forge

BY_ID = 13


def now_ms(broker: Broker) -> int:
    async def look(real: RealBroker) -> int:
        return real.parts.clock_ms()

    return broker.call(look)


def id_of(broker: Broker, topic: str) -> bytes:
    async def look(real: RealBroker) -> bytes:
        return real.parts.image.topics[topic].topic_id

    return broker.call(look)


def values(broker: Broker, topic: str, number: int = 0) -> list[bytes]:
    async def look(real: RealBroker) -> list[bytes]:
        return [value for _, value in stored(real.parts.replicas.partitions[topic, number].log)]

    return broker.call(look)


def request(*data: tuple[str, int, bytes | None], acks: int = -1, topic_id: bytes = ZERO_ID) -> ProduceRequest:
    return ProduceRequest(
        acks=acks,
        timeout_ms=5000,
        topic_data=tuple(
            TopicProduceData(
                name=topic, topic_id=topic_id, partition_data=(PartitionProduceData(index=number, records=records),)
            )
            for topic, number, records in data
        ),
    )


def produce(
    asking: Asking, topic: str, records: bytes | None, *, version: int = 12, number: int = 0, acks: int = -1
) -> PartitionProduceResponse:
    answer = asking.ask(request((topic, number, records), acks=acks), ProduceResponse, version)
    ((part,),) = [each.partition_responses for each in answer.responses]
    return part


def fresh(broker: Broker, name: str, **config: object) -> str:
    broker.create_topic(name, 1, **config)
    return name


def test_every_version_by_name_and_by_id(broker: Broker, asking: Asking) -> None:
    topic = fresh(broker, "versions")
    topic_id = id_of(broker, topic)
    for place, version in enumerate(versions(ApiKey.PRODUCE)):
        name = "" if version >= BY_ID else topic
        asked = request((name, 0, batch(b"%d" % version)), topic_id=topic_id if version >= BY_ID else ZERO_ID)
        answer = asking.ask(asked, ProduceResponse, version)
        (told,) = answer.responses
        assert (told.name, told.topic_id) == (("", topic_id) if version >= BY_ID else (topic, ZERO_ID))
        (part,) = told.partition_responses
        assert (part.index, part.error_code, part.base_offset, part.log_append_time_ms) == (0, 0, place, -1)
        assert part.log_start_offset == (0 if version >= 5 else -1)
        assert answer.throttle_time_ms == 0
    assert values(broker, topic) == [b"%d" % version for version in versions(ApiKey.PRODUCE)]


@pytest.mark.parametrize("acks", [1, -1])
def test_acks(broker: Broker, asking: Asking, acks: int) -> None:
    topic = fresh(broker, f"acks{acks}")
    assert produce(asking, topic, batch(b"v"), acks=acks).error_code == 0
    assert values(broker, topic) == [b"v"]


@pytest.mark.parametrize("acks", [2, -2, 32767, -32768])
def test_other_acks_are_refused_and_nothing_is_written(broker: Broker, asking: Asking, acks: int) -> None:
    topic = fresh(broker, f"acks{acks}")
    part = produce(asking, topic, batch(b"v"), acks=acks)
    assert (part.error_code, part.base_offset) == (ErrorCode.INVALID_REQUIRED_ACKS, -1)
    assert values(broker, topic) == []


class Bare:
    """A connection on which not every request has an answer."""

    def __init__(self, bootstrap: str) -> None:
        host, _, port = bootstrap.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=10)

    def send(self, body: ProduceRequest, version: int, correlation_id: int) -> None:
        header = RequestHeader(api_key=0, api_version=version, correlation_id=correlation_id, client_id="bare")
        self.socket.sendall(b"".join(bytes(part) for part in frame_request(header, body)))


@pytest.mark.parametrize("version", [3, 9, 12])
def test_acks_0_has_no_answer_and_the_connection_goes_on(broker: Broker, version: int) -> None:
    topic = fresh(broker, f"acks0v{version}")
    bare = Bare(broker.bootstrap)
    for number in range(5):
        bare.send(request((topic, 0, batch(b"%d" % number)), acks=0), version, number)
    bare.send(request((topic, 0, batch(b"last")), acks=1), version, 77)
    answer = bare.socket.recv(1000)
    assert int.from_bytes(answer[4:8]) == 77  # the first, and only, answer
    assert values(broker, topic) == [b"0", b"1", b"2", b"3", b"4", b"last"]
    bare.socket.close()


@pytest.mark.parametrize("what", ["unknown topic", "bad batch", "internal topic", "no records"])
def test_acks_0_with_an_error_closes_the_connection(broker: Broker, what: str) -> None:
    topic = fresh(broker, f"bad-{what}".replace(" ", "-"))
    entries = {
        "unknown topic": ("none", 0, batch(b"v")),
        "bad batch": (topic, 0, batch(b"v")[:-1]),
        "internal topic": ("__consumer_offsets", 0, batch(b"v")),
        "no records": (topic, 0, None),
    }
    bare = Bare(broker.bootstrap)
    bare.send(request(entries[what], acks=0), 9, 1)
    assert bare.socket.recv(100) == b""
    bare.socket.close()


def test_what_is_wrong_is_answered_apart_from_what_is_good(broker: Broker, asking: Asking) -> None:
    topic = fresh(broker, "mixed")
    asked = request(
        ("none", 0, batch(b"v")),
        (topic, 0, batch(b"good")),
        (topic, 7, batch(b"v")),
        (topic, -1, batch(b"v")),
        ("__consumer_offsets", 0, batch(b"v")),
        (topic, 0, b""),
        (topic, 0, None),
        ("bad name", 0, batch(b"v")),
    )
    answer = asking.ask(asked, ProduceResponse, 12)
    parts = [topic.partition_responses[0] for topic in answer.responses]
    assert [part.error_code for part in parts] == [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,  # it has not been made yet
        ErrorCode.INVALID_RECORD,
        ErrorCode.INVALID_RECORD,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert [part.base_offset for part in parts] == [-1, 0, -1, -1, -1, -1, -1, -1]
    assert values(broker, topic) == [b"good"]


def test_internal_topics_are_not_for_clients(broker: Broker, asking: Asking) -> None:
    broker.call(lambda real: real.parts.internal_topics["__consumer_offsets"].ensure())
    part = produce(asking, "__consumer_offsets", batch(b"v"))
    assert part.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert values(broker, "__consumer_offsets") == []


def test_unknown_ids(broker: Broker, asking: Asking) -> None:
    for unknown in (ZERO_ID, b"x" * 16):
        answer = asking.ask(request(("", 0, batch(b"v")), topic_id=unknown), ProduceResponse, 13)
        assert answer.responses[0].topic_id == unknown
        assert answer.responses[0].partition_responses[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("version", [3, 6, 7, 12])
def test_codecs(broker: Broker, asking: Asking, codec: Codec, version: int) -> None:
    topic = fresh(broker, f"codec-{codec.name}-{version}")
    part = produce(asking, topic, batch(b"v" * 100, codec=codec), version=version)
    if codec is Codec.ZSTD and version < 7:
        assert part.error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        assert values(broker, topic) == []
    else:
        assert part.error_code == 0
        assert values(broker, topic) == [b"v" * 100]


def test_records_that_are_refused_are_named(broker: Broker, asking: Asking) -> None:
    topic = fresh(broker, "compacted", cleanup_policy="compact")
    builder = BatchBuilder()
    for key in (b"k", None, b"k", None):
        builder.append(key, b"v", timestamp=0)
    data = builder.build()
    part = produce(asking, topic, data)
    assert part.error_code == ErrorCode.INVALID_RECORD
    assert [each.batch_index for each in part.record_errors] == [1, 3]
    assert all(each.batch_index_error_message for each in part.record_errors)
    assert part.error_message
    old = produce(asking, topic, data, version=7)
    assert (old.error_code, old.record_errors, old.error_message) == (ErrorCode.INVALID_RECORD, (), None)
    assert values(broker, topic) == []


def test_log_append_time(broker: Broker, asking: Asking) -> None:
    topic = fresh(broker, "stamped", message_timestamp_type="LogAppendTime")
    before = now_ms(broker)
    part = produce(asking, topic, batch(b"v", timestamp=1))
    assert before <= part.log_append_time_ms <= now_ms(broker)


def test_timestamps_out_of_bounds(broker: Broker, asking: Asking) -> None:
    topic = fresh(broker, "bounded", message_timestamp_after_max_ms=1000, message_timestamp_before_max_ms=1000)
    now = now_ms(broker)
    for timestamp in (now + 3_600_000, now - 3_600_000, 2**63 - 1):
        part = produce(asking, topic, batch(b"v", timestamp=timestamp))
        assert (part.error_code, part.log_start_offset) == (ErrorCode.INVALID_TIMESTAMP, 0)
    assert produce(asking, topic, batch(b"v", timestamp=now)).error_code == 0


def test_a_batch_that_is_too_large(broker: Broker, asking: Asking) -> None:
    topic = fresh(broker, "small", max_message_bytes=200)
    assert produce(asking, topic, batch(b"v" * 200)).error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert produce(asking, topic, batch(b"v" * 50)).error_code == 0


def test_sequences(broker: Broker, asking: Asking) -> None:
    """Of an idempotent producer: the next one, the same again, one too far, and a stale epoch."""
    topic = fresh(broker, "sequences")
    assert produce(asking, topic, batch(b"a", b"b", producer=(900, 1, 0))).base_offset == 0
    assert produce(asking, topic, batch(b"c", producer=(900, 1, 2))).base_offset == 2
    again = produce(asking, topic, batch(b"a", b"b", producer=(900, 1, 0)))
    assert (again.error_code, again.base_offset) == (ErrorCode.NONE, 0)
    far = produce(asking, topic, batch(b"d", producer=(900, 1, 9)))
    assert far.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    stale = produce(asking, topic, batch(b"d", producer=(900, 0, 3)))
    assert stale.error_code == ErrorCode.INVALID_PRODUCER_EPOCH
    assert produce(asking, topic, batch(b"e", producer=(900, 2, 0))).base_offset == 3
    assert values(broker, topic) == [b"a", b"b", b"c", b"e"]


RECORD = forge.record()
BAD = {
    "wrong crc": (forge.batch(RECORD, crc=1), ErrorCode.CORRUPT_MESSAGE),
    "magic 0": (forge.batch(RECORD, magic=0), None),
    "magic 1": (forge.batch(RECORD, magic=1), None),
    "magic 3": (forge.batch(RECORD, magic=3), None),
    "cut short": (batch(b"v")[:-1], ErrorCode.CORRUPT_MESSAGE),
    "a header only": (batch(b"v")[:20], None),
    "two batches": (batch(b"v") + batch(b"w"), ErrorCode.INVALID_RECORD),
    "trailing bytes": (batch(b"v") + b"x", ErrorCode.INVALID_RECORD),
    "control batch": (forge.batch(RECORD, attributes=0x20), ErrorCode.INVALID_RECORD),
    "codec 5": (forge.batch(RECORD, attributes=5), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
    "codec 7": (forge.batch(RECORD, attributes=7), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
    "unknown bits": (forge.batch(RECORD, attributes=0x4000), ErrorCode.INVALID_RECORD),
    "count too small": (forge.batch(RECORD + forge.record(1), count=1), ErrorCode.INVALID_RECORD),
    "count too large": (forge.batch(RECORD, count=2), ErrorCode.INVALID_RECORD),
    "count huge": (forge.batch(RECORD, count=2**31 - 1), ErrorCode.INVALID_RECORD),
    "count 0": (forge.batch(b"", count=0), ErrorCode.INVALID_RECORD),
    "negative count": (forge.batch(RECORD, count=-1, last_offset_delta=0), ErrorCode.INVALID_RECORD),
    "last offset delta": (forge.batch(RECORD, last_offset_delta=5), ErrorCode.INVALID_RECORD),
    "base offset": (forge.batch(RECORD, base_offset=9), ErrorCode.INVALID_RECORD),
    "producer without sequence": (forge.batch(RECORD, producer_id=1), ErrorCode.INVALID_RECORD),
    "length negative": (forge.batch(RECORD, length=-1), None),
    "length huge": (forge.batch(RECORD, length=2**31 - 1), None),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_batches(broker: Broker, asking: Asking, name: str) -> None:
    topic = fresh(broker, f"bad-{name}".replace(" ", "-"))
    data, code = BAD[name]
    part = produce(asking, topic, data)
    assert part.error_code == code if code is not None else part.error_code != 0
    assert values(broker, topic) == []
    assert produce(asking, topic, batch(b"good")).base_offset == 0  # on the same connection


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_each_message_is_flushed_if_the_topic_says_so(broker: Broker, asking: Asking, acks: int) -> None:
    topic = fresh(broker, f"flushed{acks}", flush_messages=1)
    if acks == 0:
        bare = Bare(broker.bootstrap)
        bare.send(request((topic, 0, batch(b"v")), acks=0), 9, 1)
        bare.send(request((topic, 0, batch(b"w")), acks=1), 9, 2)
        assert int.from_bytes(bare.socket.recv(1000)[4:8]) == 2
        bare.socket.close()
    else:
        assert produce(asking, topic, batch(b"v"), acks=acks).base_offset == 0
        assert produce(asking, topic, batch(b"w"), acks=acks).base_offset == 1

    async def flushed(real: RealBroker) -> int:
        return real.parts.replicas.partitions[topic, 0].log.recovery_point

    assert broker.call(flushed) == 2
    assert values(broker, topic) == [b"v", b"w"]


def test_the_same_partition_twice(broker: Broker, asking: Asking) -> None:
    topic = fresh(broker, "twice")
    answer = asking.ask(request((topic, 0, batch(b"a")), (topic, 0, batch(b"b"))), ProduceResponse, 12)
    assert [each.partition_responses[0].base_offset for each in answer.responses] == [0, 1]


def test_nothing_at_all(asking: Asking) -> None:
    assert asking.ask(request(), ProduceResponse).responses == ()


def test_many_partitions_at_once(broker: Broker, asking: Asking) -> None:
    broker.create_topic("many", 50)
    data = [("many", number, batch(b"%d" % number)) for number in range(50)]
    answer = asking.ask(request(*data), ProduceResponse, 12)
    assert [each.partition_responses[0].error_code for each in answer.responses] == [0] * 50
    assert values(broker, "many", 49) == [b"49"]


@pytest.mark.parametrize("acks", [1, -1])
def test_very_many_partitions_are_answered_in_their_order(broker: Broker, asking: Asking, acks: int) -> None:
    """More than one step takes, in one topic and in many, good ones among bad ones."""
    topic = f"wide{acks}"
    broker.create_topic(topic, 3 * STEP)
    wide = TopicProduceData(
        name=topic,
        partition_data=tuple(
            PartitionProduceData(index=number, records=batch(b"%d" % number) if number % 3 else None)
            for number in range(3 * STEP)
        ),
    )
    empty = TopicProduceData(name=topic, partition_data=())
    unknown = tuple(
        TopicProduceData(name=f"no{number}", partition_data=(PartitionProduceData(index=0, records=batch(b"v")),))
        for number in range(2 * STEP)
    )
    sent = ProduceRequest(acks=acks, timeout_ms=5000, topic_data=(*unknown, empty, wide))
    answer = asking.ask(sent, ProduceResponse, 12)
    codes = [(each.name, [part.error_code for part in each.partition_responses]) for each in answer.responses]
    assert codes[: 2 * STEP] == [(f"no{number}", [3]) for number in range(2 * STEP)]
    assert codes[2 * STEP :] == [(topic, []), (topic, [0 if number % 3 else 87 for number in range(3 * STEP)])]
    assert [part.index for part in answer.responses[-1].partition_responses] == list(range(3 * STEP))
    assert values(broker, topic, 3 * STEP - 1) == [b"%d" % (3 * STEP - 1)]
    refused = asking.ask(sent.replace(acks=7), ProduceResponse, 12)
    assert {part.error_code for each in refused.responses for part in each.partition_responses} == {21}


def test_very_many_partitions_wait_for_the_disk(broker: Broker, asking: Asking) -> None:
    """So many that they begin to wait in several turns of the loop."""
    broker.create_topic("synced", 2 * STEP, flush_messages=1)
    data = [("synced", number, batch(b"v")) for number in range(2 * STEP)]
    answer = asking.ask(request(*data, acks=1), ProduceResponse, 12)
    assert [each.partition_responses[0].error_code for each in answer.responses] == [0] * (2 * STEP)
