"""Requests and responses whole: which header goes with which version, and what happens to versions we do not speak."""

from __future__ import annotations

import pytest

from ixion.language.protocol.codec.sink import SPLIT_SIZE, joined
from ixion.language.protocol.envelope import (
    decode_request,
    decode_request_header,
    decode_response,
    encode_request,
    encode_response,
    encode_response_as,
    frame_request,
    frame_response,
)
from ixion.language.protocol.flaws import DecodeError, UnsupportedVersionError
from ixion.language.protocol.headers import RequestHeader, ResponseHeader
from ixion.language.protocol.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ixion.language.protocol.messages.k03_metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ixion.language.protocol.messages.k07_controlled_shutdown import ControlledShutdownRequest
from ixion.language.protocol.messages.k12_heartbeat import HeartbeatRequest, HeartbeatResponse
from ixion.language.protocol.messages.k18_api_versions import ApiVersionsRequest, ApiVersionsResponse
from ixion.language.protocol.messages.k47_offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from ixion.language.protocol.notation import Struct
from ixion.language.protocol.registry import ApiKey


def header(api: ApiKey, version: int, client_id: str | None = "me") -> RequestHeader:
    return RequestHeader(api_key=api, api_version=version, correlation_id=7, client_id=client_id)


@pytest.mark.parametrize("version", range(5))
def test_a_request_there_and_back(version: int) -> None:
    body = HeartbeatRequest(group_id="g", generation_id=3, member_id="m")
    frame = b"".join(encode_request(header(ApiKey.HEARTBEAT, version), body))
    assert decode_request(frame) == (header(ApiKey.HEARTBEAT, version), body)
    assert decode_request(b"??" + frame + b"?", 2, len(frame) + 2) == (header(ApiKey.HEARTBEAT, version), body)


@pytest.mark.parametrize("version", range(5))
def test_a_response_there_and_back(version: int) -> None:
    body = HeartbeatResponse(error_code=27)
    frame = joined(encode_response(header(ApiKey.HEARTBEAT, version), body))
    assert len(frame) == (4 if version < 4 else 5) + (2 if version == 0 else 6 if version < 4 else 7)
    assert decode_response(ApiKey.HEARTBEAT, version, frame) == (ResponseHeader(correlation_id=7), body)


def test_the_oldest_shutdown_request_has_no_client_id() -> None:
    frame = b"".join(encode_request(header(ApiKey.CONTROLLED_SHUTDOWN, 0), ControlledShutdownRequest(broker_id=5)))
    assert frame.hex(" ") == "00 07 00 00 00 00 00 07 00 00 00 05"
    assert decode_request(frame)[0] == header(ApiKey.CONTROLLED_SHUTDOWN, 0, None)


def test_the_answer_to_api_versions_has_the_oldest_header() -> None:
    body = ApiVersionsResponse(error_code=0, api_keys=(), throttle_time_ms=0)
    frame = joined(encode_response(header(ApiKey.API_VERSIONS, 3), body))
    assert frame.hex(" ") == "00 00 00 07 00 00 01 00 00 00 00 00"
    assert decode_response(ApiKey.API_VERSIONS, 3, frame)[1] == body


def test_a_version_from_the_future_leaves_its_header_readable() -> None:
    body = ApiVersionsRequest(client_software_name="new", client_software_version="9")
    known = b"".join(encode_request(header(ApiKey.API_VERSIONS, 4), body))
    future = known[:2] + b"\x00\x63" + known[4:]
    with pytest.raises(UnsupportedVersionError) as caught:
        decode_request(future)
    assert (caught.value.key, caught.value.version) == (18, 99)
    read, start = decode_request_header(future)
    assert read == header(ApiKey.API_VERSIONS, 99)
    assert start == 13
    refused = joined(encode_response_as(18, 0, read.correlation_id, ApiVersionsResponse(error_code=35, api_keys=())))
    assert refused.hex(" ") == "00 00 00 07 00 23 00 00 00 00"


@pytest.mark.parametrize("key", [-1, 52, 93, 32767])
def test_a_key_that_is_not_spoken(key: int) -> None:
    frame = key.to_bytes(2, signed=True) + bytes(8)
    with pytest.raises(UnsupportedVersionError, match=f"API key {key} version 0 is not supported"):
        decode_request(frame)
    with pytest.raises(UnsupportedVersionError):
        decode_request_header(frame)


@pytest.mark.parametrize(("start", "end"), [(0, 3), (7, -1), (-1, 8), (0, 9)])
def test_a_frame_too_short_for_a_request(start: int, end: int) -> None:
    with pytest.raises(DecodeError, match="at least a key and a version"):
        decode_request(bytes(8), start, end)


def test_an_error_in_the_body_names_the_body() -> None:
    frame = b"".join(
        encode_request(header(ApiKey.HEARTBEAT, 4), HeartbeatRequest(group_id="g", generation_id=3, member_id="m"))
    )
    with pytest.raises(DecodeError, match="HeartbeatRequest v4, member_id, byte 19"):
        decode_request(frame[:-4])


def test_what_follows_a_request_is_passed_over() -> None:
    """librdkafka 2.16 asks for all topics with three bytes too many, and Kafka answers."""
    sent = bytes.fromhex("0003000d00000003000772646b61666b610000000000010000")
    _, body = decode_request(sent)
    assert isinstance(body, MetadataRequest)
    assert (body.topics, body.allow_auto_topic_creation) == (None, False)


def test_large_answers_may_pass_the_budget_of_requests() -> None:
    partition = MetadataResponsePartition(
        error_code=0, partition_index=0, leader_id=1, replica_nodes=tuple(range(300)), isr_nodes=(1,)
    )
    topic = MetadataResponseTopic(error_code=0, name="t", partitions=(partition,) * 1000)
    body: Struct = MetadataResponse(brokers=(), topics=(topic,))
    frame = joined(encode_response(header(ApiKey.METADATA, 1), body))
    assert decode_response(ApiKey.METADATA, 1, frame)[1] == body
    with pytest.raises(DecodeError, match="more elements"):
        decode_response(ApiKey.METADATA, 1, frame, budget=1000)


@pytest.mark.parametrize("size", [0, 10, SPLIT_SIZE, 3 * SPLIT_SIZE])
def test_frames_carry_their_size(size: int) -> None:
    records = memoryview(bytes(size))
    partition = PartitionProduceData(index=0, records=records)
    topic = TopicProduceData(name="orders", partition_data=(partition, partition))
    body = ProduceRequest(acks=1, timeout_ms=1, topic_data=(topic,))
    parts = frame_request(header(ApiKey.PRODUCE, 9), body)
    frame = b"".join(parts)
    assert int.from_bytes(frame[:4]) == len(frame) - 4
    assert frame[4:] == b"".join(encode_request(header(ApiKey.PRODUCE, 9), body))
    assert decode_request(frame, 4)[1] == body
    assert sum(part is records for part in parts) == (2 if size >= SPLIT_SIZE else 0)


def test_framed_answers_are_one_buffer_when_small() -> None:
    body = HeartbeatResponse(error_code=27)
    (frame,) = frame_response(header(ApiKey.HEARTBEAT, 4), body)
    assert joined([frame]).hex(" ") == "00 00 00 0c 00 00 00 07 00 00 00 00 00 00 1b 00"


def test_a_trusted_sender_may_send_more() -> None:
    request = OffsetDeleteRequest(
        group_id="g",
        topics=(
            OffsetDeleteRequestTopic(name="t", partitions=(OffsetDeleteRequestPartition(partition_index=1),) * 300),
        ),
    )
    frame = b"".join(encode_request(header(ApiKey.OFFSET_DELETE, 0), request))
    with pytest.raises(DecodeError, match="more elements"):
        decode_request(frame, budget=300)
    assert decode_request(frame, budget=301)[1] == request
