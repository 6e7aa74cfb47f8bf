"""What the codec promises about good values: versions, defaults, losses, views, parts, errors that name the place."""

from __future__ import annotations

import pytest

from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.codec.array import LONGEST
from ixion.language.protocol.codec.sink import SPLIT_SIZE, Deferred, Sink, joined
from ixion.language.protocol.flaws import EncodeError, UnsupportedVersionError
from ixion.language.protocol.messages.k00_produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from ixion.language.protocol.messages.k01_fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from ixion.language.protocol.messages.k03_metadata import MetadataRequest
from ixion.language.protocol.messages.k42_delete_groups import DeleteGroupsRequest
from ixion.language.protocol.registry import ApiKey
from ixion.timer.turns import finish


def produce(records: bytes | memoryview | None, topic: str = "orders", acks: int = 1) -> ProduceRequest:
    partition = PartitionProduceData(index=0, records=records)
    return ProduceRequest(
        acks=acks, timeout_ms=1000, topic_data=(TopicProduceData(name=topic, partition_data=(partition,)),)
    )


def test_the_bytes_of_a_small_request() -> None:
    encoded = ApiKey.PRODUCE.request(9).encode(produce(b"rr"))
    assert encoded.hex(" ") == "00 00 01 00 00 03 e8 02 07 6f 72 64 65 72 73 02 00 00 00 00 03 72 72 00 00 00"


def test_records_are_a_view_into_the_frame() -> None:
    codec = ApiKey.PRODUCE.request(9)
    frame = b"...." + codec.encode(produce(b"some records")) + b"..."
    value = codec.decode(frame, 4, len(frame) - 3)
    assert isinstance(value, ProduceRequest)
    records = value.topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    assert bytes(records) == b"some records"
    assert records.obj is frame


def test_a_frame_outside_its_buffer_is_the_callers_mistake() -> None:
    with pytest.raises(ValueError, match="no frame at 2 to 9 in 8 bytes"):
        ApiKey.PRODUCE.request(9).decode(bytes(8), 2, 9)


def test_large_records_are_sent_as_they_are() -> None:
    records = memoryview(bytes(SPLIT_SIZE))
    parts = ApiKey.PRODUCE.request(9).encode_parts(produce(records))
    assert len(parts) == 3
    assert parts[1] is records
    assert joined(parts) == ApiKey.PRODUCE.request(9).encode(produce(bytes(SPLIT_SIZE)))


def test_small_records_are_copied_into_one_part() -> None:
    assert len(ApiKey.PRODUCE.request(9).encode_parts(produce(memoryview(bytes(SPLIT_SIZE - 1))))) == 1


class Stored(Deferred):
    def read(self, start: int, size: int) -> bytes:
        return bytes(range(256))[start : start + size] if self.size <= 256 else bytes(size)


@pytest.mark.parametrize("size", [0, 200, SPLIT_SIZE])
def test_records_that_are_read_while_they_are_sent(size: int) -> None:
    def answer(records: bytes | Deferred) -> FetchResponse:
        part = PartitionData(
            partition_index=0, error_code=0, high_watermark=1, aborted_transactions=None, records=records
        )
        topic = FetchableTopicResponse(topic_id=bytes(range(16)), partitions=(part,))
        return FetchResponse(throttle_time_ms=0, session_id=0, responses=(topic,))

    codec, stored = ApiKey.FETCH.response(13), Stored(size)
    parts = codec.encode_parts(answer(stored))
    assert (stored in parts) == (size == SPLIT_SIZE)
    assert joined(parts) == codec.encode(answer(stored)) == codec.encode(answer(stored.read(0, size)))


def test_records_of_several_partitions_keep_their_order() -> None:
    chunks = [bytes([number]) * (SPLIT_SIZE + number) for number in range(3)]
    partitions = tuple(PartitionProduceData(index=index, records=chunk) for index, chunk in enumerate(chunks))
    topic = TopicProduceData(name="orders", partition_data=partitions)
    value = ProduceRequest(acks=1, timeout_ms=1, topic_data=(topic,))
    codec = ApiKey.PRODUCE.request(9)
    parts = codec.encode_parts(value)
    assert [part for part in parts if part in chunks] == chunks
    assert codec.decode(joined(parts)) == value


def test_a_field_that_the_version_lacks_reads_as_its_default() -> None:
    codec = ApiKey.FETCH.request(4)
    value = codec.decode(codec.encode(FetchRequest(max_wait_ms=5, min_bytes=6, topics=())))
    assert isinstance(value, FetchRequest)
    assert (value.session_epoch, value.rack_id, value.replica_state.replica_epoch) == (-1, "", -1)


def test_a_field_that_would_be_lost_is_refused() -> None:
    answer = FetchResponse(throttle_time_ms=0, session_id=12, responses=())
    assert ApiKey.FETCH.response(7).encode(answer)
    with pytest.raises(EncodeError) as caught:
        ApiKey.FETCH.response(6).encode(answer)
    assert str(caught.value) == "FetchResponse v6, session_id: this version has no such field, and its value is 12"


def test_a_field_that_may_be_lost_is_dropped() -> None:
    request = FetchRequest(max_wait_ms=5, min_bytes=6, topics=(), rack_id="r1")
    codec = ApiKey.FETCH.request(10)
    assert codec.decode(codec.encode(request)) == request.replace(rack_id="")


def test_tagged_fields_are_written_only_when_set() -> None:
    codec = ApiKey.FETCH.response(12)
    partition = PartitionData(
        partition_index=0, error_code=0, high_watermark=1, aborted_transactions=None, records=None
    )
    plain = FetchResponse(throttle_time_ms=0, responses=(FetchableTopicResponse(topic="t", partitions=(partition,)),))
    moved = partition.replace(current_leader=partition.current_leader.replace(leader_id=3))
    tagged = plain.replace(responses=(plain.responses[0].replace(partitions=(moved,)),))
    assert len(codec.encode(tagged)) == len(codec.encode(plain)) + 11
    assert codec.decode(codec.encode(tagged)) == tagged


def test_enums_are_written_as_their_numbers() -> None:
    partition = PartitionProduceResponse(index=0, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER, base_offset=-1)
    answer = ProduceResponse(responses=(TopicProduceResponse(name="t", partition_responses=(partition,)),))
    codec = ApiKey.PRODUCE.response(9)
    decoded = codec.decode(codec.encode(answer))
    assert isinstance(decoded, ProduceResponse)
    assert decoded.responses[0].partition_responses[0].error_code == 6


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (produce(b"", acks=2**15), "acks: 32768 is not within -32768 to 32767"),
        (produce(b"", acks=-(2**63) - 1), "acks: -9223372036854775809 is not within -32768 to 32767"),
        (produce(b"", acks="1"), "acks: '1' is not an integer"),  # type: ignore[arg-type]
        (produce("text"), "topic_data[0].partition_data[0].records: str is not bytes"),  # type: ignore[arg-type]
        (produce(b"", topic="x" * 32768), "topic_data[0].name: a string of 32768 bytes; the protocol allows 32767"),
        (produce(b"", topic="\ud800"), "topic_data[0].name: '\\ud800' has no UTF-8 form"),
        (produce(b"", topic=None), "topic_data[0].name: null where no null is allowed"),  # type: ignore[arg-type]
        (produce(b"").replace(topic_data=7), "topic_data: int is not a tuple"),
        (produce(b"").replace(topic_data=("x",)), "topic_data[0]: str is not a TopicProduceData"),
    ],
)
def test_a_value_that_does_not_fit_is_named(request_: ProduceRequest, reason: str) -> None:
    with pytest.raises(EncodeError) as caught:
        ApiKey.PRODUCE.request(9).encode(request_)
    assert str(caught.value) == f"ProduceRequest v9, {reason}"


def test_an_array_that_kafka_would_not_read_is_not_written() -> None:
    codec = ApiKey.DELETE_GROUPS.request(2)
    assert codec.encode(DeleteGroupsRequest(groups_names=("",) * LONGEST))
    long = DeleteGroupsRequest(groups_names=("",) * (LONGEST + 1))
    with pytest.raises(EncodeError, match="groups_names: 1000001 elements, of which Kafka reads at most 1000000"):
        codec.encode(long)
    with pytest.raises(EncodeError, match="1000001 elements"):
        finish(codec.write_steps(Sink(), long))


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1])
def test_the_widest_integer_has_bounds_too(value: int) -> None:
    partition = PartitionProduceResponse(index=0, error_code=0, base_offset=value)
    answer = ProduceResponse(responses=(TopicProduceResponse(name="t", partition_responses=(partition,)),))
    with pytest.raises(EncodeError, match=f"base_offset: {value} is not within"):
        ApiKey.PRODUCE.response(9).encode(answer)


def test_another_message_is_refused() -> None:
    with pytest.raises(EncodeError, match="ProduceRequest v9: MetadataRequest is not a ProduceRequest"):
        ApiKey.PRODUCE.request(9).encode(MetadataRequest(topics=None))


def test_null_is_refused_where_a_version_does_not_know_it() -> None:
    everything = MetadataRequest(topics=None)
    assert ApiKey.METADATA.request(1).encode(everything) == b"\xff\xff\xff\xff"
    with pytest.raises(EncodeError, match="MetadataRequest v0, topics: null where no null is allowed"):
        ApiKey.METADATA.request(0).encode(everything)


@pytest.mark.parametrize("version", [-1, 2, 14])
def test_versions_outside_the_table_are_refused(version: int) -> None:
    with pytest.raises(UnsupportedVersionError, match=f"API key 0 version {version} is not supported"):
        ApiKey.PRODUCE.request(version)


def test_lists_are_written_like_tuples() -> None:
    request = produce(b"rr")
    same = request.replace(topic_data=list(request.topic_data))
    assert ApiKey.PRODUCE.request(9).encode(same) == ApiKey.PRODUCE.request(9).encode(request)
