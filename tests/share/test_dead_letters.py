"""Dead letters at the leader: written before a record is archived, whatever fails."""

from __future__ import annotations

import pytest

from ixion.broker.log.log import Log
from ixion.broker.replica.partition import Partition
from ixion.broker.share import manager
from ixion.broker.share.acknowledgement import ACCEPT, GAP, REJECT, RELEASE
from ixion.broker.share.letter_writer import FIRST_RETRY_MS, Written
from ixion.broker.share.letters import NO_COPIES, build, read_copies
from ixion.broker.share.runs import Run
from ixion.broker.share.states import ARCHIVED, ARCHIVING, AVAILABLE
from ixion.broker.share.terms import Terms
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.records.batch import BatchView
from ixion.language.records.compression import Codec
from ixion.language.records.record import Record
from tests.log.support import batch
from tests.share.world import ShareWorld

TEN = [b"v"] * 10
WITH_LETTERS = Terms(from_earliest=True, delivery_limit=2, dead_letters="dlq.t")


class HeldPost:
    """Letters are written when the test says so."""

    def __init__(self) -> None:
        self.sent: list[list[tuple[int, int]]] = []
        self.waiting: list[tuple[list[Run], Written]] = []

    def send(self, partition: Partition, group: str, terms: Terms, owed: list[Run], done: Written) -> None:
        assert (partition.topic, group, terms.dead_letters) == ("t", "g", "dlq.t")
        self.sent.append([(run.first, run.last) for run in owed])
        self.waiting.append((owed, done))

    def answer(self, fault: KafkaError | None = None) -> None:
        owed, done = self.waiting.pop(0)
        done([] if fault else owed, fault)


@pytest.fixture
def post(world: ShareWorld) -> HeldPost:
    world.terms = WITH_LETTERS
    world.shares.post = made = HeldPost()
    world.produce(*TEN)
    return made


def stored(world: ShareWorld, offset: int) -> int:
    (offsets,) = world.persister.offsets.values()
    return offsets[offset].state if offset in offsets else AVAILABLE


def start(world: ShareWorld) -> int:
    core = world.leader().core
    assert core is not None
    return core.start


def test_a_rejected_record_is_archived_once_its_letter_is_written(world: ShareWorld, post: HeldPost) -> None:
    world.acquire()
    assert world.acknowledge(0, 2, REJECT) == [ErrorCode.NONE]
    assert world.acknowledge(3, 9, ACCEPT) == [ErrorCode.NONE]
    assert post.sent == [[(0, 2)]]
    assert (start(world), stored(world, 0)) == (0, ARCHIVING)
    assert world.acquire("b") == [], "it is not delivered again"
    post.answer()
    world.settle()
    assert (start(world), list(world.persister.start.values())) == (10, [10])
    assert world.shares.figures.dead_letters == 3


def test_a_letter_that_cannot_be_written_is_repeated_and_holds_up_nobody(world: ShareWorld, post: HeldPost) -> None:
    world.acquire(max_records=1, strict=True)
    world.acknowledge(0, 0, REJECT)
    for _ in range(3):
        post.answer(KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "there is no topic dlq.t"))
        assert world.acquire("b", max_records=1, strict=True) != []
        world.advance(FIRST_RETRY_MS * 8)
    assert post.sent == [[(0, 0)]] * 4
    assert (start(world), world.shares.figures.failed_letters) == (0, 3)
    post.answer()
    world.settle()
    assert start(world) == 1


def test_a_group_without_members_is_kept_until_its_letters_are_written(world: ShareWorld, post: HeldPost) -> None:
    world.acquire()
    world.acknowledge(0, 0, REJECT)
    world.leave()
    post.answer(KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, "not now"))
    world.advance(FIRST_RETRY_MS)
    post.answer()
    world.settle()
    assert list(world.persister.start.values()) == [1]
    assert not world.shares.leaders


def test_few_groups_without_members_are_kept(
    world: ShareWorld, post: HeldPost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manager, "MOST_OWING", 0)
    world.acquire()
    world.acknowledge(0, 0, REJECT)
    world.leave()
    assert not world.shares.leaders
    world.join()
    world.share_fetch()
    assert post.sent == [[(0, 0)]] * 2, "its next member brings it back"


def test_the_next_leader_writes_what_the_last_one_owes(world: ShareWorld, post: HeldPost) -> None:
    world.acquire()
    world.acknowledge(2, 3, REJECT)
    world.lead(epoch=7)
    post.answer()  # too late: another leader has the partition by now
    world.settle()
    assert stored(world, 2) == ARCHIVING
    assert world.acquire("b") == [(0, 1, 1), (4, 9, 1)]
    assert post.sent == [[(2, 3)], [(2, 3)]]
    post.answer()
    world.settle()
    assert stored(world, 2) == ARCHIVED


def test_a_record_that_came_too_often_gets_a_letter_whatever_ended_its_last_delivery(
    world: ShareWorld, post: HeldPost
) -> None:
    world.join("b")
    for _ in range(2):
        world.acquire("a", max_records=1, strict=True)
        world.acknowledge(0, 0, RELEASE)
    assert post.sent == [[(0, 0)]]
    post.answer()
    for _ in range(2):
        world.acquire("a", max_records=1, strict=True)
        world.leave("a")
    assert post.sent[1:] == [[(1, 1)]]
    post.answer()
    for _ in range(2):
        world.acquire("a", max_records=1, strict=True)
        world.advance(WITH_LETTERS.lock_ms + 1)
    assert post.sent[2:] == [[(2, 2)]]


def test_gaps_get_no_letter_and_without_a_topic_nothing_waits(world: ShareWorld, post: HeldPost) -> None:
    world.acquire()
    world.acknowledge(0, 0, GAP)
    assert (start(world), post.sent) == (1, [])
    world.acknowledge(1, 1, REJECT)
    world.acknowledge(2, 2, REJECT)
    world.terms = Terms(from_earliest=True)
    post.answer()
    world.settle()
    assert start(world) == 3
    assert post.sent == [[(1, 1)]]


def log_of(world: ShareWorld) -> Log:
    partition = world.replicas.partitions["t", 0]
    return partition.log


def letters(data: bytes) -> list[Record]:
    return list(BatchView(data, 0).records())


def test_a_letter_says_what_it_is_about() -> None:
    owed = [Run(3, 4, ARCHIVING, 1), Run(9, 9, ARCHIVING, 5)]
    data, written = build("jobs", 7, "workers", owed, 5, NO_COPIES, 1_000, 1 << 20)
    found = letters(data)
    assert [dict(each.headers)["__dlq.errors.offset"] for each in found] == [b"3", b"4", b"9"]
    assert [run.first for run in written] == [3, 4, 9]
    assert (found[0].key, found[0].value, found[0].timestamp) == (None, None, 1_000)
    assert dict(found[2].headers) == {
        "__dlq.errors.topic": b"jobs",
        "__dlq.errors.partition": b"7",
        "__dlq.errors.offset": b"9",
        "__dlq.errors.group": b"workers",
        "__dlq.errors.delivery.count": b"5",
        "__dlq.errors.message": b"the delivery count limit is reached",
    }


def test_copies_are_read_in_pieces_and_missing_records_get_a_letter_without(world: ShareWorld) -> None:
    world.produce(records=batch(*[b"%d" % number * 50 for number in range(6)], codec=Codec.GZIP))
    owed = [Run(1, 1, ARCHIVING, 1), Run(3, 5, ARCHIVING, 1), Run(50, 50, ARCHIVING, 1)]
    copies = read_copies(log_of(world), owed, 110)
    assert (sorted(copies.records), copies.end) == ([1, 3], 4)
    data, written = build("t", 0, "g", owed, 5, copies, 0, 1 << 20)
    assert [each.value for each in letters(data)] == [b"1" * 50, b"3" * 50]
    assert [run.first for run in written] == [1, 3]
    everything = read_copies(log_of(world), owed, 1 << 20)
    data, written = build("t", 0, "g", owed, 5, everything, 0, 1 << 20)
    assert [each.value for each in letters(data)] == [b"1" * 50, b"3" * 50, b"4" * 50, b"5" * 50, None]
    data, written = build("t", 0, "g", owed, 5, everything, 0, 60)
    assert [run.first for run in written] == [1], "as many as the size allows, at least one"
