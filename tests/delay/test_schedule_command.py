"""`ixion schedule`, and what /metrics says of delayed records."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from ixion.cli.wheel.broker import line_of
from ixion.testing import Broker
from tests.cli.harness import Ixion


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(metrics=True) as running:
        yield running


@pytest.fixture
def ixion(
    broker: Broker, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Ixion:
    return Ixion(broker.bootstrap, capfdbinary, monkeypatch, tmp_path)


def topic(ixion: Ixion, name: str, partitions: int = 1) -> str:
    ixion("topic", "create", name, "-p", str(partitions), "--config", "delivery.delay.mode=record")
    return name


def later(ixion: Ixion, name: str, value: str, delay_ms: int, *more: str) -> None:
    headers = [word for each in (f"x-deliver-after-ms={delay_ms}", *more) for word in ("-H", each)]
    ixion("produce", name, *headers, stdin=f"{value}\n")


def test_what_waits_is_listed_by_due_time_and_cancelled_by_offset_or_id(ixion: Ixion) -> None:
    name = topic(ixion, "reminders")
    ixion("schedule", "list", name)
    assert "nothing waits in reminders" in ixion.errors
    later(ixion, name, "b", 2_000_000)
    later(ixion, name, "a", 1_000_000, "x-schedule-id=first")
    later(ixion, name, "c", 3_000_000)
    rows = ixion.jsons("schedule", "list", name)
    assert [(row["offset"], row["id"], row["state"]) for row in rows] == [
        (1, "first", "waits"),
        (0, "", "waits"),
        (2, "", "waits"),
    ]
    due = [datetime.fromisoformat(row["due"]) for row in rows]
    assert [each.utcoffset() for each in due] == [timedelta(0)] * 3
    assert due == sorted(due)
    assert ixion("schedule", "ls", name, "-n", "1").splitlines()[1].split()[2:4] == ["0", "1"]
    assert ixion("schedule", "cancel", name, "--offset", "2", "--id", "first", "--id", "x") == "cancelled 2 of 3\n"
    assert [row["offset"] for row in ixion.jsons("schedule", "list", name)] == [0]
    assert ixion.json("schedule", "list", name, "--count")["waiting"] == 1


def test_a_topic_is_purged_when_the_user_means_it(ixion: Ixion) -> None:
    name = topic(ixion, "purged", 2)
    for _ in range(6):
        later(ixion, name, "x", 1_000_000)
    ixion("schedule", "purge", name, code=2)
    assert ixion("schedule", "purge", name, "--yes") == "cancelled 6 records of purged\n"
    assert ixion("schedule", "list", name, "--count") == "0 records wait in purged, 0 bytes\n"


def test_wrong_uses_are_explained(ixion: Ixion) -> None:
    name = topic(ixion, "wrong", 2)
    for words in (("cancel", name), ("cancel", name, "--offset", "1"), ("list", name, "-p", "7")):
        ixion("schedule", *words, code=2)
        assert "--" in ixion.errors or "partition" in ixion.errors
    assert ixion("schedule", "list", ixion.topic(), "--count").startswith("0 records wait")


@pytest.mark.parametrize("schedule_id", ["*", "@0", "", "x" * 256])
def test_a_cancel_by_an_impossible_id_cancels_nothing(ixion: Ixion, schedule_id: str) -> None:
    name = topic(ixion, f"impossible-{len(schedule_id)}-{schedule_id[:1] == '*'}")
    later(ixion, name, "x", 1_000_000)
    ixion("schedule", "cancel", name, "--id", schedule_id, code=2)
    assert "no record can have the schedule id" in ixion.errors
    assert ixion.json("schedule", "list", name, "--count")["waiting"] == 1


@pytest.mark.parametrize("mode", ["off", "fixed"])
def test_in_another_mode_nothing_can_be_cancelled_and_nothing_is_written(ixion: Ixion, mode: str) -> None:
    name = f"mode-{mode}"
    ixion("topic", "create", name, "--config", f"delivery.delay.mode={mode}", "--config", "delivery.delay.ms=1000")
    for words in (("cancel", name, "--id", "x"), ("purge", name, "--yes")):
        ixion("schedule", *words, code=2)
        assert f"delivery.delay.mode={mode}" in ixion.errors
    ixion("schedule", "list", name)
    assert f"delivery.delay.mode={mode}" in ixion.errors
    assert ixion.json("topic", "describe", name)["partitions"][0]["end"] == 0


def test_the_barrier_of_mode_fixed_is_the_end_for_every_command(ixion: Ixion) -> None:
    ixion("topic", "create", "fixed", "--set", "delivery.delay.mode=fixed", "--set", "delivery.delay.ms=3600000")
    ixion("produce", "fixed", stdin="1\n2\n")
    assert ixion("consume", "fixed", "--exit-at-end") == ""
    assert ixion("consume", "fixed", "--exit-at-end", "--group", "g") == ""
    assert ixion.json("topic", "offsets", "fixed")["end"] == 0
    ixion("topic", "alter", "fixed", "--set", "delivery.delay.ms=1")
    assert ixion("consume", "fixed", "-n", "1", "--group", "g") == "1\n"
    assert ixion.json("topic", "offsets", "fixed")["end"] == 2
    assert ixion.json("group", "describe", "g")["partitions"][0]["lag"] == 1
    ixion("topic", "alter", "fixed", "--set", "delivery.delay.ms=3600000")
    assert ixion.json("group", "describe", "g")["partitions"][0]["lag"] == 0, "hidden again"


def test_no_client_can_write_into_a_sibling(ixion: Ixion) -> None:
    topic(ixion, "guarded")
    ixion("produce", "__delay.guarded", stdin="x\n", code=1)


def test_metrics_tell_what_waits_and_what_became_of_the_rest(ixion: Ixion, broker: Broker) -> None:
    name = topic(ixion, "measured")
    later(ixion, name, "x", 1_000_000, "x-schedule-id=i")
    later(ixion, name, "y", 1_000_000, "x-schedule-id=i")
    later(ixion, name, "now", 0)
    ixion("consume", name, "-n", "1")
    with urllib.request.urlopen(broker.metrics_url, timeout=30) as page:
        lines = dict(line.rsplit(" ", 1) for line in page.read().decode().splitlines() if not line.startswith("#"))
    assert lines['ixion_schedule_pending{topic="measured",partition="0"}'] == "1"
    assert int(lines['ixion_schedule_pending_bytes{topic="measured",partition="0"}']) > 60
    assert int(lines["ixion_schedule_delivered_total"]) >= 1
    assert int(lines["ixion_schedule_superseded_total"]) >= 1
    assert int(lines["ixion_schedule_lateness_seconds_count"]) >= 1
    names = {name.partition("{")[0] for name in lines}
    assert names >= {
        "ixion_schedule_near",
        "ixion_schedule_oldest_overdue_seconds",
        "ixion_schedule_lateness_seconds_bucket",
        *(f"ixion_schedule_{what}_total" for what in ("accepted", "cancelled", "rejected", "aborted", "dropped")),
        *(f"ixion_schedule_{what}_total" for what in ("orphaned", "failures")),
        "ixion_clock_jumps_total",
    }


def test_the_wheel_says_what_is_in_memory_and_not_what_is_due_within_an_hour() -> None:
    """Records of the next hour of the clock are on the disk, even if it begins in a minute."""
    each = {"topic": "t", "partition": 3, "waiting": 1_000, "near": 0, "bytes": 1e5, "overdue_ms": 0, "next_ms": 60_000}
    assert line_of(each) == "t-3: 1,000 wait, 0 in memory, 0.1 MB, next look in 60.0 s"
