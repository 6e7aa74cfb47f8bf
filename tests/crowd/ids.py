"""Very many names at one broker: members of groups in both protocols, groups, transactional ids, producer ids.

Each function sends what it is named after, over the wire, and says how often each code was the answer. Members of the
consumer protocol, transactional ids and producer ids come one after the other on one connection; a classic member has a
connection of its own, because its join waits there for the others.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import uvloop

from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k14_sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from ixion.language.protocol.messages.k16_list_groups import ListGroupsRequest
from ixion.language.protocol.messages.k22_init_producer_id import InitProducerIdRequest
from ixion.language.protocol.messages.k24_add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from ixion.language.protocol.messages.k66_list_transactions import ListTransactionsRequest
from ixion.language.protocol.messages.k68_consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ixion.language.protocol.notation import Struct
from ixion.language.protocol.registry import ApiKey
from ixion.language.wire.client import ClientConnection
from tests.apis.group_kit import join_request
from tests.apis.raw import Raw
from tests.apis.txn_kit import batch, produce_request

AHEAD = 50  # requests under way on a connection
Codes = Counter[ErrorCode]
GroupOf = Callable[[int], str]  # the group of a member, by its number


def consumers(raw: Raw, count: int, group: GroupOf, *topics: str, **fields: Any) -> Codes:
    """Members of the consumer protocol join; they read "t", and each one of these."""
    given = {"member_epoch": 0, "rebalance_timeout_ms": 45_000, **fields}
    requests = (
        ConsumerGroupHeartbeatRequest(
            group_id=group(n),
            member_id=f"m{n:06}",
            topic_partitions=(),
            **{"subscribed_topic_names": ("t", topics[n % len(topics)]) if topics else ("t",), **given},
        )
        for n in range(count)
    )
    return _codes(_answers(raw, ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, requests))


def transactional_ids(raw: Raw, count: int) -> Codes:
    requests = (
        InitProducerIdRequest(
            transactional_id=f"txn-{n}", transaction_timeout_ms=60_000, producer_id=-1, producer_epoch=-1
        )
        for n in range(count)
    )
    return _codes(_answers(raw, ApiKey.INIT_PRODUCER_ID, 4, requests))


def open_transactions(raw: Raw, count: int, timeout_ms: int) -> Codes:
    """Each with one partition, announced and never written to."""
    inits = (
        InitProducerIdRequest(
            transactional_id=f"open-{n}", transaction_timeout_ms=timeout_ms, producer_id=-1, producer_epoch=-1
        )
        for n in range(count)
    )
    producers = [each.producer_id for each in _answers(raw, ApiKey.INIT_PRODUCER_ID, 4, inits)]
    adds = (
        AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=f"open-{n}",
            v3_and_below_producer_id=producer_id,
            v3_and_below_producer_epoch=0,
            v3_and_below_topics=(AddPartitionsToTxnTopic(name="t", partitions=(n % 10,)),),
        )
        for n, producer_id in enumerate(producers)
    )
    answers = _answers(raw, ApiKey.ADD_PARTITIONS_TO_TXN, 3, adds)
    results = (each.results_by_topic_v3_and_below[0].results_by_partition[0] for each in answers)
    return Counter(ErrorCode(each.partition_error_code) for each in results)


def producer_ids(raw: Raw, count: int, first: int = 10_000_000) -> Codes:
    """One record each, into one partition, by unknown producers."""
    requests = (produce_request(None, batch(first + n, 0, transactional=False)) for n in range(count))
    answers = _answers(raw, ApiKey.PRODUCE, 9, requests)
    return Counter(ErrorCode(each.responses[0].partition_responses[0].error_code) for each in answers)


def classic_members(bootstrap: str, count: int, group: GroupOf) -> tuple[Codes, Codes]:
    """All join, the leaders assign, all sync; how they were answered to the one and to the other."""
    return uvloop.run(_classic_members(bootstrap, count, group))


def groups(raw: Raw, *states: str) -> int:
    """How many there are, in these states or in any; -1 while they are being loaded."""
    answer = raw.ask(ApiKey.LIST_GROUPS, 4, ListGroupsRequest(states_filter=states))
    return -1 if answer.error_code else len(answer.groups)


def transactions(raw: Raw, *states: str) -> int:
    request = ListTransactionsRequest(state_filters=states, producer_id_filters=())
    answer = raw.ask(ApiKey.LIST_TRANSACTIONS, 0, request)
    return -1 if answer.error_code else len(answer.transaction_states)


def _answers(raw: Raw, key: ApiKey, version: int, requests: Iterable[Struct]) -> Iterable[Any]:
    under_way = 0
    for request in requests:
        raw.send(key, version, request)
        under_way += 1
        if under_way == AHEAD:
            yield raw.answer()
            under_way -= 1
    for _ in range(under_way):
        yield raw.answer()


def _codes(answers: Iterable[Any]) -> Codes:
    return Counter(ErrorCode(each.error_code) for each in answers)


class _Member:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self.writer = writer
        self._connection = ClientConnection("crowd")

    async def ask(self, key: ApiKey, version: int, body: Struct) -> Any:
        _, parts = self._connection.request(int(key), version, body)
        self.writer.write(b"".join(parts))
        while (answer := self._connection.next_answer()) is None:
            data = await self._reader.read(1 << 16)
            assert data, "the broker closed the connection"
            self._connection.receive(data)
        return answer.decode()

    async def live(self, group: str, joined: Codes, synced: Codes) -> None:
        answer: Any = None
        while answer is None or answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            member_id = "" if answer is None else answer.member_id
            timeouts = {"session_timeout_ms": 60_000, "rebalance_timeout_ms": 60_000}
            answer = await self.ask(ApiKey.JOIN_GROUP, 5, join_request(group, member_id, **timeouts))
        joined[ErrorCode(answer.error_code)] += 1
        if answer.error_code:
            return
        members = answer.members if answer.leader == answer.member_id else ()
        given = tuple(SyncGroupRequestAssignment(member_id=each.member_id, assignment=bytes(20)) for each in members)
        request = SyncGroupRequest(
            group_id=group, generation_id=answer.generation_id, member_id=answer.member_id, assignments=given
        )
        synced[ErrorCode((await self.ask(ApiKey.SYNC_GROUP, 3, request)).error_code)] += 1


async def _classic_members(bootstrap: str, count: int, group: GroupOf) -> tuple[Codes, Codes]:
    host, _, port = bootstrap.rpartition(":")
    joined: Codes = Counter()
    synced: Codes = Counter()
    members = [_Member(*await asyncio.open_connection(host, int(port), limit=1 << 22)) for _ in range(count)]
    try:
        lives = (each.live(group(number), joined, synced) for number, each in enumerate(members))
        await asyncio.wait_for(asyncio.gather(*lives), 300)
    finally:
        for each in members:
            each.writer.close()
    return joined, synced
