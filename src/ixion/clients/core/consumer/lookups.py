"""Offsets of partitions at a time or at their ends, from the leaders (ListOffsets)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from ixion.clients.core.client import Client
from ixion.clients.core.connection import NEVER, Outcome, Pending
from ixion.clients.core.consumer.errand import Errand, node_wake_s
from ixion.clients.faults import GarbledError, UnknownTopicError, error_code
from ixion.clients.metadata import Partition, TopicPartition, by_topic
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.messages.k02_list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from ixion.language.protocol.registry import ApiKey

OFFSETS_FROM: Final = 2  # the first version that answers with one offset and knows isolation levels


class OffsetLookup(Errand):
    """`found` holds the offset and its leader epoch; the offset is -1 if no record is that young.

    A fault of one partition ends it all, unless it `goes_on` with the others: then `refused` has the fault.
    """

    def __init__(
        self,
        client: Client,
        times: Mapping[TopicPartition, int],
        *,
        read_committed: bool,
        what: str = "listing offsets",
        goes_on: bool = False,
    ) -> None:
        super().__init__(client, what)
        self.refused: dict[TopicPartition, KafkaError] = {}
        self._goes_on = goes_on
        self.times = dict(times)
        self.found: dict[TopicPartition, tuple[int, int]] = {}
        self._left = dict.fromkeys(self.times)
        self._asked: set[TopicPartition] = set()  # of those, what is under way
        self._read_committed = read_committed
        self._wake_s = NEVER

    def tick(self, now_s: float) -> None:
        self._wake_s = NEVER
        if not self._left:
            self.finish()
        if self.is_done:
            return
        if now_s < self.not_before_s:
            self._wake_s = self.not_before_s
            return
        by_leader = self._by_leader(now_s)
        if not self._left:
            self.finish()
        for node_id, places in by_leader.items():
            machine = self.client.ready(node_id, now_s)
            if machine is None:
                self._wake_s = min(self._wake_s, node_wake_s(self.client, node_id, now_s))
                continue
            try:
                version = machine.version(ApiKey.LIST_OFFSETS, oldest=OFFSETS_FROM)
            except KafkaError as fault:
                self.finish(fault)
                return
            self._asked.update(places)
            machine.send(ApiKey.LIST_OFFSETS, version, self._request(places), Lookup(self, places), now_s)

    @property
    def wake_s(self) -> float:
        return self._wake_s

    def forget_questions(self) -> None:
        self._asked.clear()

    def leave_out(self, place: TopicPartition) -> None:
        self._left.pop(place, None)
        self.found.pop(place, None)

    def answered(self, places: list[TopicPartition], outcome: Outcome, now_s: float) -> None:
        self._asked.difference_update(places)
        if not isinstance(outcome, ListOffsetsResponse):
            if isinstance(outcome, KafkaError):
                self.retry(outcome, now_s)
            return
        results = {
            TopicPartition(topic.name, part.partition_index): part
            for topic in outcome.topics
            for part in topic.partitions
        }
        for place in places:
            result = results.get(place)
            if result is None:
                self.retry(GarbledError(f"{self.what}: a broker left out {place}"), now_s)
                continue
            code = error_code(result.error_code)
            if code == ErrorCode.NONE:
                self.found[place] = (result.offset, result.leader_epoch)
                self._left.pop(place, None)
                continue
            fault = KafkaError(code, f"{place}: {code.explanation}")
            if not code.retriable:
                self._refuse(place, fault)
                continue
            if code.stale_metadata:
                self.client.cluster.mark_stale()
            self.retry(fault, now_s)
        if not self._left:
            self.finish()

    def _by_leader(self, now_s: float) -> dict[int, list[TopicPartition]]:
        found: dict[int, list[TopicPartition]] = {}
        for place in list(self._left):
            if place in self._asked:
                continue
            try:
                partition = leader_of(self.client, place, now_s)
            except KafkaError as fault:
                self._refuse(place, fault)
                continue
            if partition is not None:
                found.setdefault(partition.leader, []).append(place)
        return {} if self.is_done else found

    def _refuse(self, place: TopicPartition, fault: KafkaError) -> None:
        self._left.pop(place, None)
        if self._goes_on:
            self.refused[place] = fault
        else:
            self.finish(fault)

    def _request(self, places: Iterable[TopicPartition]) -> ListOffsetsRequest:
        cluster = self.client.cluster
        topics = []
        for name, numbers in by_topic(places).items():
            parts = []
            for number in numbers:
                place = TopicPartition(name, number)
                known = cluster.leader(place)
                epoch = -1 if known is None else known.leader_epoch
                time_ms = self.times[place]
                parts.append(
                    ListOffsetsPartition(partition_index=number, current_leader_epoch=epoch, timestamp=time_ms)
                )
            topics.append(ListOffsetsTopic(name=name, partitions=tuple(parts)))
        timeout_ms = int(self.client.settings.request_timeout_s * 1000)
        return ListOffsetsRequest(
            replica_id=-1, isolation_level=int(self._read_committed), topics=tuple(topics), timeout_ms=timeout_ms
        )


class Lookup(Pending):
    def __init__(self, errand: OffsetLookup, places: list[TopicPartition]) -> None:
        self._errand = errand
        self._places = places

    def complete(self, outcome: Outcome, now_s: float) -> None:
        self._errand.answered(self._places, outcome, now_s)


def leader_of(client: Client, place: TopicPartition, now_s: float) -> Partition | None:
    """The partition, if its leader is known; else requests metadata. KafkaError if there is no such partition."""
    cluster = client.cluster
    topic = cluster.want(place.topic, now_s)
    if topic is None:
        return None
    if not 0 <= place.partition < len(topic.partitions):
        text = f"topic {place.topic!r} has partitions 0 to {len(topic.partitions) - 1}, not {place.partition}"
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, text)
    partition = cluster.leader(place)
    if partition is None:
        cluster.mark_stale()
    return partition


def passes(fault: KafkaError) -> bool:
    """Whether a fault is retriable."""
    if isinstance(fault, UnknownTopicError):
        return False
    return fault.code.retriable or fault.code == ErrorCode.BROKER_NOT_AVAILABLE
