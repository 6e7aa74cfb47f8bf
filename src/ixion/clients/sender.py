"""Carries sealed batches to the leaders of their partitions, and the answers back to the outboxes.

A request takes at most one batch of a partition and about a megabyte in all; up to five requests are under way to each
broker. What is done about an answer:

A  no error, or a duplicate of what was written before: acknowledged
B  a sequence out of order behind a batch that itself failed: goes back, and is sent again after it
C  an error that a retry can mend (moved, too few replicas, connection lost): goes back, with a pause
D  an error that says that this producer's numbers can no longer be trusted: nothing more can be sent
E  anything else: this batch is refused, the next ones go on
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Final, NamedTuple

from ixion.clients.cluster import Cluster
from ixion.clients.deadline import FIRST_PAUSE_S, LONGEST_PAUSE_S, Deadline
from ixion.clients.faults import TimedOutError, UnknownTopicError, error_code
from ixion.clients.lanes import Arrival, Lanes
from ixion.clients.leaders import leader_of
from ixion.clients.metadata import Topic, TopicPartition
from ixion.clients.outbox import Batch, Outbox
from ixion.model.errors import ErrorCode, KafkaError
from ixion.model.ids import ZERO_ID
from ixion.protocol.messages.k00_produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from ixion.protocol.registry import ApiKey

REQUEST_BYTES: Final = 1024 * 1024
REQUESTS_UNDER_WAY: Final = 5  # a broker remembers the last five batches of a producer, so no more may be unsure
LAST_BY_NAME: Final = 12  # later versions of Produce name topics by id only
NO_LONGER_TRUSTED: Final = (
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.UNKNOWN_PRODUCER_ID,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.UNKNOWN_SERVER_ERROR,
)


class Load(NamedTuple):
    """What one request carries."""

    batches: list[tuple[Outbox, Batch]]
    names: dict[bytes, str]  # topics by the ids they were sent under


class Sender:
    def __init__(
        self, cluster: Cluster, *, acks: int, idempotent: bool, request_timeout_s: float, delivery_timeout_s: float
    ) -> None:
        self._cluster = cluster
        self._acks = acks
        self._idempotent = idempotent
        self._request_timeout_s = request_timeout_s
        self._delivery_timeout_s = delivery_timeout_s
        self._lanes: Lanes[Load] = Lanes(cluster, request_timeout_s)
        # Without sequences a second batch under way could overtake the retry of the first.
        self.most_flying = REQUESTS_UNDER_WAY if idempotent else 1
        self.fatal: KafkaError | None = None
        self.refused: KafkaError | None = None  # the first batch that failed since somebody asked

    def step(self, boxes: Iterable[Outbox], wait_s: float) -> None:
        """Send what can be sent, take in what has been answered, waiting up to `wait_s` if all depends on answers."""
        while not self._lanes.has_lost and self._send_ready([box for box in boxes if box.waiting]):
            pass
        for arrival in self._lanes.collect(wait_s):
            self._take_in(arrival)

    @property
    def busy(self) -> bool:
        """Whether answers are due."""
        return self._lanes.busy

    def close(self) -> None:
        self._lanes.close()

    def _send_ready(self, boxes: list[Outbox]) -> bool:
        """Send one request to every leader that may get one; whether there was any."""
        now_s = time.monotonic()
        loads: dict[int, list[tuple[Outbox, Batch]]] = {}
        sizes: dict[int, int] = {}
        topics: dict[str, Topic] = {}
        for box in boxes:
            self._expire(box, now_s)
            if not box.may_send(now_s, self.most_flying):
                continue
            leader = self._leader(box, now_s)
            if leader is None or self._lanes.in_flight(leader) >= REQUESTS_UNDER_WAY:
                continue
            size = sizes.get(leader, 0) + len(box.waiting[0].data)
            if size > REQUEST_BYTES and leader in loads:
                continue
            sizes[leader] = size
            topics[box.partition.topic] = self._cluster.topic(box.partition.topic)
            loads.setdefault(leader, []).append((box, box.take()))
        for leader, batches in loads.items():
            self._send(leader, batches, topics)
        return bool(loads)

    def _leader(self, box: Outbox, now_s: float) -> int | None:
        """Who leads, with a connection to it; None if that cannot be said now."""
        try:
            leader = leader_of(self._cluster, box.partition, Deadline(self._request_timeout_s))
            self._lanes.connection(leader)
        except KafkaError as error:
            may_pass = error.code.retriable or error.code == ErrorCode.BROKER_NOT_AVAILABLE
            if may_pass and not isinstance(error, UnknownTopicError):
                self._cluster.forget()
                box.not_before_s = now_s + pause_s(box.waiting[0].attempts + 1)
            else:
                self._refuse(box, box.waiting[0], error)
            return None
        return leader

    def _send(self, leader: int, batches: list[tuple[Outbox, Batch]], topics: dict[str, Topic]) -> None:
        connection = self._lanes.connection(leader)
        load = Load(batches, {topic.topic_id: name for name, topic in topics.items()})
        has_ids = all(topic.topic_id != ZERO_ID for topic in topics.values())
        version = connection.version(ApiKey.PRODUCE, newest=ApiKey.PRODUCE.newest if has_ids else LAST_BY_NAME)
        data: dict[str, list[PartitionProduceData]] = {}
        for box, batch in batches:
            part = PartitionProduceData(index=box.partition.partition, records=memoryview(batch.data))
            data.setdefault(box.partition.topic, []).append(part)
        request = ProduceRequest(
            acks=self._acks,
            timeout_ms=int(self._request_timeout_s * 1000),
            topic_data=tuple(
                TopicProduceData(name=name, topic_id=topics[name].topic_id, partition_data=tuple(parts))
                for name, parts in data.items()
            ),
        )
        answered = self._acks != 0
        sent = self._lanes.send(leader, ApiKey.PRODUCE, version, request, load, answered=answered)
        if not answered:
            for box, batch in batches:
                if sent:
                    box.acknowledge(batch, -1)
                else:
                    self._give_back(box, batch)

    def _take_in(self, arrival: Arrival[Load]) -> None:
        outcome = arrival.outcome
        if isinstance(outcome, KafkaError):
            self._cluster.forget()
            for box, batch in arrival.token.batches:
                self._give_back(box, batch)
            return
        answer = arrival.connection.decode(outcome, ProduceResponse)
        names = arrival.token.names
        results: dict[TopicPartition, PartitionProduceResponse] = {}
        for topic in answer.responses:
            name = topic.name or names.get(topic.topic_id, "")
            for result in topic.partition_responses:
                results[TopicPartition(name, result.index)] = result
        for box, batch in arrival.token.batches:
            self._settle(box, batch, results.get(box.partition))

    def _settle(self, box: Outbox, batch: Batch, result: PartitionProduceResponse | None) -> None:
        code = ErrorCode.UNKNOWN_SERVER_ERROR if result is None else error_code(result.error_code)
        said = None if result is None else result.error_message
        if result is not None and code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):  # A
            box.acknowledge(batch, result.base_offset)
        elif code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and not box.is_first(batch):  # B
            self._give_back(box, batch)
        elif code.retriable:  # C
            if code.stale_metadata:
                self._cluster.forget()
            self._give_back(box, batch)
        else:
            error = KafkaError(code, f"{box.partition}: {said or code.explanation}")
            if self._idempotent and code in NO_LONGER_TRUSTED:  # D
                self.fatal = self.fatal or error
            self._refuse(box, batch, error)  # E

    def _give_back(self, box: Outbox, batch: Batch) -> None:
        box.give_back(batch, time.monotonic() + pause_s(batch.attempts))

    def _refuse(self, box: Outbox, batch: Batch, error: KafkaError) -> None:
        self.refused = self.refused or error
        box.refuse(batch, error)

    def _expire(self, box: Outbox, now_s: float) -> None:
        """What was never sent can be given up alone; what was sent and not answered leaves its number in doubt."""
        while box.waiting and now_s - box.waiting[0].born_s > self._delivery_timeout_s:
            batch = box.waiting[0]
            error = TimedOutError(f"{box.partition}: not delivered within {self._delivery_timeout_s:.3g} s")
            if self._idempotent and batch.attempts > 0:
                self.fatal = self.fatal or error
            self._refuse(box, batch, error)


def pause_s(attempts: int) -> float:
    """20, 40, 80 ms … up to a second."""
    return min(FIRST_PAUSE_S * 2.0 ** (min(attempts, 10) - 1), LONGEST_PAUSE_S)
