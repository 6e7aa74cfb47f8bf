"""Ids are unique across brokers and restarts, and nobody waits for a block but the first."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest

from ixion.broker.coordinators.txn.producer_ids import BLOCK_SIZE, Claimed, Claiming, ProducerIds, as_task, claim_block
from ixion.broker.metadata import paths
from ixion.broker.metadata.cluster_node import ProducerIdBlock, decode_producer_ids, encode_producer_ids
from ixion.broker.metadata.embedded import IN_MEMORY, EmbeddedStore
from ixion.broker.metadata.errors import SessionExpiredError
from ixion.broker.metadata.node import Stat
from ixion.broker.metadata.session import MetadataSession
from ixion.language.model.errors import ErrorCode, KafkaError
from tests.metadata.awaited import Awaited, run


@pytest.fixture
def session() -> Iterator[MetadataSession]:
    store = EmbeddedStore(IN_MEMORY)
    inner = store.open_session(6_000)
    inner.create(paths.PRODUCER_IDS)
    yield Awaited(inner)
    store.close()


class Later:
    """Background tasks that run when the test says so."""

    def __init__(self) -> None:
        self.asked: list[tuple[Callable[[], Claiming], Callable[[Claimed], None]]] = []

    def __call__(self, claim: Callable[[], Claiming], then: Callable[[Claimed], None]) -> None:
        self.asked.append((claim, then))

    def run(self) -> None:
        claim, then = self.asked.pop(0)
        try:
            then(run(claim()))
        except OSError as error:
            then(error)


def test_blocks_follow_each_other_in_the_tree(session: MetadataSession) -> None:
    assert run(claim_block(session, 1)) == ProducerIdBlock(broker_id=1, first=0, last=999)
    assert run(claim_block(session, 2)) == ProducerIdBlock(broker_id=2, first=1000, last=1999)
    assert decode_producer_ids(run(session.get(paths.PRODUCER_IDS)).data).broker_id == 2


def test_a_broker_that_was_slower_claims_the_block_after(session: MetadataSession) -> None:
    class Raced:
        """Another broker gets in between reading and writing, once."""

        raced = False

        def __getattr__(self, name: str) -> object:
            return getattr(session, name)

        async def set(self, path: str, data: bytes, version: int) -> Stat:
            if not self.raced:
                self.raced = True
                await claim_block(session, 2)
            return await session.set(path, data, version)

    assert run(claim_block(Raced(), 1)).first == 1000  # type: ignore[arg-type]


def test_the_last_number_is_not_passed(session: MetadataSession) -> None:
    last = ProducerIdBlock(broker_id=1, first=0, last=2**63 - 500)
    run(session.set(paths.PRODUCER_IDS, encode_producer_ids(last)))
    with pytest.raises(KafkaError, match="no producer ids are left"):
        run(claim_block(session, 1))


def test_ids_run_on_from_block_to_block_without_a_wait(session: MetadataSession) -> None:
    later = Later()
    ids = ProducerIds(lambda _: claim_block(session, 1), later)
    heard: list[ErrorCode] = []
    ids.wait(heard.append)
    assert heard == []
    later.run()
    assert heard == [ErrorCode.NONE]
    taken = [ids.take() for _ in range(BLOCK_SIZE - 1)]
    assert len(later.asked) == 1, "the next block is asked for before this one is used up, and once"
    later.run()
    taken += [ids.take() for _ in range(BLOCK_SIZE + 1)]
    assert taken == list(range(2 * BLOCK_SIZE))


def test_ids_that_logs_know_are_not_given_again(session: MetadataSession) -> None:
    later = Later()
    ids = ProducerIds(lambda lowest: claim_block(session, 1, lowest), later, lambda: 4_321)
    ids.wait(lambda _: None)
    later.run()
    assert [ids.take() for _ in range(2)] == [5_000, 5_001]
    assert run(claim_block(session, 2, 4_321)).first == 6_000


def test_without_an_id_at_hand_the_caller_must_retry(session: MetadataSession) -> None:
    later = Later()
    ids = ProducerIds(lambda _: claim_block(session, 1), later)
    for _ in range(2):
        with pytest.raises(KafkaError) as caught:
            ids.take()
        assert caught.value.code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert len(later.asked) == 1
    later.run()
    assert ids.take() == 0


def test_a_claim_that_fails_is_repeated_by_the_next_caller(session: MetadataSession) -> None:
    later = Later()
    broken = True

    async def claim(_: int) -> ProducerIdBlock:
        if broken:
            raise OSError("the disk is gone")
        return await claim_block(session, 1)

    ids = ProducerIds(claim, later)
    heard: list[ErrorCode] = []
    ids.wait(heard.append)
    later.run()
    assert heard == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    broken = False
    ids.wait(heard.append)
    later.run()
    assert heard[1:] == [ErrorCode.NONE]
    assert ids.take() == 0


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (SessionExpiredError("/", "session 7 has ended"), True),
        (KafkaError(ErrorCode.NOT_CONTROLLER, "there is no controller"), True),
        (ValueError("a bug"), False),
    ],
)
def test_a_claim_that_fails_as_claims_may_is_one_line_in_the_log(
    error: Exception, expected: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def claim(_: int) -> ProducerIdBlock:
        raise AssertionError("not called")

    later = Later()
    ids = ProducerIds(claim, later)
    heard: list[ErrorCode] = []
    ids.wait(heard.append)
    later.asked[0][1](error)
    assert heard == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    (line,) = caplog.records
    assert str(error) in line.getMessage()
    assert (line.exc_info is None) == expected


def test_blocks_are_claimed_by_a_task_of_the_loop(session: MetadataSession) -> None:
    async def main() -> int:
        loop = asyncio.get_running_loop()
        ids = ProducerIds(lambda _: claim_block(session, 1), as_task(loop))
        arrived: asyncio.Future[ErrorCode] = loop.create_future()
        ids.wait(arrived.set_result)
        assert await arrived == ErrorCode.NONE
        return ids.take()

    assert asyncio.run(main()) == 0
