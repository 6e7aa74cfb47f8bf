"""Members of a share group that speak to one broker by hand. Leaders do not check membership, so no heartbeats."""

from __future__ import annotations

import threading
from typing import Any, Final

from ixion.broker.replica.share_persister import SharePartitionKey
from ixion.broker.startup.broker import Broker as RealBroker
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages import k78_share_fetch as k78
from ixion.language.protocol.messages import k79_share_acknowledge as k79
from ixion.testing.broker import Broker
from tests.apis.asking import Asking

ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4
NEWEST: Final = 2


def initialize(broker: Broker, group: str, topic_id: bytes, partitions: int = 1, start: int = 0) -> None:
    """Store the state of a new group, as its first heartbeat would."""
    for number in range(partitions):
        over = threading.Event()
        codes: list[ErrorCode] = []

        def done(code: ErrorCode, codes: list[ErrorCode] = codes, over: threading.Event = over) -> None:
            codes.append(code)
            over.set()

        async def work(real: RealBroker, number: int = number, done: Any = done) -> None:
            key = SharePartitionKey(group, topic_id, number)
            real.parts.shares.router().initialize(key, 0, start, done)

        broker.call(work)
        assert over.wait(20)
        assert codes == [ErrorCode.NONE]


class Member:
    """One connection and one session; the epoch counts itself."""

    def __init__(self, broker: Broker, group: str, topic_id: bytes, name: str = "m", version: int = NEWEST) -> None:
        self.broker = broker
        self.asking = Asking(broker.bootstrap)
        self.group = group
        self.topic_id = topic_id
        self.name = name
        self.version = version
        self.epoch = 0

    def fetch(self, *batches: tuple[int, int, int], number: int = 0, **fields: Any) -> k78.ShareFetchResponse:
        acknowledged = tuple(
            k78.AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=(kind,))
            for first, last, kind in batches
        )
        given = {
            "group_id": self.group,
            "member_id": self.name,
            "share_session_epoch": self.epoch,
            "max_wait_ms": 20_000,
            "min_bytes": 1,
            "max_bytes": 1 << 20,
            "max_records": 500,
            "batch_size": 0,
            "topics": (topic(self.topic_id, number, acknowledged),),
            "forgotten_topics_data": (),
        }
        answer = self.asking.ask(k78.ShareFetchRequest(**{**given, **fields}), k78.ShareFetchResponse, self.version)
        if answer.error_code == 0:
            self.epoch += 1
        return answer

    def acquire(self, *batches: tuple[int, int, int], **fields: Any) -> list[tuple[int, int, int]]:
        answer = self.fetch(*batches, **fields)
        assert answer.error_code == 0, answer
        assert all(part.error_code == part.acknowledge_error_code == 0 for part in parts_of(answer)), answer
        return [
            (each.first_offset, each.last_offset, each.delivery_count)
            for part in parts_of(answer)
            for each in part.acquired_records
        ]

    def acknowledge(self, *batches: tuple[int, int, int], **fields: Any) -> k79.ShareAcknowledgeResponse:
        acknowledged = tuple(
            k79.AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=(kind,))
            for first, last, kind in batches
        )
        given = {
            "group_id": self.group,
            "member_id": self.name,
            "share_session_epoch": self.epoch,
            "topics": (
                k79.AcknowledgeTopic(
                    topic_id=self.topic_id,
                    partitions=(k79.AcknowledgePartition(partition_index=0, acknowledgement_batches=acknowledged),),
                ),
            ),
        }
        request = k79.ShareAcknowledgeRequest(**{**given, **fields})
        answer = self.asking.ask(request, k79.ShareAcknowledgeResponse, self.version)
        if answer.error_code == 0:
            self.epoch += 1
        return answer

    def codes(self, *batches: tuple[int, int, int], **fields: Any) -> list[str]:
        answer = self.acknowledge(*batches, **fields)
        if answer.error_code:
            return [ErrorCode(answer.error_code).name]
        return [ErrorCode(part.error_code).name for each in answer.responses for part in each.partitions]

    def close(self) -> None:
        self.asking.__exit__()


def topic(topic_id: bytes, number: int = 0, batches: tuple[k78.AcknowledgementBatch, ...] = ()) -> k78.FetchTopic:
    part = k78.FetchPartition(partition_index=number, acknowledgement_batches=batches)
    return k78.FetchTopic(topic_id=topic_id, partitions=(part,))


def parts_of(answer: k78.ShareFetchResponse) -> list[k78.PartitionData]:
    return [part for each in answer.responses for part in each.partitions]
