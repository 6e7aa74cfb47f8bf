"""Records that are delivered again and again."""

from __future__ import annotations

from pathlib import Path

import pytest

from ixion.language.model.errors import ErrorCode
from ixion.language.records.recurrence import every_ms_of, next_due
from tests.delay.world import DelayWorld, Sent, batches_of, cancel
from tests.log.support import NOW

MINUTE = 60_000
HOUR = 60 * MINUTE


def every(value: bytes, interval: bytes, **more: bytes) -> Sent:
    named = [(f"x-schedule-{name}", content) for name, content in more.items()]
    return value, [("x-schedule-every", interval), ("x-schedule-id", b"i"), ("mine", b"\xff"), *named]


def pass_minutes(world: DelayWorld, count: int) -> None:
    for _ in range(count):
        world.advance(MINUTE)


def test_a_record_comes_at_each_of_its_times_until_it_is_cancelled(world: DelayWorld) -> None:
    assert world.send(every(b"tick", b"@every 5m")).code == ErrorCode.NONE
    pass_minutes(world, 4)
    assert world.values() == []
    pass_minutes(world, 12)
    assert world.values() == [b"tick"] * 3
    views = [view for view in batches_of(world.target) if view.count]
    headers = [dict(record.headers) for view in views for record in view.records()]
    assert [int(each["x-scheduled-for"] or 0) - NOW for each in headers] == [5 * MINUTE, 10 * MINUTE, 15 * MINUTE]
    assert [int(each["x-schedule-next"] or 0) - NOW for each in headers] == [10 * MINUTE, 15 * MINUTE, 20 * MINUTE]
    assert all(each["mine"] == b"\xff" for each in headers)
    assert world.waiting == 1
    world.send(cancel(b"i"))
    pass_minutes(world, 20)
    assert world.values() == [b"tick"] * 3
    assert (world.waiting, world.state.size, world.state.ids.count) == (0, 0, 0)


def test_it_survives_restarts_and_comes_once_after_a_long_time_down(world: DelayWorld) -> None:
    world.send(every(b"tick", b"1h"))
    world.advance(HOUR)
    assert world.values() == [b"tick"]
    before = world.state.size
    world = world.restart()
    assert (world.waiting, world.state.size) == (1, before)
    world = world.restart(down_ms=10 * HOUR + 7 * MINUTE)
    world.advance(1)
    assert world.values() == [b"tick"] * 2, "once, not ten times"
    world.advance(52 * MINUTE)
    assert world.values() == [b"tick"] * 2
    world.advance(2 * MINUTE)
    assert world.values() == [b"tick"] * 3, "then at its regular time"
    world.close()


def test_a_new_one_replaces_it_and_an_end_ends_it(world: DelayWorld) -> None:
    world.send(every(b"old", b"1m"))
    pass_minutes(world, 2)
    world.send(every(b"new", b"1m", until=b"%d" % (world.now_ms() + 3 * MINUTE)))
    pass_minutes(world, 10)
    assert world.values() == [b"old"] * 2 + [b"new"] * 3
    assert world.waiting == 0


def test_notes_about_earlier_times_can_be_deleted(world: DelayWorld) -> None:
    world.send(every(b"tick", b"1s"))
    for _ in range(100):
        world.advance(1_000)
    assert world.sibling.log_start > 50
    world = world.restart()
    world.advance(1_000)
    assert len(world.values()) == 101
    world.close()


def test_the_power_fails_and_the_note_that_it_is_due_again_is_lost(tmp_path: Path) -> None:
    world = DelayWorld(tmp_path)
    world.start()
    world.send(every(b"tick", b"1m"))
    kept = world.sibling.end_offset
    world.advance(MINUTE)
    world.sibling.truncate_to(kept)
    world = world.restart()
    assert (world.values(), world.waiting) == ([b"tick"], 1)
    world.advance(MINUTE)
    assert world.values() == [b"tick"] * 2
    world.close()


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        ([("x-schedule-every", b"1m")], "needs x-schedule-id"),
        (
            [("x-schedule-every", b"1m"), ("x-schedule-cron", b"* * * * *"), ("x-schedule-id", b"i")],
            "exclude each other",
        ),
        ([("x-schedule-every", b"999ms"), ("x-schedule-id", b"i")], "a second or more"),
        ([("x-schedule-every", b"1m;"), ("x-schedule-id", b"i")], "a second or more"),
        ([("x-schedule-every", b"9" * 5000 + b"d"), ("x-schedule-id", b"i")], "a second or more"),
        ([("x-schedule-every", b"1m"), ("x-schedule-id", b"i"), ("x-schedule-tz", b"UTC")], "belong to a recurring"),
        ([("x-deliver-after-ms", b"1"), ("x-schedule-until", b"5")], "belong to a recurring"),
        ([("x-schedule-every", b"1m"), ("x-schedule-id", b"i"), ("x-schedule-until", b"5")], "never due"),
        ([("x-schedule-every", b"1m"), ("x-schedule-id", b"i"), ("x-schedule-until", b"x")], "x-schedule-until is"),
    ],
)
def test_what_makes_no_sense_is_refused(
    world: DelayWorld, headers: list[tuple[str, bytes | None]], reason: str
) -> None:
    result = world.send((b"x", headers))
    assert result.code == ErrorCode.INVALID_RECORD
    assert reason in result.record_errors[0][1]


def test_a_batch_cannot_have_very_many_recurring_records(world: DelayWorld) -> None:
    assert world.send(*(every(b"x", b"1m") for _ in range(100))).code == ErrorCode.NONE
    result = world.send(*(every(b"x", b"1m") for _ in range(101)))
    assert result.code == ErrorCode.INVALID_RECORD
    assert [index for index, _ in result.record_errors] == [100]


def test_intervals() -> None:
    assert every_ms_of(b"@every 1h30m") == 90 * MINUTE
    assert every_ms_of(b"1d") == 24 * HOUR
    assert every_ms_of(b"1500ms") == 1500
    assert [every_ms_of(value) for value in (b"", b"5", b"m", b"367d", b"\xff", b"-5m")] == [-1] * 6
    assert next_due(1000, b"", b"", -1, 5_000, 5_000) == 6_000
    assert next_due(1000, b"", b"", -1, 5_000, 7_500) == 8_000
    assert next_due(1000, b"", b"", 7_999, 5_000, 7_500) == -1


def cron(value: bytes, expression: bytes, **more: bytes) -> Sent:
    named = [(f"x-schedule-{name}", content) for name, content in more.items()]
    return value, [("x-schedule-cron", expression), ("x-schedule-id", b"i"), *named]


def test_a_cron_expression_names_the_times(world: DelayWorld) -> None:
    pytest.importorskip("cronsim", reason="the extra ixion[cron] is not installed")
    # NOW is 2023-11-14 22:13:20 UTC.
    assert world.send(cron(b"tick", b"*/15 * * * *")).code == ErrorCode.NONE
    pass_minutes(world, 1)
    assert world.values() == []
    pass_minutes(world, 60)
    assert world.values() == [b"tick"] * 4
    result = world.send(cron(b"x", b"* * * *"), cron(b"y", b"0 8 * * *", tz=b"Mars/Base"), cron(b"z", b"0 0 30 2 *"))
    assert [index for index, _ in result.record_errors] == [0, 1, 2]


def test_a_cron_expression_follows_daylight_saving_time() -> None:
    pytest.importorskip("cronsim", reason="the extra ixion[cron] is not installed")
    march = 1_774_641_600_000  # 2026-03-27 20:00 UTC; on the 29th clocks go forward in Berlin
    first = next_due(0, b"0 8 * * *", b"Europe/Berlin", -1, march, march)
    second = next_due(0, b"0 8 * * *", b"Europe/Berlin", -1, first, first)
    assert first == march + 11 * HOUR
    assert second == first + 23 * HOUR
