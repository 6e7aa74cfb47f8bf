"""What `ixion schedule` reads from the notes of a partition."""

from __future__ import annotations

from ixion.broker.schedules.listing import Listing, listed
from ixion.cli.schedule.commands import gone
from tests.delay.world import DelayWorld, after, cancel


def listing(world: DelayWorld) -> Listing:
    return listed(world.state.journal.notes(0))


def test_what_is_delivered_before_the_cancel_comes_was_not_cancelled(world: DelayWorld) -> None:
    world.send(after(b"first", 10), after(b"second", 1_000))
    before = listing(world)
    world.advance(10)
    world.send(cancel(b"*"))
    assert [row.offset for row in gone(before, listing(world))] == [1]


def test_a_recurring_record_that_comes_meanwhile_was_not_cancelled(world: DelayWorld) -> None:
    world.send((b"x", [("x-schedule-every", b"1s"), ("x-schedule-id", b"tick")]), after(b"y", 60_000))
    before = listing(world)
    world.advance(1_000)
    assert world.values() == [b"x"]
    assert gone(before, listing(world)) == []
    between = listing(world)
    world.send(cancel(b"tick"))
    assert [row.schedule_id for row in gone(between, listing(world))] == [b"tick"]
