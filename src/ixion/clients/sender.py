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
from ixion.clients.deadline import FIRST_PAUSE_S, LONGEST_PAUSE_S
from ixion.clients.faults import TimedOutError, UnknownTopicError, error_code
from ixion.clients.lanes import Arrival, Lanes
from ixion.clients.leaders import leader_in
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
        """Send what can be sent, take in what has been answered, waiting up to `wait_s` for the first answer."""
        end_s = time.monotonic() + wait_s
        while True:
            while not self._lanes.has_lost and self._send_ready([box for box in boxes if box.waiting]):
                pass
            if self.fatal is not None:
                return
            arrivals = self._lanes.collect(end_s - time.monotonic())
            for arrival in arrivals:
                self._take_in(arrival)
            if arrivals or not self._lanes.busy or time.monotonic() >= end_s:
                return

    @property
    def busy(self) -> bool:
        """Whether brokers owe us anything."""
        return self._lanes.busy

    @property
    def has_requests(self) -> bool:
        """Whether requests with batches are under way."""
        return self._lanes.holds_tokens

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
            topic, leader = self._leader(box, now_s)
            if topic is None or self._lanes.in_flight(leader) >= REQUESTS_UNDER_WAY:
                continue
            size = sizes.get(leader, 0) + len(box.waiting[0].data)
            if size > REQUEST_BYTES and leader in loads:
                continue
            sizes[leader] = size
            topics[topic.name] = topic
            loads.setdefault(leader, []).append((box, box.take()))
        for leader, batches in loads.items():
            self._send(leader, batches, topics)
        return bool(loads)

    def _leader(self, box: Outbox, now_s: float) -> tuple[Topic | None, int]:
        """The topic and the leader, if that one can take a request now; no topic if not."""
        leader = -1
        try:
            topic = self._lanes.topic(box.partition.topic)
            if topic is not None:
                leader = leader_in(topic, box.partition)
                topic = topic if self._lanes.ready(leader) is not None else None
        except KafkaError as error:
            may_pass = error.code.retriable or error.code == ErrorCode.BROKER_NOT_AVAILABLE
            if may_pass and not isinstance(error, UnknownTopicError):
                self._cluster.forget()
                box.not_before_s = now_s + pause_s(box.waiting[0].attempts + 1)
            else:
                self._refuse(box, box.waiting[0], error)
            return None, leader
        return topic, leader

    def _send(self, leader: int, batches: list[tuple[Outbox, Batch]], topics: dict[str, Topic]) -> None:
        load = Load(batches, {topic.topic_id: name for name, topic in topics.items()})
        has_ids = all(topic.topic_id != ZERO_ID for topic in topics.values())
        newest = ApiKey.PRODUCE.newest if has_ids else LAST_BY_NAME
        try:
            connection = self._lanes.ready(leader)
            assert connection is not None, "the lane was ready when the batches were taken"
            version = connection.version(ApiKey.PRODUCE, newest=newest)
        except KafkaError as error:
            for box, batch in batches:
                self._refuse(box, batch, error)
            return
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
        self._lanes.send(leader, ApiKey.PRODUCE, version, request, ProduceResponse, load, answered=answered)

    def _take_in(self, arrival: Arrival[Load]) -> None:
        outcome = arrival.outcome
        if isinstance(outcome, KafkaError):
            self._cluster.forget()
            for box, batch in arrival.token.batches:
                self._give_back(box, batch)
            return
        if outcome is None:  # acks=0: it is written, and that is all we shall know
            for box, batch in arrival.token.batches:
                box.acknowledge(batch, -1)
            return
        assert isinstance(outcome, ProduceResponse)
        names = arrival.token.names
        results: dict[TopicPartition, PartitionProduceResponse] = {}
        for topic in outcome.responses:
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
