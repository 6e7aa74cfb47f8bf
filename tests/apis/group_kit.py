"""Requests of group members over a real connection, in a version of the test's choice.

Use it to test an API key of groups (`tests/apis/kNN_*`): the handler, the versions, the error codes. `group_talk`
writes the same requests and answers down as lines, to compare brokers; `group_script` is the long conversation that is
compared. Rules of rebalancing need no connection: use `tests/coordinators/group/kit.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from ixion.language.protocol.messages.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ixion.language.protocol.messages.k10_find_coordinator import FindCoordinatorRequest
from ixion.language.protocol.messages.k11_join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ixion.language.protocol.messages.k14_sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from ixion.language.protocol.registry import ApiKey
from ixion.language.protocol.storage import encode
from ixion.language.protocol.stored.consumer_protocol import ConsumerProtocolSubscription
from ixion.testing import Broker
from tests.apis.raw import Raw

SUBSCRIPTION = encode(ConsumerProtocolSubscription(topics=("t",)), 0)


@contextmanager
def group_broker(**settings: Any) -> Iterator[Broker]:
    """With a topic "t" of three partitions, and the topic of groups there already."""
    with Broker({name.replace("_", "."): value for name, value in settings.items()}) as running:
        running.create_topic("t", 3)
        with Raw(running.bootstrap) as client:
            client.ask(ApiKey.FIND_COORDINATOR, 3, FindCoordinatorRequest(key="any", key_type=0))
        yield running


def join_request(group: str, member_id: str = "", **fields: Any) -> JoinGroupRequest:
    given = {
        "group_id": group,
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 10_000,
        "member_id": member_id,
        "protocol_type": "consumer",
        "protocols": (JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION),),
    }
    return JoinGroupRequest(**{**given, **fields})


def join(client: Raw, group: str, version: int, **fields: Any) -> Any:
    """In as many steps as the version takes."""
    answer = client.ask(ApiKey.JOIN_GROUP, version, join_request(group, **fields))
    if answer.error_code == 79:
        answer = client.ask(ApiKey.JOIN_GROUP, version, join_request(group, answer.member_id, **fields))
    return answer


def sync(client: Raw, group: str, version: int, joined: Any, **assignments: bytes) -> Any:
    """Assignments by place in the list of members."""
    given = zip((member.member_id for member in joined.members), assignments.values(), strict=False)
    request = SyncGroupRequest(
        group_id=group,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        assignments=tuple(SyncGroupRequestAssignment(member_id=name, assignment=data) for name, data in given),
        **({"protocol_type": "consumer", "protocol_name": "range"} if version >= 5 else {}),
    )
    return client.ask(ApiKey.SYNC_GROUP, version, request)


def lone_member(client: Raw, group: str) -> str:
    """A stable group of one, in generation 1; returns its id."""
    joined = join(client, group, 5)
    assert (joined.error_code, joined.generation_id) == (0, 1)
    assert sync(client, group, 3, joined, own=b"all").assignment == b"all"
    member_id: str = joined.member_id
    return member_id


def commit_request(group: str, offsets: dict[tuple[str, int], int], **fields: Any) -> OffsetCommitRequest:
    topics: dict[str, list[OffsetCommitRequestPartition]] = {}
    metadata = fields.pop("metadata", "")
    epoch = fields.pop("leader_epoch", -1)
    for (name, partition), offset in offsets.items():
        topics.setdefault(name, []).append(
            OffsetCommitRequestPartition(
                partition_index=partition,
                committed_offset=offset,
                committed_leader_epoch=epoch,
                committed_metadata=metadata,
            )
        )
    given = {"group_id": group, "member_id": ""}
    return OffsetCommitRequest(
        topics=tuple(OffsetCommitRequestTopic(name=name, partitions=tuple(parts)) for name, parts in topics.items()),
        **{**given, **fields},
    )


class Background:
    """Asks that wait, each on a thread of its own."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(8)

    def ask(self, client: Raw, key: ApiKey, version: int, body: Any) -> Future[Any]:
        return self._pool.submit(client.ask, key, version, body)

    def close(self) -> None:
        self._pool.shutdown()
