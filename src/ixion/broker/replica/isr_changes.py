"""Asks the controller to change the in-sync replicas of partitions that this broker leads (AlterPartition).

A partition has one open change at a time, and this broker one request in flight; changes that come meanwhile go into
the next request. The answer decides what happens to a change:

| answer                                                          | the partition                                 |
|-----------------------------------------------------------------|-----------------------------------------------|
| success                                                         | has the in-sync replicas of the answer        |
| INELIGIBLE_REPLICA, OPERATION_NOT_ATTEMPTED                     | keeps the previous in-sync replicas            |
| FENCED_LEADER_EPOCH, INVALID_UPDATE_VERSION, UNKNOWN_TOPIC_ID,  | waits for a newer LeaderAndIsr, which          |
| UNKNOWN_TOPIC_OR_PARTITION, INVALID_REQUEST, NEW_LEADER_ELECTED | ends the change                                |
| any other, no answer, no controller                             | sends the change again                         |

An answer counts only if the same change is still open, the leader epoch is the one we lead in, and its partition epoch
is not older than ours (KAFKA-12686): a LeaderAndIsr may have come in between.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final, NamedTuple, cast

from ixion.broker.replica.controller_channel import ControllerChannel
from ixion.broker.replica.manager import ReplicaManager
from ixion.broker.replica.partition import Partition
from ixion.clients.faults import error_code
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.model.topic_partition import TopicPartition
from ixion.language.protocol.messages.k56_alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    PartitionData,
    ResponsePartitionData,
    TopicData,
)
from ixion.language.protocol.registry import ApiKey

logger = logging.getLogger(__name__)

OLDEST: Final = 2
NEWEST: Final = 3
EPOCHS_SINCE: Final = 3
PAUSE_S: Final = 0.05  # after an answer that asks for another attempt
FAULT_PAUSE_S: Final = 0.5  # after a fault of the connection, or without a controller
REFUSED: Final = frozenset({ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED})
OVERTAKEN: Final = frozenset(
    {
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NEW_LEADER_ELECTED,
    }
)


class Wanted(NamedTuple):
    """A change, with the epochs at which it began: in later epochs these replicas may not be in sync."""

    partition: Partition
    isr: tuple[int, ...]  # the same tuple object that the partition keeps while the change is open
    leader_epoch: int
    partition_epoch: int
    # Broker epochs of the followers when the change began. A follower that restarted with an empty disk has another
    # epoch, and must not be taken for the one that had caught up.
    epochs: dict[int, int]

    @property
    def open(self) -> bool:
        return self.partition.still_wants(self.isr)


class IsrChanges:
    """Make and use it on one loop."""

    def __init__(
        self, replicas: ReplicaManager, controller: ControllerChannel, broker_epoch: Callable[[], int]
    ) -> None:
        self._replicas = replicas
        self._controller = controller
        self._broker_epoch = broker_epoch
        self._waiting: dict[TopicPartition, Wanted] = {}
        self._stirred = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._complaint = ""

    def wanted(self, partition: Partition, isr: tuple[int, ...]) -> None:
        """Ask for these in-sync replicas."""
        epochs = {number: follower.broker_epoch for number, follower in partition.followers.items()}
        self._waiting[partition.key] = Wanted(partition, isr, partition.leader_epoch, partition.partition_epoch, epochs)
        self._stirred.set()
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run(), name="isr-changes")

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        while True:
            await self._stirred.wait()
            self._stirred.clear()
            changes = {key: change for key, change in self._waiting.items() if change.open}
            self._waiting = {}
            if not changes:
                continue
            try:
                pause_s = await self._ask(changes)
            except KafkaError as error:
                self._complain(str(error))
                self._again(changes)
                pause_s = FAULT_PAUSE_S
            except Exception:
                logger.exception("asking for other in-sync replicas failed; trying again")
                self._again(changes)
                pause_s = FAULT_PAUSE_S
            if pause_s:
                await asyncio.sleep(pause_s)

    async def _ask(self, changes: dict[TopicPartition, Wanted]) -> float:
        """Send one request. Returns the seconds to wait before the next one."""
        version = await self._controller.version(ApiKey.ALTER_PARTITION, oldest=OLDEST, newest=NEWEST)
        changes = {key: change for key, change in changes.items() if change.open}  # connecting may have taken long
        if not changes:
            return 0.0
        request = self._request(changes, version)
        answer = cast(AlterPartitionResponse, await self._controller.ask(ApiKey.ALTER_PARTITION, version, request))
        if answer.error_code != ErrorCode.NONE:
            self._complain(f"the controller answers {error_code(answer.error_code).name}")
            self._again(changes)
            return PAUSE_S
        self._complaint = ""
        answers = {(topic.topic_id, data.partition_index): data for topic in answer.topics for data in topic.partitions}
        repeated = {
            key: change
            for key, change in changes.items()
            if not self._settle(change, answers.get((change.partition.topic_id, change.partition.number)))
        }
        self._again(repeated)
        return PAUSE_S if repeated else 0.0

    def _request(self, changes: dict[TopicPartition, Wanted], version: int) -> AlterPartitionRequest:
        topics: dict[bytes, list[PartitionData]] = {}
        with_epochs = version >= EPOCHS_SINCE
        for change in changes.values():
            members = tuple(self._member(number, change.epochs) for number in change.isr) if with_epochs else ()
            data = PartitionData(
                partition_index=change.partition.number,
                leader_epoch=change.leader_epoch,
                new_isr=() if with_epochs else change.isr,
                new_isr_with_epochs=members,
                partition_epoch=change.partition_epoch,
            )
            topics.setdefault(change.partition.topic_id, []).append(data)
        return AlterPartitionRequest(
            broker_id=self._replicas.node_id,
            broker_epoch=self._broker_epoch(),
            topics=tuple(TopicData(topic_id=each, partitions=tuple(data)) for each, data in topics.items()),
        )

    def _member(self, number: int, epochs: dict[int, int]) -> BrokerState:
        """A replica with its broker epoch: that of a follower's fetches, or our own."""
        epoch = epochs[number] if number in epochs else self._broker_epoch()
        return BrokerState(broker_id=number, broker_epoch=epoch)

    def _settle(self, change: Wanted, answer: ResponsePartitionData | None) -> bool:
        """Apply the answer. False if the change must be sent again."""
        partition, isr = change.partition, change.isr
        if not change.open:
            return True
        code = ErrorCode.UNKNOWN_SERVER_ERROR if answer is None else error_code(answer.error_code)
        if answer is not None and code == ErrorCode.NONE:
            if answer.leader_epoch == partition.leader_epoch and answer.partition_epoch >= partition.partition_epoch:
                self._confirm(partition, answer)
        elif code in REFUSED:
            logger.info("%s: in-sync replicas %s refused: %s", partition.log.name, isr, code.name)
            self._set(partition, partition.isr)
        elif code not in OVERTAKEN:
            return False
        return True

    def _confirm(self, partition: Partition, answer: ResponsePartitionData) -> None:
        before = partition.isr
        counters = self._replicas.counters
        counters.isr_expands += any(number not in before for number in answer.isr)
        counters.isr_shrinks += any(number not in answer.isr for number in before)
        partition.partition_epoch = answer.partition_epoch
        self._set(partition, answer.isr)
        logger.info("%s: in-sync replicas %s, before %s", partition.log.name, answer.isr, before)

    def _set(self, partition: Partition, isr: tuple[int, ...]) -> None:
        partition.set_isr(isr)
        self._replicas.high_watermark_moved(partition)  # even if not: enough may be in sync now

    def _again(self, changes: dict[TopicPartition, Wanted]) -> None:
        for key, change in changes.items():
            self._waiting.setdefault(key, change)
        if self._waiting:
            self._stirred.set()

    def _complain(self, fault: str) -> None:
        if fault != self._complaint:
            self._complaint = fault
            logger.warning("in-sync replicas cannot be changed: %s; trying again", fault)
