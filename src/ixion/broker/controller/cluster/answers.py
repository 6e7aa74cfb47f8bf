"""Handles answers of brokers: replicas on failed disks, and deleted replicas."""

from __future__ import annotations

import logging
from itertools import count

from ixion.broker.controller.cluster import deletion, leftovers
from ixion.broker.controller.cluster.batch import ControlRequest
from ixion.broker.controller.cluster.broker_changes import disks_changed
from ixion.broker.controller.cluster.channels import VERSIONS, ControlResponse
from ixion.broker.controller.cluster.term import Term
from ixion.language.model.errors import ErrorCode
from ixion.language.model.topic_partition import TopicPartition
from ixion.language.protocol.messages.k04_leader_and_isr import LeaderAndIsrResponse
from ixion.language.protocol.messages.k05_stop_replica import StopReplicaRequest, StopReplicaResponse

logger = logging.getLogger(__name__)

numbers = count()  # of answers: each gets its own change, even if others of the same broker wait


def answered(term: Term, broker: int, request: ControlRequest, answer: ControlResponse) -> None:
    if answer.error_code:
        title = VERSIONS[type(request)][0].title
        logger.warning("broker %d refused %s: error %d", broker, title, answer.error_code)
    elif isinstance(answer, LeaderAndIsrResponse):
        led(term, broker, answer)
    elif isinstance(answer, StopReplicaResponse) and isinstance(request, StopReplicaRequest):
        stopped(term, broker, request, answer)


def led(term: Term, broker: int, answer: LeaderAndIsrResponse) -> None:
    failed, working = set(), set()
    for topic in answer.topics:
        name = term.cluster.ids.get(topic.topic_id)
        if name is None:
            continue
        for partition in topic.partition_errors:
            key = (name, partition.partition_index)
            if partition.error_code == ErrorCode.KAFKA_STORAGE_ERROR:
                failed.add(key)
            elif partition.error_code == ErrorCode.NONE:
                working.add(key)
    if failed or any(where == broker for _, _, where in term.cluster.failed_disks):
        term.soon(f"disks {next(numbers)}", lambda: disks_changed(term, broker, failed, working))


def stopped(term: Term, broker: int, request: StopReplicaRequest, answer: StopReplicaResponse) -> None:
    codes = {(error.topic_name, error.partition_index): error.error_code for error in answer.partition_errors}
    deleted: dict[TopicPartition, int] = {}
    left: dict[TopicPartition, int] = {}  # with the leader epochs of the request
    for topic in request.topic_states:
        for partition in topic.partition_states:
            key = (topic.topic_name, partition.partition_index)
            code = codes.get(key, int(ErrorCode.NONE))
            if partition.delete_partition and topic.topic_name in term.cluster.doomed:
                deleted[key] = code
            elif partition.delete_partition and code == ErrorCode.NONE:
                left[key] = partition.leader_epoch
    if deleted:
        term.soon(f"deleted {next(numbers)}", lambda: deletion.answered(term, broker, deleted))
    if leftovers.confirmed(term, broker, left):
        term.soon(f"left {next(numbers)}", lambda: leftovers.deleted(term, broker, left))
