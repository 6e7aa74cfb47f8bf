"""The requests of a share session: ShareFetch (78) and ShareAcknowledge (79)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ixion.clients.core.share.acknowledgement import RENEW
from ixion.clients.core.share.portion import Key, Portion
from ixion.clients.core.share.session import Ids
from ixion.language.protocol.messages import k78_share_fetch as k78
from ixion.language.protocol.messages import k79_share_acknowledge as k79


class Terms(NamedTuple):
    """What a fetch may bring."""

    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    max_records: int
    acquire_mode: int  # 1: never more than `max_records`, although the batch has more


def fetch_request(
    group: str, member_id: str, epoch: int, added: Ids, gone: Ids, portions: Mapping[Key, Portion], terms: Terms
) -> k78.ShareFetchRequest:
    """Names the partitions that are new to the session, and those with acknowledgements."""
    topics: dict[bytes, dict[int, tuple[k78.AcknowledgementBatch, ...]]] = {}
    for place, topic_id in added.items():
        topics.setdefault(topic_id, {})[place.partition] = ()
    for (topic_id, number), portion in portions.items():
        topics.setdefault(topic_id, {})[number] = tuple(
            [
                k78.AcknowledgementBatch(
                    first_offset=each.first,
                    last_offset=each.last,
                    acknowledge_types=(each.kind,),
                    delay_ms=each.delay_ms,
                )
                for each in portion.ranges()
            ]
        )
    return k78.ShareFetchRequest(
        group_id=group,
        member_id=member_id,
        share_session_epoch=epoch,
        max_wait_ms=terms.max_wait_ms,
        min_bytes=terms.min_bytes,
        max_bytes=terms.max_bytes,
        max_records=terms.max_records,
        batch_size=terms.max_records,
        share_acquire_mode=terms.acquire_mode,
        topics=tuple(
            [
                k78.FetchTopic(
                    topic_id=topic_id,
                    partitions=tuple(
                        [
                            k78.FetchPartition(partition_index=number, acknowledgement_batches=batches)
                            for number, batches in parts.items()
                        ]
                    ),
                )
                for topic_id, parts in topics.items()
            ]
        ),
        forgotten_topics_data=tuple(
            [
                k78.ForgottenTopic(topic_id=topic_id, partitions=tuple(numbers))
                for topic_id, numbers in by_id(gone).items()
            ]
        ),
    )


def acknowledge_request(
    group: str, member_id: str, epoch: int, portions: Iterable[Portion]
) -> k79.ShareAcknowledgeRequest:
    topics: dict[bytes, list[k79.AcknowledgePartition]] = {}
    renews = False
    for portion in portions:
        ranges = portion.ranges()
        renews = renews or any(each.kind == RENEW for each in ranges)
        batches = tuple(
            [
                k79.AcknowledgementBatch(
                    first_offset=each.first,
                    last_offset=each.last,
                    acknowledge_types=(each.kind,),
                    delay_ms=each.delay_ms,
                )
                for each in ranges
            ]
        )
        part = k79.AcknowledgePartition(partition_index=portion.place.partition, acknowledgement_batches=batches)
        topics.setdefault(portion.topic_id, []).append(part)
    return k79.ShareAcknowledgeRequest(
        group_id=group,
        member_id=member_id,
        share_session_epoch=epoch,
        is_renew_ack=renews,
        topics=tuple(
            [k79.AcknowledgeTopic(topic_id=topic_id, partitions=tuple(parts)) for topic_id, parts in topics.items()]
        ),
    )


def by_id(ids: Ids) -> dict[bytes, list[int]]:
    found: dict[bytes, list[int]] = {}
    for place, topic_id in ids.items():
        found.setdefault(topic_id, []).append(place.partition)
    return found
