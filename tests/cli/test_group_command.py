"""`ixion group`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer

from tests.cli.harness import Ixion


def filled(ixion: Ixion, count: int = 10) -> str:
    name = ixion.topic(retention_ms="-1")
    lines = [f'{{"value": "{number}", "timestamp": {1_000_000 + 1000 * number}}}\n' for number in range(count)]
    ixion("produce", name, "--json", stdin="".join(lines))
    return name


@contextmanager
def reading(ixion: Ixion, group: str, topic: str, count: int, protocol: str) -> Iterator[None]:
    """A member that has read and committed so many."""
    consumer = Consumer(
        {
            "bootstrap.servers": ixion.bootstrap,
            "group.id": group,
            "group.protocol": protocol,
            "client.id": "reader",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    try:
        consumer.subscribe([topic])
        for _ in range(count):
            message = consumer.poll(60)
            assert message is not None
            assert message.error() is None
            consumer.commit(message=message, asynchronous=False)
        yield
    finally:
        consumer.close()


def positions(ixion: Ixion, group: str) -> list[tuple[int | None, int | None, int | None]]:
    rows = ixion.json("group", "describe", group)["partitions"]
    return [(row["committed"], row["end"], row["lag"]) for row in rows]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_at_work(ixion: Ixion, protocol: str) -> None:
    topic = filled(ixion)
    group = f"{topic}-group"
    with reading(ixion, group, topic, 4, protocol):
        listed = [(row["group"], row["state"], row["type"]) for row in ixion.jsons("group", "list")]
        assert (group, "Stable", protocol) in listed
        found = ixion.json("group", "describe", group)
        assert (found["state"], [member["client"] for member in found["members"]]) == ("Stable", ["reader"])
        (row,) = found["partitions"]
        assert (row["topic"], row["committed"], row["end"], row["lag"]) == (topic, 4, 10, 6)
        assert (row["client"], row["member"]) == ("reader", found["members"][0]["member"])
        head, columns, line = ixion("group", "describe", group).splitlines()
        assert head == f"{group} is stable, 1 member"
        assert columns.split() == ["TOPIC", "PARTITION", "COMMITTED", "END", "LAG", "CLIENT", "HOST"]
        assert line.split()[:6] == [topic, "0", "4", "10", "6", "reader"]
        stopped = ixion.refused("group", "reset", group, "--to-earliest", "--execute")
        assert stopped == f"ixion: group '{group}' is stable with 1 members; stop them first"
        assert group in ixion.refused("group", "delete", "--yes", group)
    ixion("group", "reset", group, "--to-earliest", "--execute")
    assert ixion("group", "delete", "--yes", group) == f"deleted {group}\n"
    assert ixion.refused("group", "describe", group) == f"ixion: there is no group '{group}'"


def test_a_reset_is_shown_before_it_is_done(ixion: Ixion) -> None:
    topic = filled(ixion)
    group = f"{topic}-group"
    plan = ixion("group", "reset", group, "-t", topic, "--to-offset", "4")
    assert [line.split() for line in plan.splitlines()] == [
        ["TOPIC", "PARTITION", "BEFORE", "AFTER"],
        [topic, "0", "-", "4"],
    ]
    assert ixion.errors == "ixion: nothing was changed; add --execute to do it\n"
    assert group not in [row["group"] for row in ixion.jsons("group", "list")]
    for options, expected in (
        (["-t", topic, "--to-offset", "4"], 4),
        (["--shift", "3"], 7),
        (["--shift", "-99"], 0),
        (["--to-latest"], 10),
        (["--to-offset", "99"], 10),
        (["--to-datetime", "1970-01-01T00:16:45Z"], 5),
        (["-t", f"{topic}:0", "--to-earliest"], 0),
    ):
        ixion("group", "reset", group, *options, "--execute")
        assert positions(ixion, group) == [(expected, 10, 10 - expected)]


def test_offsets_outlive_their_topic_in_the_view(ixion: Ixion) -> None:
    kept, gone = filled(ixion), filled(ixion)
    group = f"{kept}-group"
    ixion("group", "reset", group, "-t", kept, "-t", gone, "--to-latest", "--execute")
    assert len(positions(ixion, group)) == 2
    ixion("topic", "delete", "--yes", gone)
    assert (10, 10, 0) in positions(ixion, group)


def test_what_makes_no_sense_is_refused(ixion: Ixion) -> None:
    topic = filled(ixion, 1)
    one_of = "give one of --to-earliest, --to-latest, --to-offset, --to-datetime and --shift"
    assert one_of in ixion.refused("group", "reset", "g", "-t", topic, code=2)
    assert one_of in ixion.refused("group", "reset", "g", "-t", topic, "--to-latest", "--shift", "1", code=2)
    assert "--to-datetime needs" in ixion.refused("group", "reset", "g", "--to-datetime", "noon", code=2)
    assert "TOPIC:0,2" in ixion.refused("group", "reset", "g", "-t", f"{topic}:x", "--to-latest", code=2)
    assert "partitions 0 to 0 only" in ixion.refused("group", "reset", "g", "-t", f"{topic}:1", "--to-latest")
    assert "has committed nothing" in ixion.refused("group", "reset", "no-group", "--to-latest")
    assert "nothing is committed for" in ixion.refused("group", "reset", "no-group", "-t", topic, "--shift", "1")
    assert "there is no group" in ixion.refused("group", "describe", "no-group")
    assert "no-group" in ixion.refused("group", "delete", "--yes", "no-group")
