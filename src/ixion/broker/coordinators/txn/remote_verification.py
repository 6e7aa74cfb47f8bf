"""Verifies the first write of a transaction with a coordinator on another broker (AddPartitionsToTxn).

The transaction may end, and its marker be written, before the coordinator's answer arrives. The verified write would
then open a transaction that no producer ends. So a guard is taken before the coordinator is asked: the leader epoch of
the partition, and the producer's entry in its log, which every write and every marker of this producer replaces. If
either has changed, the write is refused with a retriable code; the client retries and is verified again.

    guard taken, coordinator asked      coordinator: in the open transaction      marker written: another entry
    answer here: the guard is broken, the write is refused                        (without a guard it would hang)
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection
from typing import Final, NamedTuple, cast

from ixion.broker.coordinators.txn.spread_markers import grouped
from ixion.broker.coordinators.txn.verification import Client, Verified, understood
from ixion.broker.log.producer_entry import ProducerEntry
from ixion.broker.metadata.image import ClusterImage
from ixion.broker.replica.broker_channels import BrokerChannels
from ixion.broker.replica.coordinator_log import CoordinatorLog
from ixion.broker.replica.manager import ReplicaManager
from ixion.clients.faults import error_code
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.model.topic_partition import TopicPartition
from ixion.language.protocol.messages.k24_add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from ixion.language.protocol.registry import ApiKey

logger = logging.getLogger(__name__)

OLDEST: Final = 4
NEWEST: Final = 5
Codes = dict[TopicPartition, ErrorCode]


class Guard(NamedTuple):
    leader_epoch: int
    entry: ProducerEntry | None


class RemoteVerification:
    def __init__(
        self, node_id: int, image: ClusterImage, log: CoordinatorLog, replicas: ReplicaManager, channels: BrokerChannels
    ) -> None:
        self._node_id = node_id
        self._image = image
        self._log = log
        self._replicas = replicas
        self._channels = channels
        self._tasks: set[asyncio.Task[None]] = set()

    def coordinator_of(self, transactional_id: str) -> int:
        """The broker to ask; -1 if that is this broker, or none is known."""
        partition = self._image.partition(self._log.name, self._log.partition_for(transactional_id))
        return -1 if partition is None or partition.leader == self._node_id else partition.leader

    def verify(
        self,
        broker_id: int,
        client: Client,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        partitions: Collection[TopicPartition],
        done: Verified,
    ) -> None:
        """`done` gets a code per partition; records of partitions with NONE must be appended inside `done`."""
        work = self._verify(broker_id, client, transactional_id, producer_id, epoch, tuple(partitions), done)
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _verify(
        self,
        broker_id: int,
        client: Client,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        partitions: tuple[TopicPartition, ...],
        done: Verified,
    ) -> None:
        guards = {key: self._guard(key, producer_id) for key in partitions}
        transaction = AddPartitionsToTxnTransaction(
            transactional_id=transactional_id,
            producer_id=producer_id,
            producer_epoch=epoch,
            verify_only=not client.adds,
            topics=tuple(AddPartitionsToTxnTopic(name=name, partitions=some) for name, some in grouped(partitions)),
        )
        codes = await self._ask(broker_id, transaction, partitions)
        try_again = ErrorCode.NOT_ENOUGH_REPLICAS if client.produces else ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        for key, guard in guards.items():
            if codes[key] == ErrorCode.NETWORK_EXCEPTION or guard != self._guard(key, producer_id):
                codes[key] = try_again
            else:
                codes[key] = understood(client, codes[key])
        try:
            done(codes)
        except Exception:
            logger.exception("a write of producer %d failed after it was verified", producer_id)

    async def _ask(
        self, broker_id: int, transaction: AddPartitionsToTxnTransaction, partitions: tuple[TopicPartition, ...]
    ) -> Codes:
        request = AddPartitionsToTxnRequest(
            transactions=(transaction,),
            v3_and_below_transactional_id="",
            v3_and_below_producer_id=0,
            v3_and_below_producer_epoch=0,
            v3_and_below_topics=(),
        )
        codes: Codes = dict.fromkeys(partitions, ErrorCode.NETWORK_EXCEPTION)
        try:
            asked = self._channels.ask(broker_id, ApiKey.ADD_PARTITIONS_TO_TXN, request, oldest=OLDEST, newest=NEWEST)
            answer = cast(AddPartitionsToTxnResponse, await asked)
        except KafkaError as error:
            logger.info("broker %d cannot verify %s: %s", broker_id, transaction.transactional_id, error)
            return codes
        except Exception:  # such as an unreadable certificate: the client must get an answer
            logger.exception("broker %d cannot verify %s", broker_id, transaction.transactional_id)
            return codes
        if answer.error_code != ErrorCode.NONE:
            return dict.fromkeys(partitions, error_code(answer.error_code))
        for result in answer.results_by_transaction:
            for topic in result.topic_results:
                for each in topic.results_by_partition:
                    codes[topic.name, each.partition_index] = error_code(each.partition_error_code)
        return codes

    def _guard(self, key: TopicPartition, producer_id: int) -> Guard:
        partition = self._replicas.partitions.get(key)
        if partition is None or not partition.leads:
            return Guard(-1, None)
        return Guard(partition.leader_epoch, partition.log.producers.producers.get(producer_id))
