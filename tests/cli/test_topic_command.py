"""`ixion topic`."""

from __future__ import annotations

import pytest

from ixion.cli.app import find
from ixion.cli.command import Group
from ixion.cli.options import YES
from tests.cli.harness import Ixion


def test_a_topic_from_its_creation_to_its_end(ixion: Ixion) -> None:
    name = "shop-orders"
    assert ixion("topic", "create", name, "-p", "3", "--config", "retention.ms=600000") == (
        f"created {name} with 3 partitions\n"
    )
    (row,) = [row for row in ixion.jsons("topic", "list") if row["topic"] == name]
    assert (row["partitions"], row["replicas"], row["internal"]) == (3, 1, False)
    found = ixion.json("topic", "describe", name)
    assert found["id"] == row["id"]
    assert found["configs"] == {"retention.ms": "600000"}
    assert [(part["partition"], part["first"], part["end"]) for part in found["partitions"]] == [
        (number, 0, 0) for number in range(3)
    ]
    leader = found["partitions"][0]["leader"]
    assert [part["in_sync"] for part in found["partitions"]] == [[leader]] * 3

    assert ixion("topic", "alter", name, "--partitions", "5", "--unset", "retention.ms") == f"altered {name}\n"
    found = ixion.json("topic", "describe", name)
    assert (len(found["partitions"]), found["configs"]) == (5, {})

    assert ixion("topic", "delete", "--yes", name) == f"deleted {name}\n"
    assert name not in [row["topic"] for row in ixion.jsons("topic", "list")]
    assert ixion.refused("topic", "delete", "--yes", name).startswith(f"ixion: there is no topic '{name}'")
    assert ixion("topic", "delete", "--yes", name, "--if-exists") == f"{name} does not exist\n"


def test_plain_columns_for_a_pipe(ixion: Ixion) -> None:
    name = ixion.topic(2)
    lines = ixion("topic", "list").splitlines()
    assert lines[0].split() == ["TOPIC", "PARTITIONS", "REPLICAS", "RECORDS", "BYTES"]
    assert [name, "2", "1", "0", "0"] in [line.split() for line in lines]
    head, columns, *rows = ixion("topic", "describe", name).splitlines()
    assert head.startswith(f"{name}, id ")
    assert columns.split() == ["PARTITION", "LEADER", "REPLICAS", "IN-SYNC", "FIRST", "END"]
    assert [row.split()[0] for row in rows] == ["0", "1"]


def test_what_exists_is_not_created_again(ixion: Ixion) -> None:
    name = ixion.topic()
    assert ixion.refused("topic", "create", name) == f"ixion: topic '{name}' exists; --if-not-exists accepts that"
    assert ixion("topic", "create", name, "--if-not-exists") == f"{name} exists\n"
    assert ixion.jsons("topic", "create", name, "--if-not-exists") == [{"topic": name, "created": False}]


def test_internal_topics_are_shown_on_request(ixion: Ixion) -> None:
    ixion("group", "reset", "any-group", "-t", ixion.topic(), "--to-latest", "--execute")
    assert "__consumer_offsets" not in [row["topic"] for row in ixion.jsons("topic", "list")]
    shown = {row["topic"]: row["internal"] for row in ixion.jsons("topic", "list", "--internal")}
    assert shown["__consumer_offsets"] is True


def test_what_makes_no_sense_is_refused(ixion: Ixion) -> None:
    name = ixion.topic(2)
    assert f"did you mean '{name}'" in ixion.refused("topic", "describe", f"{name}x")
    assert "retention.ms" in ixion.refused("topic", "create", "bad", "--config", "retention.ms=soon")
    assert "topic 'a b'" in ixion.refused("topic", "create", "a b")
    assert name in ixion.refused("topic", "alter", name, "--partitions", "1")
    assert "nothing to alter" in ixion.refused("topic", "alter", name, code=2)
    assert "--config needs name=value, not 'x'" in ixion.refused("topic", "create", "t", "--config", "x", code=2)


def test_the_list_has_records_and_bytes(ixion: Ixion) -> None:
    name, empty = ixion.topic(3), ixion.topic()
    for partition in range(3):
        ixion("produce", name, "-p", str(partition), stdin="x\n" * (partition + 2))
    rows = {row["topic"]: row for row in ixion.jsons("topic", "list")}
    assert (rows[name]["records"], rows[empty]["records"], rows[empty]["bytes"]) == (9, 0, 0)
    assert rows[name]["bytes"] > 3 * 61, "a batch has at least so many bytes"
    columns, *_ = ixion("topic", "list", name).splitlines()
    assert columns.split() == ["TOPIC", "PARTITIONS", "REPLICAS", "RECORDS", "BYTES"]


DESTROYING = (
    ("topic", "delete", "t"),
    ("group", "delete", "g"),
    ("schedule", "purge", "t"),
    ("user", "remove", "u"),
    ("token", "expire", "t"),
    ("acl", "remove", "--all"),
    ("transaction", "abort", "t", "0", "0"),
)


@pytest.mark.parametrize("words", DESTROYING, ids=" ".join)
def test_what_destroys_has_one_way_to_say_that_it_is_meant(words: tuple[str, ...]) -> None:
    found = find(words[0])
    assert isinstance(found, Group)
    command = found.find(words[1])
    assert command is not None
    assert YES in command.options


@pytest.mark.parametrize("words", [("topic", "delete"), ("group", "delete"), ("user", "remove"), ("schedule", "purge")])
def test_without_a_terminal_it_needs_yes(ixion: Ixion, words: tuple[str, ...]) -> None:
    name = ixion.topic()
    assert "; add --yes to do it (see ixion" in ixion.refused(*words, name, code=2)
    assert ixion.json("topic", "describe", name)["topic"] == name
