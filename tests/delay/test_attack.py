"""What a hostile producer can do to delayed delivery, and what it costs: a bounded number of steps, reads and bytes."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

from ixion.broker.log.view import Bound
from ixion.broker.schedules.journal import Journal, batches
from ixion.broker.schedules.pace import ALONE
from ixion.language.model.errors import ErrorCode
from ixion.language.records.compression import Codec
from ixion.language.records.validate import MAX_RECORD_ERRORS
from tests.delay.world import DelayWorld, Sent, after, cancel, records

RECORDS = int(os.environ.get("IXION_DELAY_RECORDS", "2000"))


def counted(patch: pytest.MonkeyPatch, kind: type, name: str) -> list[Any]:
    """The results of every call of a method from now on."""
    found: list[Any] = []
    real: Callable[..., Any] = getattr(kind, name)

    def count(*given: Any) -> Any:
        result = real(*given)
        found.append(result)
        return result

    patch.setattr(kind, name, count)
    return found


def test_very_many_schedules_with_one_id_cost_one_record_each(
    world: DelayWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A million in `make soak-delay`."""
    reads = counted(monkeypatch, Journal, "find")
    for _ in range(RECORDS // 100):
        world.send(*(after(b"x", 5_000, id=b"same") for _ in range(100)))
    assert world.waiting == 1
    assert world.state.ids.count == 1
    assert len(reads) <= RECORDS, "one look at the record that is replaced"
    assert world.state.size < 200
    world.advance(5_000)
    assert world.values() == [b"x"]


def test_cancels_of_what_is_not_there_change_nothing(world: DelayWorld) -> None:
    world.send(after(b"mine", 1_000, id=b"mine"), (b"now", []))
    strangers = [b"x", b"@1", b"@2", b"@999999999999999999", b"@" + b"\xff" * 8, b"min", b"mine "]
    for what in strangers:
        world.send(cancel(what))
    assert world.waiting == 1
    result = world.send(*(cancel(b"@%d" % offset) for offset in range(1_000, 1_500)))
    assert result.code == ErrorCode.NONE
    world.advance(1_000)
    assert world.values() == [b"now", b"mine"]


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_a_flood_of_headers_is_read_once(world: DelayWorld, codec: Codec) -> None:
    flood: Sent = (b"x", [("x-ray", b"")] * 20_000 + [("x-deliver-after-ms", b"10")])
    assert world.send(flood, codec=codec).code == ErrorCode.NONE
    doubled: Sent = (b"y", [("x-deliver-after-ms", b"10")] * 20_000)
    result = world.send(doubled, codec=codec)
    assert result.record_errors == ((0, "x-deliver-after-ms is given twice"),)
    bad: Sent = (b"z", [("x-schedule-what", b"")])
    result = world.send(*([bad] * 5_000), codec=codec)
    assert len(result.record_errors) == MAX_RECORD_ERRORS
    world.advance(10)
    assert world.values() == [b"x"]


def test_a7_a_herd_is_delivered_in_bounded_steps(world: DelayWorld) -> None:
    for _ in range(20):
        world.send(*(after(b"x", 60_000) for _ in range(250)))
    world.advance(60_000)
    assert len(world.values()) == 5_000
    steps = [view.count for view in batches(world.target, 5_000, 1 << 20, Bound.END)]  # each appends one batch
    assert (sum(steps), max(steps)) == (5_000, ALONE), "the loop has its turn in between"
    figures = world.schedules.figures
    assert (figures.delivered, sum(figures.lateness)) == (5_000, 5_000)


def test_a15_a_cancel_before_the_due_time_always_wins(world: DelayWorld) -> None:
    for number in range(300):
        world.send(after(b"%d" % number, 5, id=b"%d" % number))
        world.advance(number % 5)  # up to the last millisecond
        world.send(cancel(b"%d" % number))
        world.advance(6)
    assert world.values() == []
    assert world.schedules.figures.cancelled == 300


def test_a_partition_that_cannot_be_written_holds_up_no_other(
    world: DelayWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.lead("other")
    world.flush()
    world.send(after(b"stuck", 10))
    world.produce(topic="other", records=records(after(b"free", 20)))
    world.target.broken = "for a while"
    world.advance(30)
    assert world.schedules.figures.failures >= 1
    assert world.log_of("other").end_offset == 2
    monkeypatch.undo()
    world.target.broken = ""
    world.advance(2_000)
    assert world.values() == [b"stuck"]


def test_a_client_cannot_pretend_to_be_the_broker(world: DelayWorld) -> None:
    world.send(after(b"waits", 1_000))
    result = world.send((b"x", [("x-schedule-offset", b"0")]), producer=(-2, 0, 0))
    assert result.code == ErrorCode.INVALID_RECORD
    world.send((b"x", [("x-schedule-offset", b"0"), ("x-schedule-note", b"1")]))
    world = world.restart()
    world.advance(1_000)
    assert b"waits" in world.values()
    world.close()


def test_due_times_at_the_edge_of_64_bits_are_refused_or_kept(world: DelayWorld) -> None:
    world.set(delivery_delay_max_ms=2**63 - 1)
    last = 2**63 - 1
    refused = world.send((b"x", [("x-deliver-after-ms", b"%d" % last)]))
    assert refused.code == ErrorCode.INVALID_RECORD
    assert world.send((b"x", [("x-deliver-at", b"%d" % last)])).code == ErrorCode.NONE
    assert world.send((b"y", [("x-deliver-at", last.to_bytes(8, "big"))])).code == ErrorCode.NONE
    assert world.send((b"z", [("x-deliver-at", b"0")])).code == ErrorCode.NONE
    world.advance(10)
    assert world.values() == [b"z"]
    world = world.restart()
    assert world.waiting == 2
    world.send(cancel(b"*"))
    assert world.waiting == 0
    world.close()
