from __future__ import annotations

import pytest

from ixion.language.model.errors import ErrorCode
from ixion.language.model.ids import ZERO_ID
from ixion.language.protocol.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from ixion.language.protocol.messages.k09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from ixion.language.protocol.messages.k10_find_coordinator import FindCoordinatorRequest
from ixion.language.protocol.messages.k25_add_offsets_to_txn import AddOffsetsToTxnRequest
from ixion.language.protocol.messages.k28_txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from ixion.language.protocol.messages.k68_consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ixion.language.protocol.registry import ApiKey
from tests.apis.raw import Raw
from tests.apis.txn_kit import end, init

NOTHING = -1


def commit(
    raw: Raw,
    name: str,
    producer_id: int,
    epoch: int,
    offset: int,
    version: int,
    *,
    number: int = 0,
    group: str = "",
    topic_id: bytes | None = None,
    member: tuple[str, int] = ("", -1),
) -> str:
    if version >= 6 and topic_id is None:
        asked = MetadataRequest(topics=(MetadataRequestTopic(name="t"),))
        topic_id = raw.ask(ApiKey.METADATA, 12, asked).topics[0].topic_id
    request = TxnOffsetCommitRequest(
        transactional_id=name,
        group_id=group or f"group of {name}",
        producer_id=producer_id,
        producer_epoch=epoch,
        member_id=member[0],
        generation_id_or_member_epoch=member[1],
        topics=(
            TxnOffsetCommitRequestTopic(
                name="t" if version < 6 else "",
                topic_id=topic_id or ZERO_ID,
                partitions=(
                    TxnOffsetCommitRequestPartition(
                        partition_index=number, committed_offset=offset, committed_metadata="kept"
                    ),
                ),
            ),
        ),
    )
    answer = raw.ask(ApiKey.TXN_OFFSET_COMMIT, version, request)
    assert answer.topics[0].topic_id == (topic_id or ZERO_ID)
    return ErrorCode(answer.topics[0].partitions[0].error_code).name


def announce(raw: Raw, name: str, producer_id: int, epoch: int) -> None:
    request = AddOffsetsToTxnRequest(
        transactional_id=name, producer_id=producer_id, producer_epoch=epoch, group_id=f"group of {name}"
    )
    assert raw.ask(ApiKey.ADD_OFFSETS_TO_TXN, 3, request).error_code == 0


def fetched(raw: Raw, name: str, *, stable: bool = False) -> tuple[str, int, str]:
    group = OffsetFetchRequestGroup(
        group_id=f"group of {name}", topics=(OffsetFetchRequestTopics(name="t", partition_indexes=(0,)),)
    )
    answer = raw.ask(ApiKey.OFFSET_FETCH, 8, OffsetFetchRequest(groups=(group,), require_stable=stable))
    found = answer.groups[0].topics[0].partitions[0]
    return ErrorCode(found.error_code).name, found.committed_offset, found.metadata


@pytest.fixture(autouse=True)
def _coordinated(raw: Raw) -> None:
    assert raw.ask(ApiKey.FIND_COORDINATOR, 0, FindCoordinatorRequest(key="g")).error_code == 0


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4, 5, 6])
def test_offsets_count_when_the_transaction_commits_and_not_before(raw: Raw, version: int) -> None:
    name = f"offsets in {version}"
    producer_id, epoch = init(raw, name)
    if version < 5:
        announce(raw, name, producer_id, epoch)
    assert commit(raw, name, producer_id, epoch, 41, version) == "NONE"
    assert commit(raw, name, producer_id, epoch, 42, version) == "NONE", "more than once, in one transaction"
    assert fetched(raw, name)[1] == NOTHING
    assert fetched(raw, name, stable=True)[0] == "UNSTABLE_OFFSET_COMMIT"
    assert end(raw, name, producer_id, epoch, True, 5 if version >= 5 else 4)[0] == "NONE"
    assert fetched(raw, name, stable=True) == ("NONE", 42, "kept")


def test_offsets_of_an_aborted_transaction_never_count(raw: Raw) -> None:
    producer_id, epoch = init(raw, "offsets aborted")
    assert commit(raw, "offsets aborted", producer_id, epoch, 7, 5) == "NONE"
    end(raw, "offsets aborted", producer_id, epoch, False, 5)
    assert fetched(raw, "offsets aborted", stable=True)[:2] == ("NONE", NOTHING)


@pytest.mark.parametrize(("version", "code"), [(3, "INVALID_TXN_STATE"), (4, "TRANSACTION_ABORTABLE")])
def test_offsets_of_a_group_that_was_not_added_are_refused(raw: Raw, version: int, code: str) -> None:
    producer_id, epoch = init(raw, "offsets unannounced")
    assert commit(raw, "offsets unannounced", producer_id, epoch, 7, version) == code


def test_strangers(raw: Raw) -> None:
    producer_id, epoch = init(raw, "offsets strange")
    assert commit(raw, "offsets strange", producer_id, epoch + 1, 7, 5) == "INVALID_PRODUCER_EPOCH"
    assert commit(raw, "offsets strange", producer_id + 1, epoch, 7, 5) == "INVALID_PRODUCER_ID_MAPPING"
    assert commit(raw, "offsets strange", producer_id, epoch, 7, 5, number=55) == "UNKNOWN_TOPIC_OR_PARTITION"
    assert fetched(raw, "offsets strange")[1] == NOTHING


def test_a_topic_id_that_nobody_has(raw: Raw) -> None:
    producer_id, epoch = init(raw, "offsets by id")
    wrong = commit(raw, "offsets by id", producer_id, epoch, 7, 6, topic_id=bytes(range(16)))
    assert wrong == "UNKNOWN_TOPIC_ID"
    assert commit(raw, "offsets by id", producer_id, epoch, 7, 6, number=55) == "UNKNOWN_TOPIC_OR_PARTITION"


def test_from_version_6_on_a_producer_learns_what_is_wrong_with_its_group(raw: Raw) -> None:
    producer_id, epoch = init(raw, "offsets of nobody")
    for version, code in ((5, "ILLEGAL_GENERATION"), (6, "GROUP_ID_NOT_FOUND")):
        member = ("m", 3)
        assert commit(raw, "offsets of nobody", producer_id, epoch, 7, version, group="none", member=member) == code
    joined = raw.ask(
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        1,
        ConsumerGroupHeartbeatRequest(
            group_id="modern",
            member_id="m",
            member_epoch=0,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=("t",),
            topic_partitions=(),
        ),
    )
    assert joined.error_code == 0
    stale = ("m", joined.member_epoch + 1)
    for version, code in ((5, "ILLEGAL_GENERATION"), (6, "STALE_MEMBER_EPOCH")):
        assert commit(raw, "offsets of nobody", producer_id, epoch, 7, version, group="modern", member=stale) == code
    fresh = ("m", joined.member_epoch)
    assert commit(raw, "offsets of nobody", producer_id, epoch, 7, 6, group="modern", member=fresh) == "NONE"
    assert end(raw, "offsets of nobody", producer_id, epoch, True, 5)[0] == "NONE"
