"""Sends records: batched per partition, several requests under way, written once and in order.

    with Producer(cluster) as producer:
        producer.send("orders", b"value", key=b"order-17")

There is no thread behind it. `send` adds to the open batch of the partition and, when one is full or has lingered,
sends it and takes in what has been answered; `poll` does the same for a caller that has nothing to send at the moment,
`flush` until all is settled. A thread would gain nothing: under the interpreter's lock each hop to it costs more than
the work.

Every record that `send` accepts gets exactly one call of its `on_delivery`, with its offset or an error, whatever the
brokers answer and however the producer ends; callbacks run within `send`, `poll`, `flush` and `close`. A failure is
also raised by the next `flush` or `close`, so that it cannot pass unnoticed. Leaving a `with` block on an exception
sends nothing more: records that are not acknowledged fail.

`poll` never blocks for longer than its caller says; `send` may wait for the metadata of a new topic and for room in the
buffer. Not thread-safe.
"""

from __future__ import annotations

import time
from collections import deque
from types import TracebackType
from typing import Final

from ixion.clients.cluster import Cluster
from ixion.clients.faults import TimedOutError
from ixion.clients.identity import new_identity
from ixion.clients.metadata import TopicPartition
from ixion.clients.outbox import NOBODY, Due, OnDelivery, Outbox, ProducerIdentity
from ixion.clients.partitioner import Sticky, keyed_partition
from ixion.clients.sender import Sender
from ixion.model.errors import ErrorCode, KafkaError
from ixion.records.builder import Headers
from ixion.records.compression import Codec

BATCH_BYTES: Final = 16 * 1024
BUFFER_BYTES: Final = 32 * 1024 * 1024
SOON_S: Final = 0.001  # when to look again at a batch that has lingered but must wait for those before it
LONG_S: Final = 1.0
NEVER: Final = float("inf")


class Producer:
    def __init__(
        self,
        cluster: Cluster,
        *,
        acks: int = -1,
        idempotent: bool = True,
        codec: Codec = Codec.NONE,
        level: int | None = None,
        linger_ms: float = 5,
        batch_bytes: int = BATCH_BYTES,
        buffer_bytes: int = BUFFER_BYTES,
        create_topics: bool = True,
        request_timeout_s: float = 30.0,
        delivery_timeout_s: float = 120.0,
    ) -> None:
        """`acks` is -1 (all), 1 or 0; less than all cannot be idempotent. `buffer_bytes` bounds what is not settled:
        beyond it `send` waits."""
        self._cluster = cluster
        self._idempotent = idempotent and acks == -1
        self._codec = codec
        self._level = level
        self._linger_s = linger_ms / 1000
        self._batch_bytes = batch_bytes
        self._buffer_bytes = buffer_bytes
        self._create_topics = create_topics
        self._sender = Sender(
            cluster,
            acks=acks,
            idempotent=self._idempotent,
            request_timeout_s=request_timeout_s,
            delivery_timeout_s=delivery_timeout_s,
        )
        self._identity: ProducerIdentity | None = None
        self._by_topic: dict[str, dict[int, Outbox]] = {}  # cheaper to look into than a dict by topic and partition
        self._boxes: list[Outbox] = []  # the same, all of them
        self._stickies: dict[str, Sticky] = {}
        self._due_s = NEVER  # when the first open batch has lingered
        self._due: Due = deque()  # callbacks
        self._is_closed = False

    def __enter__(self) -> Producer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if error is None:
            self.close()
        else:
            text = f"not acknowledged when the producer was left on {type(error).__name__}"
            self._abandon(KafkaError(ErrorCode.OPERATION_NOT_ATTEMPTED, text))

    def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Headers = (),
        timestamp_ms: int | None = None,
        partition: int | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> None:
        """Hand over a record; KafkaError if the topic or partition is not there or the producer has failed for good."""
        if self._sender.fatal is not None:
            raise self._sender.fatal
        if self._is_closed:
            raise ValueError("the producer is closed")
        now_s = time.monotonic()
        if timestamp_ms is None:
            timestamp_ms = time.time_ns() // 1_000_000
        free = partition is None and key is None
        if partition is None:
            partition = self._stick(topic) if key is None else self._keyed(topic, key)
        box = self._box(topic, partition)
        is_sealed = False
        while not box.append(key, value, headers, timestamp_ms, on_delivery, now_s):
            box.seal()
            is_sealed = True
            if free:
                box = self._box(topic, self._move_on(topic))
        if box.born_s == now_s:
            self._due_s = min(self._due_s, now_s + self._linger_s)
        if is_sealed or now_s >= self._due_s:
            self._pump(now_s, 0)
            self._wait_for_room()

    def poll(self, wait_s: float = 0.0) -> None:
        """Send what has lingered and take in answers, waiting up to `wait_s` for one."""
        self._pump(time.monotonic(), wait_s)

    def flush(self, timeout_s: float | None = None) -> None:
        """Return when every record is settled. Raises the first failure since the last flush."""
        end_s = NEVER if timeout_s is None else time.monotonic() + timeout_s
        while busy := [box for box in self._boxes if not box.is_idle]:
            for box in busy:
                box.seal()
            self._sender.step(busy, max(min(LONG_S, end_s - time.monotonic()), 0))
            self._after_step()
            if not self._sender.has_requests:
                for box in busy:
                    box.reclaim()
            self._nap()
            if time.monotonic() > end_s:
                raise TimedOutError(f"records for {len(busy)} partitions are not settled within {timeout_s:.3g} s")
        self._due_s = NEVER
        self._tell()
        failure, self._sender.refused = self._sender.refused, None
        if failure is not None:
            raise failure

    def close(self, timeout_s: float | None = None) -> None:
        """Flush and hang up. What is not settled by then, or when a callback raises, fails."""
        try:
            self.flush(timeout_s)
        finally:
            self._abandon(TimedOutError("not acknowledged before the producer was closed"))

    @property
    def buffered_bytes(self) -> int:
        """Sealed and not settled."""
        return sum(box.size_in_bytes for box in self._boxes)

    def _pump(self, now_s: float, wait_s: float) -> None:
        due_s = NEVER
        for box in self._boxes:
            if box.builder is None:
                continue
            ripe_s = box.born_s + self._linger_s
            if now_s < ripe_s:
                due_s = min(due_s, ripe_s)
            elif box.waiting or len(box.flying) >= self._sender.most_flying:
                due_s = min(due_s, now_s + SOON_S)  # it may as well go on growing
            else:
                box.seal()
        self._due_s = due_s
        self._sender.step(self._boxes, min(wait_s, max(due_s - now_s, 0)))
        self._after_step()

    def _wait_for_room(self) -> None:
        while self.buffered_bytes > self._buffer_bytes:
            self._pump(time.monotonic(), LONG_S)
            self._nap()

    def _nap(self) -> None:
        """When no answer is due, only the pause before a retry is being waited for."""
        if not self._sender.busy and any(box.waiting for box in self._boxes):
            time.sleep(SOON_S)

    def _after_step(self) -> None:
        if self._sender.fatal is not None:
            self._sender.refused = self._sender.fatal
            for box in self._boxes:
                box.abandon(self._sender.fatal)
            self._sender.close()  # no answer can change anything any more
        self._tell()

    def _tell(self) -> None:
        """Run the callbacks that are due. One that raises has been run; the others stay due."""
        while self._due:
            wish, delivery = self._due.popleft()
            wish(delivery)

    def _abandon(self, error: KafkaError) -> None:
        """Hang up and fail all that is left. Every callback runs; the first exception of one is raised afterwards."""
        self._is_closed = True
        self._sender.close()
        for box in self._boxes:
            box.abandon(error)
        fault: BaseException | None = None
        while self._due:
            try:
                self._tell()
            except BaseException as raised:
                fault = fault or raised
        if fault is not None:
            raise fault

    def _box(self, topic: str, partition: int) -> Outbox:
        boxes = self._by_topic.setdefault(topic, {})
        box = boxes.get(partition)
        if box is None:
            count = len(self._cluster.topic(topic, create=self._create_topics).partitions)
            if not 0 <= partition < count:
                text = f"topic {topic!r} has partitions 0 to {count - 1}, not {partition}"
                raise KafkaError(ErrorCode.INVALID_PARTITIONS, text)
            if self._identity is None:
                self._identity = new_identity(self._cluster) if self._idempotent else NOBODY
            place = TopicPartition(topic, partition)
            box = Outbox(place, self._identity, self._batch_bytes, self._codec, self._level, self._due)
            boxes[partition] = box
            self._boxes.append(box)
        return box

    def _keyed(self, topic: str, key: bytes) -> int:
        return keyed_partition(key, len(self._cluster.topic(topic, create=self._create_topics).partitions))

    def _stick(self, topic: str) -> int:
        sticky = self._stickies.get(topic)
        return self._move_on(topic) if sticky is None else sticky.current

    def _move_on(self, topic: str) -> int:
        partitions = self._cluster.topic(topic, create=self._create_topics).partitions
        led = [partition.number for partition in partitions if partition.leader >= 0]
        return self._stickies.setdefault(topic, Sticky()).choose(led or [partition.number for partition in partitions])
