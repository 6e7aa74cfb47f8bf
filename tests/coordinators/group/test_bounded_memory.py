"""Strangers who send as much as they can, over the wire, to a broker of its own: what it keeps of that is bounded.

Each test states what may be kept when all is answered, and how much more at any moment on the way. The requests come to
several times as much.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k10_find_coordinator import FindCoordinatorRequest
from ixion.language.protocol.messages.k11_join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ixion.language.protocol.messages.k16_list_groups import ListGroupsRequest
from ixion.language.protocol.messages.k19_create_topics import CreatableTopic, CreateTopicsRequest
from ixion.language.protocol.notation import Struct
from ixion.language.protocol.registry import ApiKey
from tests.apis.group_kit import commit_request, join_request
from tests.apis.raw import Raw
from tests.broker.served import Served
from tests.hostile.witness import forget_peak, memory_mb

MB = 1_000_000


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    words = ("--set", "offsets.topic.num.partitions=1")
    with Served(tmp_path_factory.mktemp("memory"), *words) as running, Raw(running.bootstrap) as raw:
        topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1, assignments=(), configs=())
        raw.ask(ApiKey.CREATE_TOPICS, 4, CreateTopicsRequest(topics=(topic,), timeout_ms=10_000, validate_only=False))
        while raw.ask(ApiKey.FIND_COORDINATOR, 2, FindCoordinatorRequest(key="x", key_type=0)).error_code:
            time.sleep(0.01)
        raw.ask(ApiKey.JOIN_GROUP, 5, join_request("warm up"))
        yield running


@pytest.fixture
def raw(served: Served) -> Iterator[Raw]:
    with known(served) as client:
        yield client


@contextmanager
def known(served: Served) -> Iterator[Raw]:
    """A connection that has sent something sensible: before that, nothing large is taken from it."""
    with Raw(served.bootstrap) as client:
        client.ask(ApiKey.LIST_GROUPS, 4, ListGroupsRequest())
        yield client


@contextmanager
def bounded(served: Served, *, keeps_mb: int, needs_mb: int) -> Iterator[None]:
    pid = served.process.pid
    before = memory_mb(pid)
    forget_peak(pid)
    yield
    peak, after = memory_mb(pid, "VmHWM") - before, memory_mb(pid) - before
    assert peak <= needs_mb, f"{peak} MB more on the way"
    assert after <= keeps_mb, f"{after} MB more afterwards"


def codes(raw: Raw, key: ApiKey, version: int, requests: Iterable[Struct], ahead: int = 20) -> Counter[ErrorCode]:
    """Of all answers. Requests are sent `ahead` of them."""
    told: Counter[ErrorCode] = Counter()
    under_way = 0
    for request in requests:
        raw.send(key, version, request)
        under_way += 1
        if under_way == ahead:
            told[code_of(raw.answer())] += 1
            under_way -= 1
    for _ in range(under_way):
        told[code_of(raw.answer())] += 1
    return told


def code_of(answer: object) -> ErrorCode:
    topics = getattr(answer, "topics", None)
    return ErrorCode(topics[0].partitions[0].error_code if topics else answer.error_code)  # type: ignore[attr-defined]


def offer(group: str, *metadata: bytes, **fields: Any) -> JoinGroupRequest:
    protocols = tuple(
        JoinGroupRequestProtocol(name=f"protocol {place}", metadata=each) for place, each in enumerate(metadata)
    )
    return join_request(group, protocols=protocols, **fields)


def test_ten_megabytes_of_metadata(served: Served, raw: Raw) -> None:
    with bounded(served, keeps_mb=40, needs_mb=100):
        told = codes(raw, ApiKey.JOIN_GROUP, 5, (offer(f"large {n}", bytes(10 * MB)) for n in range(30)), ahead=1)
    assert told == {ErrorCode.GROUP_MAX_SIZE_REACHED: 30}
    groups = raw.ask(ApiKey.LIST_GROUPS, 4, ListGroupsRequest()).groups
    assert [each.group_id for each in groups if each.group_id.startswith("large")] == []


def test_many_members_with_large_metadata(served: Served) -> None:
    """A group may hold eight times what the log takes of it, so eight members of one megabyte each."""
    told: Counter[str] = Counter()
    with ExitStack() as stack, bounded(served, keeps_mb=40, needs_mb=80):
        for number in range(40):
            client = stack.enter_context(known(served))
            waits = offer("crowd", bytes(MB), group_instance_id=f"i{number}", rebalance_timeout_ms=60_000)
            client.send(ApiKey.JOIN_GROUP, 5, waits)
            if number >= 8:
                told[code_of(client.answer()).name] += 1
    assert told == {"GROUP_MAX_SIZE_REACHED": 32}


def test_a_hundred_thousand_protocols(served: Served, raw: Raw) -> None:
    """Ids that are given out remember nothing of what was offered; and so many protocols are too many for a member."""
    with bounded(served, keeps_mb=40, needs_mb=120):
        told = codes(raw, ApiKey.JOIN_GROUP, 5, (offer("many", *[b""] * 10_000) for _ in range(5)), ahead=2)
        told += codes(raw, ApiKey.JOIN_GROUP, 5, [offer("too many", *[b""] * 100_000, group_instance_id="i")])
    assert told == {ErrorCode.MEMBER_ID_REQUIRED: 5, ErrorCode.GROUP_MAX_SIZE_REACHED: 1}


def test_abandoned_groups_and_ids(served: Served, raw: Raw) -> None:
    """Some 800 bytes each, compiled or not; 4,000 are far from the 100,000 that are given out at most."""
    with bounded(served, keeps_mb=16, needs_mb=24):
        told = codes(raw, ApiKey.JOIN_GROUP, 5, (join_request(f"group {n}" * 3) for n in range(4_000)))
    assert told == {ErrorCode.MEMBER_ID_REQUIRED: 4_000}


def test_commits_with_endless_metadata(served: Served, raw: Raw) -> None:
    text = "x" * 32_767  # the longest string that the version can say
    with bounded(served, keeps_mb=16, needs_mb=60):
        told = codes(
            raw,
            ApiKey.OFFSET_COMMIT,
            7,
            (commit_request(f"commits {n}", {("t", 0): 1}, metadata=text) for n in range(2_000)),
        )
    assert told == {ErrorCode.OFFSET_METADATA_TOO_LARGE: 2_000}
    groups = raw.ask(ApiKey.LIST_GROUPS, 4, ListGroupsRequest()).groups
    assert [each.group_id for each in groups if each.group_id.startswith("commits")] == [], "none is made for nothing"
