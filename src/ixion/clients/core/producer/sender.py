"""Sends batches to the leaders of their partitions, and passes the answers to the outboxes.

Answers, and what follows:

A  no error, or a duplicate of an earlier write: acknowledged
B  a sequence out of order behind a batch that itself failed: goes back, and is sent again after it
C  out of order behind a batch in doubt: sent again in a new epoch
D  a retriable error (leader moved, too few replicas, connection lost): goes back, with a pause; a refusal that names
   the new leader (KIP-951) needs none
E  too large, with several records: split, unless it is in doubt: its parts could be written a second time
F  the broker's sequence numbers for this producer are not ours: refused, and the rest goes on in a new epoch
G  an error that ends the producer: nothing more can be sent
H  anything else: this batch is refused, later ones go on

While a transaction is aborted, every error but those of G ends the batch: nothing is sent again, split or not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ixion._native import i64
from ixion.clients.address import Address
from ixion.clients.core.connection import NEVER, ConnectionMachine, Outcome, Pending
from ixion.clients.core.producer.batch import Batch, ProducerIdentity
from ixion.clients.core.producer.outbox import Outbox
from ixion.clients.faults import AuthenticationError, FencedError, TimedOutError, error_code
from ixion.clients.metadata import Node
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.model.ids import ZERO_ID
from ixion.language.protocol.messages.k00_produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from ixion.language.protocol.registry import ApiKey

if TYPE_CHECKING:
    from ixion.clients.core.producer.machine import ProducerMachine

# Full batches are sent together while a broker is busy with earlier ones; and how long the first of them waits. Sending
# each alone took a quarter of the time of a producer of 100-byte records, and half of it with 1 KB.
GATHERED_BYTES: Final = 64 * 1024
GATHER_S: Final = 0.001
LAST_BY_NAME: Final = 12  # later versions of Produce name topics by id only
LAST_OF_V1: Final = 11  # in later versions a broker adds the partition to the transaction by itself
MAY_BE_WRITTEN: Final = (ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, ErrorCode.REQUEST_TIMED_OUT)
NUMBERS_DIFFER: Final = (
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.UNKNOWN_PRODUCER_ID,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.UNKNOWN_SERVER_ERROR,
)
FATAL: Final = (
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
)


class Sender:
    def __init__(self, owner: ProducerMachine) -> None:
        settings = owner.settings
        self.fatal: KafkaError | None = None
        self.refused: KafkaError | None = None  # the first failure since the last flush
        self.is_awake = False  # whether `step` may find something to send
        self.wake_s = NEVER
        self.records: i64 = 0
        self.failures: i64 = 0
        self.retries: i64 = 0
        self.splits: i64 = 0
        self.requests: i64 = 0
        self.sent_bytes: i64 = 0
        self.stuck: dict[int, float] = {}  # brokers that hold up waiting batches, and since when
        self.most_attempts: i64 = settings.retries
        self._owner = owner
        self._client = owner.client
        self._acks = settings.acks
        self._linger_s = settings.linger_s
        self._max_in_flight = settings.max_in_flight
        self._watches_brokers = settings.adaptive_partitioning and settings.availability_timeout_s > 0
        # Without sequence numbers a second batch in flight could overtake the retry of the first.
        self._most_flying = settings.max_in_flight if owner.is_idempotent else 1  # step 11.9
        self._delivery_timeout_s = settings.delivery_timeout_s
        self._max_request_size = settings.max_request_size
        self._turn: i64 = 0
        self._filled: i64 = 0  # bytes of batches that filled up since the last step

    def opened(self, now_s: float) -> None:
        """Note that a batch was begun."""
        if self._linger_s <= 0:
            self.is_awake = True
        elif now_s + self._linger_s < self.wake_s:
            self.wake_s = now_s + self._linger_s

    def filled(self, size: i64, now_s: float) -> None:
        """A batch is full: send it at once, or with the next ones while a broker has requests to answer."""
        self._filled += size
        is_enough = self._filled >= GATHERED_BYTES or now_s >= self.wake_s
        if is_enough or self._linger_s <= GATHER_S or not self._client.is_owed:
            self.is_awake = True
        elif now_s + GATHER_S < self.wake_s:
            self.wake_s = now_s + GATHER_S

    def step(self, now_s: float) -> None:
        """Settle expired batches, and send everything that can be sent now."""
        self.is_awake = False
        self._filled = 0
        self.wake_s = NEVER
        owner = self._owner
        if not owner.active:
            return
        boxes = list(owner.active)
        for box in boxes:
            self._expire(box, now_s)  # step 11.10
            if box.is_idle:
                box.is_active = False
                del owner.active[box]
        if self.fatal is not None:
            self._end(self.fatal)
            return
        self._change_epoch()
        while self._send_round(now_s):  # step 11.12: no sleep while one is ready
            pass

    def _end(self, fatal: KafkaError) -> None:
        self.refused = self.refused or fatal
        self._owner.fail_all(fatal)

    def _change_epoch(self) -> None:
        """If an outbox wants a new epoch, raise the producer's; each outbox adopts it as soon as it can."""
        identity = self._owner.identity
        if identity is None:
            return
        for box in self._owner.active:
            if box.wants_epoch and box.can_change_epoch:
                if box.identity is identity.current:
                    identity.bump()
                if identity.is_known and box.identity is not identity.current:
                    box.adopt(identity.current)

    def _send_round(self, now_s: float) -> bool:
        """One request to every leader that may get one, with at most one batch of each partition."""
        owner = self._owner
        identity: ProducerIdentity | None = None
        if owner.identity is not None:
            if not owner.identity.is_known:
                return False
            identity = owner.identity.current
        transactions = owner.transactions
        is_hurried = owner.is_closing or owner.turns.needs_room
        boxes = list(owner.active)
        count = len(boxes)
        loads: dict[int, ProduceCall] = {}
        held_up: list[Outbox] = []
        self._turn += 1
        first: i64 = self._turn
        for step in range(count):
            box = boxes[(first + step) % count]
            is_open = not box.waiting
            if is_open:
                batch = box.open
                if batch is None or len(box.flying) >= self._most_flying:
                    continue
                ripe_s = batch.born_s + self._linger_s  # step 11.2
                if now_s < ripe_s and not is_hurried:
                    self.wake_s = min(self.wake_s, ripe_s)  # step 11.3
                    continue
            if now_s < box.not_before_s:
                self.wake_s = min(self.wake_s, box.not_before_s)
                continue
            if transactions is not None and not transactions.may_write(box.place):
                continue
            if not is_open and not box.may_send(self._most_flying, identity):  # step 11.7
                held_up.append(box)
                continue
            machine, node_id = self._leader(box, now_s)
            if machine is None:
                held_up.append(box)
                continue
            if is_open:
                box.seal()
                if not box.may_send(self._most_flying, identity):
                    continue
            load = loads.get(node_id)
            size = box.waiting[0].size
            if load is None:
                load = loads[node_id] = ProduceCall(self, machine)  # step 11.15
            elif load.size + size > self._max_request_size:
                continue
            load.size += size
            load.batches.append((box, box.take()))  # steps 11.6 and 11.8
        for load in loads.values():
            self._send(load, now_s)  # steps 11.13 and 11.14
        if self._watches_brokers:
            self._note_stuck(held_up, loads, now_s)
        return bool(loads)

    def _note_stuck(self, held_up: list[Outbox], served: dict[int, ProduceCall], now_s: float) -> None:
        """Note the brokers that hold up sendable batches (KIP-794): the partitioner avoids them after a while."""
        stuck: dict[int, float] = {}
        for box in held_up:
            partition = self._client.cluster.leader(box.place)
            if partition is not None and partition.leader not in served:
                stuck[partition.leader] = self.stuck.get(partition.leader, now_s)
        self.stuck = stuck

    def _leader(self, box: Outbox, now_s: float) -> tuple[ConnectionMachine | None, int]:
        """The connection to the leader, if it can take a request now."""
        client = self._client
        partition = client.cluster.leader(box.place)  # step 11.1
        if partition is None:
            client.cluster.touch(box.place.topic, now_s)
            client.cluster.mark_stale()  # step 11.4
            return None, -1
        machine = client.ready(partition.leader, now_s)  # step 11.5
        if machine is None:
            if not client.is_connecting(partition.leader):
                self.wake_s = min(self.wake_s, client.may_try_s(partition.leader))
            return None, -1
        if now_s < machine.throttled_until_s:
            self.wake_s = min(self.wake_s, machine.throttled_until_s)
            return None, -1
        return (machine if machine.may_send(self._max_in_flight, now_s) else None), partition.leader

    def _send(self, load: ProduceCall, now_s: float) -> None:
        owner = self._owner
        topics = self._client.cluster.topics
        data: dict[str, list[PartitionProduceData]] = {}
        has_ids = True
        for box, batch in load.batches:
            part = PartitionProduceData(index=box.place.partition, records=memoryview(batch.data))
            data.setdefault(box.place.topic, []).append(part)
            has_ids = has_ids and topics[box.place.topic].topic_id != ZERO_ID
            self.sent_bytes += len(batch.data)
            if batch.attempts > 1:
                self.retries += batch.count
        try:
            newest = ApiKey.PRODUCE.newest if has_ids else LAST_BY_NAME
            if owner.transactions is not None and not owner.transactions.uses_v2:
                newest = LAST_OF_V1
            version = load.machine.version(ApiKey.PRODUCE, newest=newest)
        except KafkaError as fault:
            for box, batch in load.batches:
                self.refuse(box, batch, fault)
            return
        for name in data:
            load.names[topics[name].topic_id] = name
        settings = self._owner.settings
        request = ProduceRequest(
            transactional_id=settings.transactional_id,
            acks=self._acks,
            timeout_ms=int(settings.client.request_timeout_s * 1000),
            topic_data=tuple(
                [
                    TopicProduceData(name=name, topic_id=topics[name].topic_id, partition_data=tuple(parts))
                    for name, parts in data.items()
                ]
            ),
        )
        self.requests += 1  # step 11.11
        load.machine.send(ApiKey.PRODUCE, version, request, load, now_s, answered=self._acks != 0)  # step 11.16

    def settle(
        self, box: Outbox, batch: Batch, result: PartitionProduceResponse | None, nodes: dict[int, Node], now_s: float
    ) -> None:
        """Handle a broker's answer about one batch; None if the answer leaves it out."""
        if result is not None and result.error_code == 0:  # A, by far the most
            self.acknowledge(box, batch, result.base_offset)
            return
        code = ErrorCode.UNKNOWN_SERVER_ERROR if result is None else error_code(result.error_code)
        said = None if result is None else result.error_message
        if result is not None and code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:  # A
            self.acknowledge(box, batch, result.base_offset)
        elif self._is_aborting and code not in FATAL:
            self.give_back(box, batch, now_s, in_doubt=code in MAY_BE_WRITTEN)
        elif code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and not box.is_first(batch):  # B
            self.give_back(box, batch, now_s, in_doubt=False)
        elif code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and box.is_unresolved and not batch.is_done:  # C
            box.resend_in_new_epoch(batch)
        elif code.retriable and batch.attempts <= self.most_attempts:  # D
            is_news = False
            if code.stale_metadata:
                assert result is not None
                leader = result.current_leader
                is_news = self._client.cluster.hint(box.place, leader.leader_id, leader.leader_epoch, nodes)
                if not is_news:
                    self._client.cluster.mark_stale()
            self.give_back(box, batch, now_s, in_doubt=code in MAY_BE_WRITTEN, at_once=is_news)
        elif code == ErrorCode.MESSAGE_TOO_LARGE and batch.count > 1 and not (batch.is_done or batch.is_in_doubt):  # E
            self.splits += 1
            parts = batch.split(max(len(batch.data) // 2, 1), box.transactional)
            self._owner.split(batch, parts)
            box.replace(batch, parts)
        else:
            text = f"{box.place}: {said or code.explanation}"
            fenced = code == ErrorCode.PRODUCER_FENCED or (
                code == ErrorCode.INVALID_PRODUCER_EPOCH and box.transactional
            )
            error = FencedError(code, text) if fenced else KafkaError(code, text)
            if code in FATAL:  # G
                self.fatal = self.fatal or error
            if self._owner.is_idempotent and code in NUMBERS_DIFFER:  # F
                self._count_refusal(batch, error)
                box.refuse_and_restart(batch, error)
                self._owner.settled(batch)
            else:
                self.refuse(box, batch, error)  # H

    @property
    def _is_aborting(self) -> bool:
        """Whether the transaction is being aborted: no batch is sent again."""
        transactions = self._owner.transactions
        return transactions is not None and transactions.is_aborting

    def acknowledge(self, box: Outbox, batch: Batch, base_offset: int) -> None:
        self.records += batch.count
        box.acknowledge(batch, base_offset)
        self._owner.settled(batch)

    def give_back(self, box: Outbox, batch: Batch, now_s: float, *, in_doubt: bool, at_once: bool = False) -> None:
        if self._is_aborting and not batch.is_done:
            batch.settle(-1, KafkaError(ErrorCode.OPERATION_NOT_ATTEMPTED, "the transaction was aborted"), box.due)
        pause_s = 0.0 if at_once else self._client.retry.pause_s(int(batch.attempts))
        was_done = batch.is_done
        box.give_back(batch, now_s + pause_s, in_doubt)
        if was_done:
            self._owner.settled(batch)

    def refuse(self, box: Outbox, batch: Batch, error: KafkaError) -> None:
        self._count_refusal(batch, error)
        box.refuse(batch, error)
        self._owner.settled(batch)

    def _count_refusal(self, batch: Batch, error: KafkaError) -> None:
        if not batch.is_done:
            self.failures += batch.count
            self.refused = self.refused or error
            if self._owner.transactions is not None:
                self._owner.transactions.fail(error)

    def _expire(self, box: Outbox, now_s: float) -> None:
        """Fail batches whose first record is older than `delivery.timeout.ms`."""
        oldest_s = now_s - self._delivery_timeout_s
        for batch in list(box.flying):
            if batch.born_s <= oldest_s and not batch.is_done:
                self._give_up(box, batch)
        for batch in box.returned():
            if batch.born_s <= oldest_s:
                self._give_up(box, batch)
        while box.waiting and box.waiting[0].born_s <= oldest_s:
            self._give_up(box, box.waiting[0])
        if box.open is not None and box.open.born_s <= oldest_s and not box.waiting:
            last = box.open
            box.seal()
            self._give_up(box, last)
        self.wake_s = min(self.wake_s, box.oldest_s + self._delivery_timeout_s)

    def _give_up(self, box: Outbox, batch: Batch) -> None:
        fault = self._client.fault
        because = f"; {fault.message}" if isinstance(fault, AuthenticationError) else ""
        error = TimedOutError(f"{box.place}: not delivered within {self._delivery_timeout_s:.3g} s{because}")
        self._count_refusal(batch, error)
        is_flying = batch in box.flying
        box.expire(batch, error)
        if not is_flying:
            self._owner.settled(batch)


class ProduceCall(Pending):
    """The batches of one Produce request."""

    def __init__(self, sender: Sender, machine: ConnectionMachine) -> None:
        self.sender = sender
        self.machine = machine
        self.batches: list[tuple[Outbox, Batch]] = []
        self.names: dict[bytes, str] = {}  # topics by the ids they were sent under
        self.size: i64 = 0

    def complete(self, outcome: Outcome, now_s: float) -> None:
        sender = self.sender
        results: dict[str, dict[int, PartitionProduceResponse]] = {}  # by topic and partition
        nodes: dict[int, Node] = {}
        if isinstance(outcome, ProduceResponse):
            for topic in outcome.responses:
                name = topic.name or self.names.get(topic.topic_id, "")
                of_topic = results.setdefault(name, {})
                for result in topic.partition_responses:
                    of_topic[result.index] = result
            for end in outcome.node_endpoints:
                nodes[end.node_id] = Node(end.node_id, Address(end.host, end.port), end.rack)
        for box, batch in self.batches:
            if batch not in box.flying:
                continue  # the producer was closed meanwhile
            if isinstance(outcome, ProduceResponse):
                of_place = results.get(box.place.topic)
                found = None if of_place is None else of_place.get(box.place.partition)
                sender.settle(box, batch, found, nodes, now_s)
            elif outcome is None:  # acks=0: written to the socket, and no answer follows
                sender.acknowledge(box, batch, -1)
            elif batch.attempts > sender.most_attempts and isinstance(outcome, KafkaError):
                batch.is_in_doubt = True
                sender.refuse(box, batch, outcome)
            else:
                sender.give_back(box, batch, now_s, in_doubt=True)
