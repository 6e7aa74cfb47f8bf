"""Command lines, word by word."""

from __future__ import annotations

from typing import Any

import pytest

from ixion.cli.command import Argument, Command, Option, UsageError, number, whole
from ixion.cli.parse import parse

COMMAND = Command(
    "try",
    "Try it.",
    lambda **_: None,
    arguments=(Argument("topic", "TOPIC"), Argument("files", "FILE...", required=False, many=True)),
    options=(
        Option("start", "--offset -o", "Where.", metavar="WHERE", default="earliest", hidden="--from"),
        Option("most", "--max -n", "How many.", metavar="N", kind=whole(1, 9)),
        Option("rate", "--rate", "How fast.", metavar="N", kind=number, environment="IXION_TEST_RATE"),
        Option("to_end", "--exit-at-end -e", "Stop."),
        Option("follow", "--follow -F", "Go on."),
        Option("create", "--create", "Create.", default=True, negative="--no-create"),
        Option("partition", "--partition -p", "Which.", metavar="N", kind=whole(0), many=True),
    ),
)
NOTHING: dict[str, Any] = {
    "topic": "t",
    "files": [],
    "start": "earliest",
    "most": None,
    "rate": None,
    "to_end": False,
    "follow": False,
    "create": True,
    "partition": [],
}


@pytest.mark.parametrize(
    ("words", "changed"),
    [
        ("t", {}),
        ("t --offset 5", {"start": "5"}),
        ("t --offset=5", {"start": "5"}),
        ("t --from 5", {"start": "5"}),
        ("-o -10 t", {"start": "-10"}),
        ("-o-10 t", {"start": "-10"}),
        ("-o=-10 t", {"start": "-10"}),
        ("t -n5", {"most": 5}),
        ("-eF t", {"to_end": True, "follow": True}),
        ("-en3 t", {"to_end": True, "most": 3}),
        ("t --no-create", {"create": False}),
        ("t -p 1 --partition 2", {"partition": [1, 2]}),
        ("t a b", {"files": ["a", "b"]}),
        ("t -e a", {"files": ["a"], "to_end": True}),
        ("t -- -e", {"files": ["-e"]}),
        ("t -", {"files": ["-"]}),
        ("t -17", {"files": ["-17"]}),
        ("t --rate 1.5", {"rate": 1.5}),
        ("t --rate=", None),
    ],
)
def test_words(words: str, changed: dict[str, Any] | None) -> None:
    if changed is None:
        with pytest.raises(UsageError, match="--rate must be a number, not ''"):
            parse(COMMAND, words.split(), {})
    else:
        assert parse(COMMAND, words.split(), {}) == NOTHING | changed


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("", "TOPIC is missing"),
        ("t --offsets 5", "there is no option --offsets; did you mean '--offset'?"),
        ("t -x", "there is no option -x"),
        ("t --host h", "there is no option --host"),  # with its dashes it is like --offset
        ("t --max", "--max needs a value: N"),
        ("t --max ten", "--max must be a whole number, not 'ten'"),
        ("t --max 0", "--max must be at least 1, not 0"),
        ("t -n10", "-n must be at most 9, not 10"),
        ("t --exit-at-end=yes", "--exit-at-end takes no value"),
    ],
)
def test_complaints(words: str, complaint: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(COMMAND, words.split(), {})
    assert str(caught.value) == complaint


def test_a_variable_stands_in_for_an_option(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IXION_TEST_RATE", "2.5")
    assert parse(COMMAND, ["t"], {})["rate"] == 2.5
    assert parse(COMMAND, ["t", "--rate", "1"], {})["rate"] == 1
    monkeypatch.setenv("IXION_TEST_RATE", "fast")
    with pytest.raises(UsageError, match="IXION_TEST_RATE must be a number, not 'fast'"):
        parse(COMMAND, ["t"], {})


def test_options_before_the_command_give_way_to_those_behind_it() -> None:
    assert parse(COMMAND, ["t"], {"start": "7"})["start"] == "7"
    assert parse(COMMAND, ["t", "-o", "8"], {"start": "7"})["start"] == "8"
    with pytest.raises(UsageError, match="there is no option --bootstrap for this command"):
        parse(COMMAND, ["t"], {"bootstrap": "x"})


def test_help_wins_over_what_is_missing() -> None:
    assert parse(COMMAND, ["-h"], {}) == {"help": True}
