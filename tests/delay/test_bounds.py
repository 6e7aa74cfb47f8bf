"""What a large batch, a large transaction or a changed setting may cost, and what happens if a step of it fails."""

from __future__ import annotations

import sys

import pytest

from ixion.broker.schedules.journal import Journal
from ixion.broker.schedules.schedule import LONGEST_BACKLOG, MOST_IN_BATCH
from ixion.broker.schedules.state import STEP, State
from ixion.language.model.errors import ErrorCode, KafkaError
from tests.delay.world import DelayWorld, after, cancel, records


def reads_at_most(patch: pytest.MonkeyPatch, most: int) -> list[int]:
    """Every note that is looked up from now on; an AssertionError if one turn of the loop looks up too many."""
    found: list[int] = []
    real = Journal.find

    def find(journal: Journal, offset: int) -> object:
        found.append(offset)
        assert len(found) <= most, "too much work for one turn"
        return real(journal, offset)

    patch.setattr(Journal, "find", find)
    return found


def test_a_large_batch_of_replacements_is_applied_in_steps(world: DelayWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    count = 1_000
    data = records(*(after(b"%d" % number, 5_000, id=b"same") for number in range(count)))
    with monkeypatch.context() as patch:
        reads_at_most(patch, STEP)
        over: list[ErrorCode] = []
        world.append(data, over)
    assert over == [ErrorCode.NONE], "acknowledged before all of it is applied"
    assert world.waiting > 1
    world.settle()
    world.advance(5_000)
    assert world.values() == [b"%d" % (count - 1)]
    assert world.waiting == 0
    assert world.state.size == 0
    assert world.schedules.figures.superseded == count - 1


def test_the_commit_of_a_large_transaction_is_applied_in_steps(
    world: DelayWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 1_000
    world.send(
        *(after(b"%d" % number, 10, id=b"%d" % (number % 500)) for number in range(count)),
        producer=(7, 0, 0),
        transactional=True,
    )
    world.advance(100)
    assert world.values() == []
    with monkeypatch.context() as patch:
        reads_at_most(patch, STEP)
        world.append_marker(7, commit=True)
    world.settle()
    world.advance(10)
    assert set(world.values()) == {b"%d" % number for number in range(500, 1_000)}
    assert len(world.values()) == 500
    assert (world.waiting, world.state.size) == (0, 0)


def test_a_cancel_behind_a_long_backlog_still_wins(world: DelayWorld) -> None:
    world.send(after(b"unwanted", 100, id=b"u"))
    world.advance(99)
    over: list[ErrorCode] = []
    world.append(records(*(after(b"x", 86_400_000) for _ in range(5 * STEP))), over)
    world.append(records(cancel(b"u")), over)
    assert over == [ErrorCode.NONE] * 2
    world.advance(1)
    assert world.values() == []


def test_a_backlog_that_is_too_long_makes_producers_wait(world: DelayWorld) -> None:
    waits = (1, 0, 0, b"", 0)
    world.state.backlog.extend([waits] * (LONGEST_BACKLOG + 1))
    refused = world.send(after(b"x", 10))
    assert refused.code == ErrorCode.LEADER_NOT_AVAILABLE
    world.state.backlog.clear()
    assert world.send(after(b"x", 10)).code == ErrorCode.NONE


def test_replacements_that_are_not_applied_yet_do_not_exhaust_the_limit(world: DelayWorld) -> None:
    world.set(delivery_delay_pending_max=300)
    over: list[ErrorCode] = []
    replacements = records(*(after(b"x", 5_000, id=b"same") for _ in range(250)))
    world.append(replacements, over)
    world.append(replacements, over)
    assert over == [ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE], "which clients retry"
    world.settle()
    world.append(replacements, over)
    assert over[-1] == ErrorCode.NONE


def test_a_batch_has_a_bounded_number_of_delayed_records(world: DelayWorld) -> None:
    sent = [after(b"", 10)] * MOST_IN_BATCH
    result = world.send(*sent, after(b"", 10))
    assert result.code == ErrorCode.MESSAGE_TOO_LARGE  # a client splits the batch then
    assert f"{MOST_IN_BATCH + 1} delayed records" in (result.message or "")
    assert world.send(*sent, (b"now", [])).code == ErrorCode.NONE
    assert world.waiting == MOST_IN_BATCH


def test_a_cancel_whose_note_cannot_be_read_is_tried_again(world: DelayWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    world.send(after(b"unwanted", 5_000, id=b"u"), after(b"old", 5_000, id=b"i"))
    with monkeypatch.context() as patch:

        def fail(_journal: Journal, _offset: int) -> None:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "for a moment")

        patch.setattr(Journal, "find", fail)
        world.send(cancel(b"u"), after(b"new", 5_000, id=b"i"))
    world.advance(2_000)
    assert world.waiting == 1
    world.advance(5_000)
    assert world.values() == [b"new"]


def test_a_release_rate_that_is_set_later_does_not_count_what_was_delivered_before(world: DelayWorld) -> None:
    for _ in range(10):
        world.send(*(after(b"x", 10) for _ in range(100)))
    world.advance(10)
    assert len(world.values()) == 1_000
    world.set(delivery_delay_release_rate_max=100)
    world.send(*(after(b"y", 10) for _ in range(50)))
    world.advance(1_100)
    world.advance(1_100)
    assert len(world.values()) == 1_050


def test_a_recurring_record_whose_next_time_cannot_be_found_holds_up_no_other(
    world: DelayWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This broker has no cronsim, unlike the one that accepted them."""
    pytest.importorskip("cronsim")
    world.send(*(after(b"cron", 10, id=b"%d" % number, cron=b"* * * * *") for number in range(40)))
    world.send(*(after(b"plain", 10) for _ in range(40)))
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "cronsim", None)
        world.advance(10)
        world.advance(100)
        assert world.values() == [b"plain"] * 40
        assert world.schedules.figures.failures >= 1
    world.advance(2_000)
    assert world.values() == [b"plain"] * 40 + [b"cron"] * 40


def test_a_state_that_is_read_anew_has_no_backlog(world: DelayWorld) -> None:
    world.send(
        *(after(b"x", 10, id=b"%d" % number) for number in range(3 * STEP)), producer=(7, 0, 0), transactional=True
    )
    world.mark(7, 0, commit=True)
    world = world.restart()
    state: State = world.state
    assert (len(state.backlog), state.held, state.held_bytes, state.count) == (0, 0, 0, 3 * STEP)
    world.close()
