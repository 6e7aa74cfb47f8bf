"""A producer without I/O: `append` takes records, `tick` sends and settles them.

    machine = ProducerMachine(bootstrap, ProducerSettings(), random)
    batch = machine.append("orders", None, b"key", b"value", (), timestamp_ms, on_delivery, now_s)
    machine.tick(now_s)             # then write what the connections have unsent
    machine.wake_s                  # when to tick again if no socket stirs
    machine.due                     # callbacks to run

`append` returns None if the record must wait: for the metadata of its topic or for room in `buffer.memory`. The caller
ticks and tries again until `max.block.ms` is over.

A record belongs to the open batch of its partition. `tick` sends the first batch of a partition when it is full, has
lingered, or must not wait any longer (flush, close, no room left): at most one batch of each partition per request, the
partitions in turn, and at most `max.in.flight` requests in flight per broker.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, final

from ixion._native import i64
from ixion.clients.address import Address
from ixion.clients.core.backoff import Random
from ixion.clients.core.checks import size_of_headers
from ixion.clients.core.client import Client
from ixion.clients.core.producer.batch import Batch, Due, OnDelivery
from ixion.clients.core.producer.identity import Identity
from ixion.clients.core.producer.outbox import Outbox
from ixion.clients.core.producer.partitioner import Sticky, keyed_partition
from ixion.clients.core.producer.sender import Sender
from ixion.clients.core.producer.settings import ProducerSettings
from ixion.clients.core.producer.turns import Turns
from ixion.clients.faults import DisconnectedError, TimedOutError
from ixion.clients.log import log_lost
from ixion.clients.metadata import Topic, TopicPartition
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.records.builder import Headers

if TYPE_CHECKING:
    from ixion.clients.core.producer.transactions import Transactions

RECORD_OVERHEAD: Final = 61 + 21 + 10  # of a batch, of a record, of the sizes of key and value: never more


@final
class TopicQueues:
    """The outboxes of those partitions of one topic that have had records."""

    def __init__(self, topic: Topic) -> None:
        self.topic = topic
        self.sticky = Sticky()
        self.count = len(topic.partitions)
        self.boxes: list[Outbox | None] = [None] * self.count  # more, if the topic once had more partitions

    def renew(self, topic: Topic) -> None:
        """A topic may come back with fewer partitions. Batches for those that are gone wait in their outboxes until
        `delivery.timeout.ms`, in case the metadata is wrong; new records go to the others."""
        self.topic = topic
        self.count = len(topic.partitions)
        self.boxes.extend([None] * (self.count - len(self.boxes)))
        if self.sticky.current >= self.count:
            self.sticky.current = -1


class ProducerMachine:
    def __init__(self, bootstrap: Sequence[Address], settings: ProducerSettings, random: Random) -> None:
        self.settings = settings
        self.client = Client(bootstrap, settings.client, random)
        self.due: Due = deque()
        self.is_idempotent = settings.enable_idempotence
        self.active: dict[Outbox, None] = {}  # those that hold batches
        self.incomplete: dict[Batch, None] = {}
        self.is_closing = False
        self.used_bytes: i64 = 0  # of buffer.memory
        self.transactions: Transactions | None = None
        self.identity: Identity | None = None
        if settings.transactional_id is not None:
            from ixion.clients.core.producer.transactions import Transactions  # slow to import

            name, timeout_s = settings.transactional_id, settings.transaction_timeout_s
            self.identity = self.transactions = Transactions(self.client, self, name, timeout_s)
        elif self.is_idempotent:
            self.identity = Identity(self.client)
        self.sender = Sender(self)
        self._random = random
        self._topics: dict[str, TopicQueues] = {}
        self.turns = Turns(self._topics)  # of sends that wait
        self._changes: i64 = 0  # of the cluster, as last looked at
        self._batch_size: i64 = settings.batch_size
        self._buffer_memory: i64 = settings.buffer_memory
        self._max_request_size: i64 = settings.max_request_size

    @property
    def fatal(self) -> KafkaError | None:
        return self.sender.fatal

    def append(
        self,
        topic: str,
        partition: int | None,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
        timestamp_ms: i64,
        wish: OnDelivery | None,
        now_s: float,
    ) -> Batch | None:
        """The batch that now ends with the record; None if it must wait. KafkaError if it is refused."""
        if self.transactions is not None:
            self.transactions.check_open()
        queues = self._topics.get(topic)
        if queues is None or self._changes != self.client.cluster.changes:
            queues = self._look_up(topic, now_s)  # step 3
            if queues is None:
                return None
        size: i64 = RECORD_OVERHEAD
        if key is not None:
            size += len(key)
        if value is not None:
            size += len(value)
        if headers:
            size += size_of_headers(headers)
        if size > self._max_request_size or size > self._buffer_memory:
            self._refuse_size(size)  # step 7
        is_free = False
        if partition is None:
            chosen: i64 = self._choose(queues, topic, key, value)  # step 5
            is_free = chosen < 0
            if is_free:
                chosen = queues.sticky.current
                if chosen < 0:
                    chosen = self._move_on(queues, now_s)
        else:
            chosen = partition
            if chosen < 0 or chosen >= queues.count:
                text = f"topic {topic!r} has partitions 0 to {queues.count - 1}, not {chosen}"
                raise KafkaError(ErrorCode.INVALID_PARTITIONS, text)
        box = queues.boxes[chosen] or self._box(queues, chosen)  # step 8.1
        batch = box.open
        if batch is None or not box.append(key, value, headers, timestamp_ms):  # step 8.2
            if batch is not None:
                box.seal()
                self.sender.filled(batch.reserved, now_s)
                if is_free and queues.sticky.produced >= self._batch_size:
                    chosen = self._move_on(queues, now_s)
                    box = queues.boxes[chosen] or self._box(queues, chosen)
                    if box.open is not None and not box.append(key, value, headers, timestamp_ms):
                        box.seal()
            if box.open is None:
                reserved: i64 = max(size, self._batch_size)  # step 8.3
                if self.used_bytes + reserved > self._buffer_memory and self.used_bytes > 0:
                    self.sender.is_awake = True
                    return None
                batch = self._begin(box, now_s, reserved)  # step 8.4
                box.append(key, value, headers, timestamp_ms)
            else:
                batch = box.open
        if is_free:
            queues.sticky.produced += size - RECORD_OVERHEAD
            if queues.sticky.produced >= 2 * self._batch_size:
                self._move_on(queues, now_s)
        if wish is not None:
            batch.wishes.append((batch.count - 1, wish))  # step 8.5
        return batch

    def seal_all(self) -> None:
        """Seal all open batches, so that they do not linger."""
        for box in self.active:
            box.seal()
        self.sender.is_awake = True

    def tick(self, now_s: float) -> None:
        """Deliver answers, settle batches, send what can be sent."""
        self.client.tick(now_s)
        if self.identity is not None:
            self.identity.tick(now_s, bool(self.active))
            self.sender.fatal = self.sender.fatal or self.identity.fatal
        self.sender.step(now_s)

    @property
    def wake_s(self) -> float:
        """When `tick` has something to do even if no socket is ready and no record comes."""
        wake_s = min(self.client.wake_s, self.sender.wake_s)
        if self.identity is not None and (self.active or self.transactions is not None):
            wake_s = min(wake_s, self.identity.wake_s)
        return wake_s

    def settled(self, batch: Batch) -> None:
        """Free the memory of a settled batch, once no request holds it."""
        self.used_bytes -= batch.reserved
        batch.reserved = 0
        self.incomplete.pop(batch, None)

    def split(self, batch: Batch, parts: list[Batch]) -> None:
        self.incomplete.pop(batch, None)
        for part in parts:
            self.incomplete[part] = None

    def fail_all(self, error: KafkaError) -> None:
        """Fail all remaining batches."""
        for box in list(self.active):
            box.abandon(error)
            box.is_active = False
        self.active.clear()
        self.incomplete.clear()
        self.used_bytes = 0

    def close(self, error: KafkaError, now_s: float) -> None:
        """Close the connections; unsettled batches fail with the error."""
        self.is_closing = True
        self.fail_all(error)  # step 10.3
        self.client.close(error, now_s)  # step 10.4

    def the_transactions(self) -> Transactions:
        """ValueError for a producer without a transactional id."""
        if self.transactions is None:
            raise ValueError("this producer has no transactional_id, so it has no transactions")
        return self.transactions

    def commit(self) -> None:
        """Commit the open transaction once all its records are written."""
        self.the_transactions().commit()
        self.seal_all()

    @property
    def has_flying(self) -> bool:
        """Whether a request with batches is in flight."""
        return any(box.flying for box in self.active)

    def abort(self) -> None:
        """Abort the open transaction: unsent records fail, the broker discards the others."""
        self.the_transactions().abort()
        self.sender.refused = None
        self.drop_unsent()
        self.sender.is_awake = True

    def drop_unsent(self) -> None:
        """Fail all batches that do not fly, because their transaction is aborted: when the abort begins, and again when
        the last request has been answered, so that nothing is left for the next transaction."""
        error = KafkaError(ErrorCode.OPERATION_NOT_ATTEMPTED, "the transaction was aborted before it was sent")
        for box in self.active:
            for batch in box.drop_unsent(error):
                self.settled(batch)

    def hurry(self, batch: Batch) -> None:
        """A caller waits for this batch: send it now."""
        queues = self._topics.get(batch.place.topic)
        box = None if queues is None else queues.boxes[batch.place.partition]
        if box is not None and box.open is batch:
            box.seal()
            self.sender.is_awake = True

    def recover(self, now_s: float) -> None:
        """After an interrupt in the middle of something: drop all connections and send batches in flight again."""
        fault = DisconnectedError("interrupted by an exception")
        self.client.drop_connections(fault, now_s)
        if self.identity is not None:
            self.identity.forget_question()
        for box in list(self.active):
            box.reclaim()

    @property
    def unacknowledged(self) -> int:
        """Records that were accepted and are not settled yet. May be called without the lock."""
        return sum([int(batch.count) for batch in list(self.incomplete)])

    def let_go(self) -> bool:
        """The producer was dropped without close(): remaining records are still sent, unless they are in a transaction,
        which can no longer be committed. True if nothing is left."""
        if self.transactions is not None and self.incomplete:
            error = KafkaError(ErrorCode.OPERATION_NOT_ATTEMPTED, "the producer was dropped in a transaction")
            self.sender.refused = self.sender.refused or error
            self.fail_all(error)
        self.seal_all()
        if self.incomplete:
            return False
        if self.sender.refused is not None:
            log_lost(self.sender.refused)
        return True

    def metrics(self) -> dict[str, int]:
        """Counters and gauges at this moment, by Kafka's names where it has one."""
        sender = self.sender
        return {
            "record-send-total": sender.records,
            "record-error-total": sender.failures,
            "record-retry-total": sender.retries,
            "batch-split-total": sender.splits,
            "byte-total": sender.sent_bytes,
            "request-total": sender.requests,
            "requests-in-flight": sum(machine.in_flight for machine in self.client.machines),
            "connection-count": len(self.client.machines),
            "buffer-total-bytes": self.settings.buffer_memory,
            "buffer-available-bytes": self.settings.buffer_memory - self.used_bytes,
            "batches-incomplete": len(self.incomplete),
        }

    def why_it_waits(self, topic: str, seconds: float) -> KafkaError:
        """The fault of an `append` that had to wait for too long."""
        if topic not in self._topics:
            reason = self.client.cluster.reason(topic)
            if not reason and self.client.fault is not None:
                reason = self.client.fault.message
            because = f"; {reason}" if reason else ""
            return TimedOutError(f"topic {topic!r}: no metadata within {seconds:.3g} s{because}")
        text = f"no room in the buffer of {self.settings.buffer_memory} bytes within {seconds:.3g} s"
        return TimedOutError(text)

    def _look_up(self, topic: str, now_s: float) -> TopicQueues | None:
        cluster = self.client.cluster
        if self._changes != cluster.changes:
            self._changes = cluster.changes
            for name in list(self._topics):
                renewed = cluster.topics.get(name)
                if renewed is not None:
                    self._topics[name].renew(renewed)
        found = cluster.want(topic, now_s)
        queues = self._topics.get(topic)
        if queues is None and found is not None:
            queues = self._topics[topic] = TopicQueues(found)
        return queues

    def _choose(self, queues: TopicQueues, topic: str, key: bytes | None, value: bytes | None) -> int:
        """The partition of a record without one; -1 for the sticky partition."""
        settings = self.settings
        if settings.partitioner is not None:
            chosen = settings.partitioner(topic, key, value, queues.count)
            if chosen is None:
                return -1
            if not 0 <= chosen < queues.count:
                text = f"the partitioner chose {chosen} for topic {topic!r}, which has 0 to {queues.count - 1}"
                raise KafkaError(ErrorCode.INVALID_PARTITIONS, text)
            return chosen
        if key is None or settings.partitioner_ignore_keys:
            return -1
        return keyed_partition(key, queues.count)

    def _move_on(self, queues: TopicQueues, now_s: float) -> int:
        partitions = queues.topic.partitions
        led = [partition.number for partition in partitions if partition.leader >= 0]
        candidates = led or [partition.number for partition in partitions]
        lengths: list[int] | None = None
        if self.settings.adaptive_partitioning:
            stuck = self.sender.stuck
            if stuck:
                late_s = now_s - self.settings.availability_timeout_s
                taken = [each for each in candidates if stuck.get(partitions[each].leader, now_s) > late_s]
                candidates = taken or candidates
            lengths = []
            for number in candidates:
                box = queues.boxes[number]
                lengths.append(0 if box is None else box.queue_length)
        queues.sticky.choose(candidates, lengths, self._random())
        return queues.sticky.current

    def _box(self, queues: TopicQueues, partition: int) -> Outbox:
        settings = self.settings
        box = Outbox(
            TopicPartition(queues.topic.name, int(partition)),
            settings.batch_size,
            settings.compression,
            settings.compression_level,
            self.due,
            settings.transactional_id is not None,
        )
        queues.boxes[partition] = box
        return box

    def _begin(self, box: Outbox, now_s: float, reserved: i64) -> Batch:
        batch = box.begin(now_s, reserved)
        self.used_bytes += reserved
        self.incomplete[batch] = None
        if not box.is_active:
            box.is_active = True
            self.active[box] = None
            self.client.cluster.touch(box.place.topic, now_s)
        self.sender.opened(now_s)
        return batch

    def _refuse_size(self, size: int) -> None:
        if size > self._max_request_size:
            limit = f"max.request.size is {self._max_request_size}"
        else:
            limit = f"buffer.memory is {self._buffer_memory}"
        raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, f"a record of {size} bytes is too large: {limit}")
