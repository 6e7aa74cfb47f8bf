"""`ixion consume --share`, and `ixion group` for share groups."""

from __future__ import annotations

import pytest

from tests.cli.harness import Ixion


def queue(ixion: Ixion, count: int) -> str:
    """A topic with that many records, and a group of its name that begins at the first."""
    name = ixion.topic(1)
    ixion("produce", name, stdin="".join(f"job {number}\n" for number in range(count)))
    ixion("config", "set", "group", name, "share.auto.offset.reset=earliest")
    return name


def test_printed_records_are_accepted_and_no_others_are_taken(ixion: Ixion) -> None:
    name = queue(ixion, 5)
    assert ixion("consume", name, "--share", name, "-n", "2") == "job 0\njob 1\n"
    assert ixion("consume", name, "--share", name, "-n", "3") == "job 2\njob 3\njob 4\n"


def test_a_share_group_is_listed_described_reset_and_deleted(ixion: Ixion) -> None:
    name = queue(ixion, 3)
    ixion("consume", name, "--share", name, "-n", "2")
    assert [each["type"] for each in ixion.jsons("group", "list") if each["group"] == name] == ["share"]
    found = ixion.json("group", "describe", name)
    assert (found["state"], found["assignor"], found["members"]) == ("Empty", "simple", [])
    (row,) = found["partitions"]
    assert (row["topic"], row["partition"], row["end"], row["lag"], row["clients"]) == (name, 0, 3, 1, [])
    assert "TOPIC" in ixion("group", "describe", name)
    ixion("group", "reset", name, "--to-earliest", "--execute")
    assert ixion("consume", name, "--share", name, "-n", "1") == "job 0\n"
    ixion("group", "delete", name, "--yes")
    assert name not in ixion("group", "list")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("-o", "3"), "leave out --offset; where it begins: ixion config set group g share.auto.offset.reset=earliest"),
        (("--exit-at-end",), "leave out --exit-at-end"),
        (("--group", "other"), "leave out --group"),
        (("--grep", "x"), "leave out --grep"),
    ],
)
def test_options_that_choose_records_are_refused(ixion: Ixion, options: tuple[str, ...], said: str) -> None:
    assert said in ixion.refused("consume", "any", "--share", "g", *options, code=2)
