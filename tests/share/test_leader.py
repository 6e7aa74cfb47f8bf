from __future__ import annotations

from collections.abc import Callable

import pytest

from ixion.broker.log.prepare import Origin
from ixion.broker.share import leader as leader_of_shares
from ixion.broker.share.acknowledgement import ACCEPT, REJECT, RELEASE, RENEW, Acknowledgement
from ixion.broker.share.states import PENDING
from ixion.broker.share.terms import Backoff, Terms
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.records.compression import Codec
from ixion.timer.turns import Steps
from tests.log.support import batch, marker
from tests.replica.world import HeldWorkers
from tests.share.world import ShareWorld, code_of, offsets_in, pieces

TEN = [b"v"] * 10


def test_records_are_acquired_once_and_acknowledged_after_the_write(world: ShareWorld) -> None:
    world.produce(*TEN)
    assert world.acquire("a") == [(0, 9, 1)]
    assert world.acquire("b") == []
    world.persister.holds = True
    codes = world.acknowledge(0, 4, ACCEPT)
    assert codes == []
    with pytest.raises(KafkaError, match="INVALID_RECORD_STATE"):
        world.acknowledge(0, 4, ACCEPT)
    world.persister.let_go()
    assert codes == [ErrorCode.NONE]
    leader = world.leader()
    assert leader.core is not None
    assert leader.core.start == 5


def test_the_answer_has_the_bytes_of_the_batches(world: ShareWorld) -> None:
    for _ in range(3):
        world.produce(*TEN)
    (results,) = world.share_fetch(max_records=12)
    assert pieces(results) == [(0, 19, 1)], "whole batches"
    assert offsets_in(results) == list(range(20))
    (results,) = world.share_fetch(max_records=3, strict=True)
    assert pieces(results) == [(20, 22, 1)]
    assert offsets_in(results) == list(range(20, 30)), "the whole batch is sent"


def test_the_answer_is_cut_at_batches(world: ShareWorld) -> None:
    for _ in range(4):
        world.produce(*TEN)
    assert world.acquire(batch_size=20) == [(0, 19, 1), (20, 39, 1)]


def test_an_append_wakes_a_waiting_fetch(world: ShareWorld) -> None:
    waiting = world.share_fetch("a")
    assert waiting == []
    world.produce()
    assert [pieces(each) for each in waiting] == [[(0, 0, 1)]]


def test_a_release_wakes_one_of_several_waiting_fetches(world: ShareWorld) -> None:
    world.produce(*TEN)
    assert world.acquire("a") == [(0, 9, 1)]
    waiting = [world.share_fetch(name) for name in ("b", "c", "d")]
    world.persister.holds = True
    world.acknowledge(0, 9, RELEASE)
    assert waiting == [[], [], []], "not before it is stored"
    world.persister.let_go()
    assert [len(each) for each in waiting] == [1, 0, 0]
    assert pieces(waiting[0][0]) == [(0, 9, 2)]


def test_a_start_by_time_in_a_batch_that_takes_long_is_found_on_a_worker_thread(world: ShareWorld) -> None:
    held = HeldWorkers()
    world.replicas.fair_workers._make_pool = lambda _count, _name: held
    world.terms = Terms(back_ms=1_000)
    world.produce(records=batch(b"old", timestamp=world.now_ms() - 5_000))
    world.produce(records=batch(bytes(600_000), timestamp=world.now_ms(), codec=Codec.GZIP))
    waiting = world.share_fetch(wait_ms=10_000)
    world.settle()
    assert len(held.waiting) == 1
    assert waiting == []
    held.work()
    world.settle()
    assert [pieces(each) for each in waiting] == [[(1, 1, 1)]]


def test_a_fetch_answers_at_its_timeout_with_nothing(world: ShareWorld) -> None:
    waiting = world.share_fetch("a", wait_ms=500)
    world.advance(499)
    assert waiting == []
    world.advance(1)
    assert waiting == [{}]


def test_a_fetch_waits_for_its_minimum_of_bytes(world: ShareWorld) -> None:
    size = len(batch(*TEN))
    waiting = world.share_fetch("a", min_bytes=2 * size)
    world.produce(*TEN)
    assert waiting == []
    world.produce(*TEN)
    assert [pieces(each) for each in waiting] == [[(0, 19, 1)]]
    waiting = world.share_fetch("b", min_bytes=2 * size)
    world.produce(*TEN)
    world.advance(500)
    assert [pieces(each) for each in waiting] == [[(20, 29, 1)]], "at the timeout with fewer"


def test_a_lock_expires(world: ShareWorld) -> None:
    world.produce(*TEN)
    assert world.acquire("a") == [(0, 9, 1)]
    waiting = world.share_fetch("b", wait_ms=100_000)
    world.advance(29_999)
    assert waiting == []
    world.advance(1)
    assert [pieces(each) for each in waiting] == [[(0, 9, 2)]]
    with pytest.raises(KafkaError, match="INVALID_RECORD_STATE"):
        world.acknowledge(0, 9, ACCEPT, "a")
    assert world.persister.updates[-1].batches[0].deliveries == 1


def test_a_renewed_lock_expires_later(world: ShareWorld) -> None:
    world.produce(*TEN)
    world.acquire("a")
    world.advance(20_000)
    assert world.acknowledge(3, 5, RENEW) == [ErrorCode.NONE]
    world.advance(10_000)
    assert world.acquire("b") == [(0, 2, 2), (6, 9, 2)]
    world.advance(19_999)
    assert world.acquire("c") == []
    world.advance(1)
    assert world.acquire("c") == [(3, 5, 2)]


def test_a_failed_write_leaves_the_records_acquired(world: ShareWorld) -> None:
    world.produce(*TEN)
    world.acquire("a")
    world.persister.write_code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert world.acknowledge(0, 9, ACCEPT) == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    world.persister.write_code = ErrorCode.NONE
    assert world.acknowledge(0, 9, ACCEPT) == [ErrorCode.NONE]


def test_a_write_that_fails_after_its_lock_expired_releases(world: ShareWorld) -> None:
    world.produce(*TEN)
    world.acquire("a")
    world.persister.holds = True
    world.acknowledge(0, 9, ACCEPT)
    world.advance(31_000)
    world.persister.write_code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    world.persister.let_go()
    world.persister.write_code = ErrorCode.NONE
    world.advance(1)
    assert world.acquire("b") == [(0, 9, 2)]


def test_acknowledgements_during_a_write_share_the_next_one(world: ShareWorld) -> None:
    world.produce(*TEN)
    world.acquire("a")
    world.persister.holds = True
    codes = [world.acknowledge(at, at, ACCEPT) for at in range(10)]
    world.persister.let_go()
    assert codes == [[ErrorCode.NONE]] * 10
    assert len(world.persister.updates) == 2
    assert world.persister.updates[-1].start_offset == 10


def test_another_leader_fences_this_one(world: ShareWorld) -> None:
    world.produce(*TEN)
    world.acquire("a")
    old = world.leader()
    world.persister.epochs[old.key] = 7
    assert world.acknowledge(0, 9, ACCEPT) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert old.closed
    assert not world.shares.leaders


def test_a_new_epoch_makes_acquired_records_available(world: ShareWorld) -> None:
    world.produce(*TEN)
    world.acquire("a")
    world.acknowledge(2, 3, ACCEPT)
    world.acknowledge(5, 5, RELEASE)
    world.lead(epoch=1)
    assert world.acquire("b") == [(0, 1, 1), (4, 4, 1), (5, 5, 2), (6, 9, 1)]


def test_a_waiting_fetch_learns_of_a_new_epoch(world: ShareWorld) -> None:
    waiting = world.share_fetch("a")
    world.lead(epoch=1)
    assert [code_of(each) for each in waiting] == [ErrorCode.NOT_LEADER_OR_FOLLOWER]


def test_a_replica_that_no_longer_leads_answers_waiting_fetches(world: ShareWorld) -> None:
    waiting = world.share_fetch("b")
    world.replicas.resign(world.replicas.partitions["t", 0])
    assert [code_of(each) for each in waiting] == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert not world.shares.leaders


def test_a_state_that_cannot_be_read_is_an_error_and_is_read_again(world: ShareWorld) -> None:
    world.produce(*TEN)
    world.persister.read_code = ErrorCode.GROUP_ID_NOT_FOUND
    (results,) = world.share_fetch("a")
    assert code_of(results) == ErrorCode.GROUP_ID_NOT_FOUND
    world.persister.holds = True
    waiting = world.share_fetch("a")
    world.persister.let_go()
    assert [code_of(each) for each in waiting] == [ErrorCode.GROUP_ID_NOT_FOUND]
    world.persister.read_code = ErrorCode.NONE
    assert world.acquire("a") == [(0, 9, 1)]


def test_fetches_wait_while_the_state_is_read(world: ShareWorld) -> None:
    world.produce(*TEN)
    world.persister.holds = True
    waiting = world.share_fetch("a")
    assert waiting == []
    world.persister.let_go()
    assert [pieces(each) for each in waiting] == [[(0, 9, 1)]]


def test_a_session_that_ends_releases(world: ShareWorld) -> None:
    world.produce(*TEN)
    world.acquire("a")
    waiting = world.share_fetch("b")
    world.leave("a")
    assert [pieces(each) for each in waiting] == [[(0, 9, 2)]]
    assert world.persister.updates[-1].batches[0].deliveries == 1


def test_the_last_session_takes_the_share_partition_with_it(world: ShareWorld) -> None:
    world.produce(*TEN)
    world.acquire("a")
    world.persister.holds = True
    world.leave("a")
    assert world.shares.leaders
    world.persister.let_go()
    assert not world.shares.leaders
    assert world.acquire("a") == [(0, 9, 2)]
    assert world.persister.reads == 2


def test_a_new_session_of_a_member_keeps_its_records(world: ShareWorld) -> None:
    world.produce(*TEN)
    world.acquire("a")
    waiting = world.share_fetch("a")
    world.join("a")
    assert world.acknowledge(0, 9, ACCEPT) == [ErrorCode.NONE]
    assert waiting == []


def test_a_group_that_begins_at_the_end(world: ShareWorld) -> None:
    world.terms = Terms()
    world.produce(*TEN)
    assert world.acquire("a") == []
    world.produce()
    assert world.acquire("a") == [(10, 10, 1)]


def test_one_held_record_does_not_stop_the_group(world: ShareWorld) -> None:
    world.terms = Terms(from_earliest=True, max_locks=20)
    for _ in range(30):
        world.produce(*TEN)
    world.acquire("a")
    world.acknowledge(1, 19, ACCEPT)
    for _ in range(28):
        for first, last, _ in world.acquire("b"):
            world.acknowledge(first, last, ACCEPT, "b")
    leader = world.leader()
    assert leader.core is not None
    assert (leader.core.start, leader.core.end) == (0, 300)
    assert len(leader.core.runs) == 2


def test_backoff_defers_and_the_wheel_brings_back(world: ShareWorld) -> None:
    world.terms = Terms(from_earliest=True, backoff=Backoff(base_ms=1_000, max_ms=60_000, multiplier=2.0))
    world.produce(*TEN)
    got = world.acquire("a")
    for deliveries, wait in ((1, 1_000), (2, 2_000), (3, 4_000)):
        assert got == [(0, 9, deliveries)]
        world.acknowledge(0, 9, RELEASE)
        waiting = world.share_fetch("a", wait_ms=60_000)
        world.advance(wait - 1)
        assert waiting == []
        world.advance(1)
        got = pieces(waiting[0])
    assert world.shares.figures.due == 30


def test_a_delay_for_one_record_survives_a_change_of_the_leader(world: ShareWorld) -> None:
    world.produce(*TEN)
    world.acquire("a")
    world.acknowledge(0, 0, RELEASE, delay_ms=5_000)
    world.acknowledge(1, 9, ACCEPT)
    assert world.persister.updates[-2].batches[0].due_ms == world.now_ms() + 5_000
    world.lead(epoch=1)
    assert world.acquire("a") == []
    world.advance(4_999)
    assert world.acquire("a") == []
    world.advance(1)
    assert world.acquire("a") == [(0, 0, 2)]


def test_the_wall_clock_moves_no_lock(world: ShareWorld) -> None:
    world.produce(*TEN)
    world.acquire("a")
    world.clock_step_ms = 3_600_000
    world.advance(29_000)
    assert world.acquire("b") == []
    world.clock_step_ms = -3_600_000
    world.advance(1_000)
    assert world.acquire("b") == [(0, 9, 2)]


def test_deleted_records_are_passed(world: ShareWorld) -> None:
    for _ in range(3):
        world.produce(*TEN)
    world.acquire("a")
    world.acknowledge(0, 29, RELEASE)
    world.replicas.partitions["t", 0].log.raise_log_start(15)
    (results,) = world.share_fetch("b")
    assert pieces(results) == [(15, 29, 2)]
    assert world.shares.figures.archived_by == {"deleted from the log": 15}


def test_records_of_aborted_transactions_are_archived(world: ShareWorld) -> None:
    world.terms = Terms(from_earliest=True, committed_only=True)
    world.produce(*TEN)
    world.produce(records=batch(b"x", b"y", producer=(7, 0, 0), transactional=True))
    world.produce(*TEN)
    waiting = world.acquire("a")
    assert waiting == [(0, 9, 1)], "up to the open transaction"
    data = marker(7, 0, commit=False)
    world.replicas.append(1000, -1, Origin.COORDINATOR, [("t", 0, data)], lambda _: None)
    assert world.acquire("b") == [(12, 22, 1)], "the marker, too: clients acknowledge it as a gap"
    world.settle()
    assert [tuple(each)[:3] for each in world.persister.updates[-1].batches] == [(10, 11, 4)]


def test_a_rejected_record_is_never_delivered_again(world: ShareWorld) -> None:
    world.produce(*TEN)
    world.acquire("a")
    world.acknowledge(0, 9, REJECT)
    assert world.acquire("b") == []
    assert world.persister.start[world.leader().key] == 10


def test_a_client_that_is_gone_waits_no_more(world: ShareWorld) -> None:
    waiting = world.share_fetch("a")
    world.give_ups[0]()
    world.produce(*TEN)
    assert waiting == []
    assert world.acquire("b") == [(0, 9, 1)]


def test_too_many_runs_stop_the_group(world: ShareWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ixion.broker.share.partition.MOST_RUNS", 9)
    monkeypatch.setattr("ixion.broker.share.acquiring.MOST_RUNS", 9)
    for _ in range(3):
        world.produce(*TEN)
    world.acquire("a", max_records=10)
    for at in range(0, 10, 2):
        world.acknowledge(at, at, ACCEPT)
    assert world.acquire("b") == []
    assert world.shares.stopped == 1
    world.acknowledge(1, 1, ACCEPT)
    assert world.acquire("b") == [(10, 29, 1)]


def test_a_record_that_is_not_due_waits_behind_the_barrier(world: ShareWorld) -> None:
    """A topic with a fixed delay: its log shows records up to a barrier, which moves."""
    world.produce(*TEN)
    world.produce(*TEN)
    partition = world.replicas.partitions["t", 0]
    partition.log.visible_end = 10
    assert world.acquire("a") == [(0, 9, 1)]
    waiting = world.share_fetch("a")
    assert waiting == []
    partition.log.visible_end = 20
    world.replicas.appended(partition)
    assert [pieces(each) for each in waiting] == [[(10, 19, 1)]]


def test_a_release_that_could_not_be_stored_is_stored_with_the_next_change(world: ShareWorld) -> None:
    world.produce(*TEN)
    world.produce(*TEN)
    world.acquire("a", max_records=10)
    world.acquire("b")
    world.persister.write_code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    world.leave("a")
    world.persister.write_code = ErrorCode.NONE
    world.acknowledge(10, 19, ACCEPT, "b")
    assert [tuple(each)[:4] for each in world.persister.updates[-1].batches] == [(0, 9, 0, 1), (10, 19, 2, 1)]


def test_a_deleted_state_is_forgotten_here(world: ShareWorld) -> None:
    world.produce(*TEN)
    world.acquire("a")
    world.persister.write_code = ErrorCode.GROUP_ID_NOT_FOUND
    assert world.acknowledge(0, 9, ACCEPT) == [ErrorCode.GROUP_ID_NOT_FOUND]
    assert not world.shares.leaders


def test_a_session_that_ends_stops_its_fetch(world: ShareWorld) -> None:
    waiting = world.share_fetch("a")
    world.sessions["a"].stop_fetch = world.fetch_in_progress.stop
    world.leave("a")
    assert waiting == [{}]
    world.produce(*TEN)
    assert world.acquire("b") == [(0, 9, 1)]


def test_many_changes_are_settled_in_several_turns(world: ShareWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes meanwhile waits: it is stored and answered after them."""
    monkeypatch.setattr(leader_of_shares, "AT_ONCE", 2)
    turns: list[Callable[[], None]] = []

    def one_step_a_turn(_: object, steps: Steps[None], done: Callable[[None, Exception | None], object]) -> None:
        try:
            next(steps)
        except StopIteration:
            done(None, None)
        else:
            turns.append(lambda: one_step_a_turn(_, steps, done))

    monkeypatch.setattr(leader_of_shares, "start_in_turns", one_step_a_turn)
    world.produce(*TEN)
    world.acquire("a")
    core = world.leader().core
    assert core is not None
    codes: list[ErrorCode] = []
    said = [Acknowledgement(at, at, (ACCEPT if at % 2 else RELEASE,)) for at in range(6)]
    world.leader().acknowledge("a", said, codes.append)
    later = world.acknowledge(6, 9, ACCEPT)
    pending = [core.runs.tallies[PENDING]]
    for _ in range(2):
        turns.pop(0)()
        pending.append(core.runs.tallies[PENDING])
    assert pending == [8, 6, 4], "two changes in each turn; the four behind them are not written yet"
    assert codes == later == []
    while turns:
        turns.pop(0)()
    assert codes == later == [ErrorCode.NONE]
    assert core.runs.tallies[PENDING] == 0
    assert len(world.persister.updates) == 2
