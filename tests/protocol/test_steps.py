"""In steps a message is read and written as at a stretch, only that others have their turn in between."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ixion.language.protocol.codec.cursor import AT_ONCE_BUDGET, ELEMENT_BUDGET
from ixion.language.protocol.codec.message import MessageCodec
from ixion.language.protocol.codec.sink import Sink, joined
from ixion.language.protocol.codec.wire_type import STEP
from ixion.language.protocol.envelope import (
    decode_at_once,
    decode_request,
    decode_steps,
    encode_request,
    frame_at_once,
    frame_response,
    frame_steps,
)
from ixion.language.protocol.flaws import DecodeError, EncodeError, TooLongError
from ixion.language.protocol.headers import RequestHeader
from ixion.language.protocol.messages.k01_fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from ixion.language.protocol.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from ixion.language.protocol.registry import ApiKey
from tests.protocol.strategies import values

T = TypeVar("T")


def ran(steps: Generator[None, None, T]) -> tuple[T, int]:
    """The result, and in how many steps."""
    count = 0
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value, count
        count += 1


def in_steps(codec: MessageCodec, value: object) -> bytes:
    sink = Sink()
    ran(codec.write_steps(sink, value))
    return sink.finish_bytes()


@pytest.mark.parametrize("api", list(ApiKey), ids=lambda api: api.stem)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_the_same_values_and_the_same_bytes(api: ApiKey, data: st.DataObject) -> None:
    version = data.draw(st.integers(api.oldest, api.newest))
    for table, codec in ((api.request_table, api.request(version)), (api.response_table, api.response(version))):
        value = data.draw(values(table, version))
        encoded = codec.encode(value)
        assert in_steps(codec, value) == encoded
        (read, elements), _ = ran(codec.decode_steps(encoded, 0, -1))
        assert read == codec.decode(encoded)
        assert 0 <= elements <= len(encoded)
        if elements <= AT_ONCE_BUDGET:
            assert codec.decode_at_once(encoded, 0, -1) == read


@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_the_same_faults(data: st.DataObject) -> None:
    api = data.draw(st.sampled_from(list(ApiKey)))
    codec = api.request(api.newest)
    encoded = codec.encode(data.draw(values(api.request_table, api.newest)))
    cut = encoded[: data.draw(st.integers(0, max(0, len(encoded) - 1)))]
    assert fault(lambda: codec.decode_prefix(cut)) == fault(lambda: ran(codec.decode_steps(cut, 0, -1)))


def fault(act: Any) -> str | None:
    try:
        act()
    except DecodeError as error:
        return str(error)
    return None


def test_a_fault_while_writing_is_found_where_it_is() -> None:
    topics = (FetchTopic(topic="t", partitions=(FetchPartition(partition=1, fetch_offset=0, partition_max_bytes=1),)),)
    good = FetchRequest(max_wait_ms=0, min_bytes=0, topics=topics)
    bad = good.replace(topics=(good.topics[0].replace(partitions=(3,)),))
    with pytest.raises(EncodeError, match=r"topics\[0\].partitions\[0\]"):
        in_steps(ApiKey.FETCH.request(12), bad)


def header(api: ApiKey, version: int) -> RequestHeader:
    return RequestHeader(api_key=api, api_version=version, correlation_id=7, client_id="me")


def fetch(topics: int, partitions: int) -> FetchRequest:
    wanted = tuple(FetchPartition(partition=n, fetch_offset=0, partition_max_bytes=1) for n in range(partitions))
    named = tuple(FetchTopic(topic=f"t{number}", partitions=wanted) for number in range(topics))
    return FetchRequest(max_wait_ms=0, min_bytes=0, topics=named)


@pytest.mark.parametrize(("topics", "partitions"), [(1, 20_000), (20_000, 1), (200, 100)])
def test_a_step_is_a_few_elements_however_they_are_nested(topics: int, partitions: int) -> None:
    body = fetch(topics, partitions)
    frame = b"".join(encode_request(header(ApiKey.FETCH, 12), body))
    with pytest.raises(TooLongError):
        decode_at_once(frame)
    (_, read, elements), steps = ran(decode_steps(frame, 0, len(frame)))
    assert read == body
    assert elements == topics + topics * partitions
    assert steps >= 2 * (elements // STEP) - 2  # checked, then read

    answer = FetchResponse(
        throttle_time_ms=0,
        responses=tuple(
            FetchableTopicResponse(
                topic=topic.topic,
                partitions=tuple(
                    PartitionData(
                        partition_index=each.partition,
                        error_code=0,
                        high_watermark=0,
                        aborted_transactions=None,
                        records=b"",
                    )
                    for each in topic.partitions
                ),
            )
            for topic in body.topics
        ),
    )
    assert frame_at_once(header(ApiKey.FETCH, 12), answer) is None
    parts, steps = ran(frame_steps(header(ApiKey.FETCH, 12), answer))
    assert joined(parts) == joined(frame_response(header(ApiKey.FETCH, 12), answer))
    assert steps >= elements // STEP - 1


def test_what_is_short_is_read_and_written_at_a_stretch() -> None:
    body = fetch(10, 99)
    frame = b"".join(encode_request(header(ApiKey.FETCH, 12), body))
    assert decode_at_once(frame) == decode_request(frame)


def test_long_names_are_many_elements() -> None:
    """Text takes time to be checked as well: a MiB of it is 1,024 elements."""
    body = MetadataRequest(topics=tuple(MetadataRequestTopic(name="x" * 30_000) for _ in range(40)))
    frame = b"".join(encode_request(header(ApiKey.METADATA, 9), body))
    with pytest.raises(TooLongError):
        decode_at_once(frame)
    assert decode_request(frame)[1] == body


def test_too_many_elements_are_refused_in_steps_too() -> None:
    body = MetadataRequest(topics=tuple(MetadataRequestTopic(name="") for _ in range(ELEMENT_BUDGET + 1)))
    frame = b"".join(encode_request(header(ApiKey.METADATA, 9), body))
    with pytest.raises(DecodeError, match="more elements than a frame may hold"):
        ran(decode_steps(frame, 0, len(frame)))
