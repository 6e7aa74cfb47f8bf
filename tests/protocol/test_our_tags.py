"""Tagged fields of our own: they travel between our client and our broker, and change nothing for Kafka."""

from __future__ import annotations

from ixion.language.protocol.messages.k79_share_acknowledge import (
    AcknowledgementBatch,
    AcknowledgePartition,
    AcknowledgeTopic,
    ShareAcknowledgeRequest,
)
from ixion.language.protocol.registry import ApiKey


def request(delay_ms: int) -> ShareAcknowledgeRequest:
    batch = AcknowledgementBatch(first_offset=3, last_offset=3, acknowledge_types=(2,), delay_ms=delay_ms)
    part = AcknowledgePartition(partition_index=0, acknowledgement_batches=(batch,))
    topic = AcknowledgeTopic(topic_id=bytes(16), partitions=(part,))
    return ShareAcknowledgeRequest(group_id="g", member_id="m", share_session_epoch=1, topics=(topic,))


def test_a_release_may_carry_a_delay() -> None:
    for version in (1, 2):
        codec = ApiKey.SHARE_ACKNOWLEDGE.request(version)
        assert codec.decode(codec.encode(request(90_000))) == request(90_000)


def test_without_a_delay_the_bytes_are_kafkas() -> None:
    codec = ApiKey.SHARE_ACKNOWLEDGE.request(2)
    plain, delayed = codec.encode(request(0)), codec.encode(request(7))
    tagged = b"\x01" + b"\x88\x27" + b"\x08" + (7).to_bytes(8, "big")  # one tag: 5000, eight bytes
    assert plain.count(tagged) == 0
    assert delayed == plain.replace(b"\x02\x02\x00", b"\x02\x02" + tagged, 1)
