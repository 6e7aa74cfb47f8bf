"""Help: every page is there, by every way that leads to it, with no line cut."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import ixion
from ixion.broker.startup.logs import FORMATS, LEVELS
from ixion.cli.access import BOOTSTRAP, CLUSTER, NAMES
from ixion.cli.app import COMMANDS, SECTIONS, execute, find
from ixion.cli.command import Command, Group
from ixion.cli.help.topics import TOPICS
from ixion.cli.serve.commands import LOG_FORMATS, LOG_LEVELS
from ixion.pipelines.spark.class_archive import FOLDER


def pages() -> Iterator[tuple[list[str], Command]]:
    for name in COMMANDS:
        found = find(name)
        if isinstance(found, Group):
            for command in found.commands:
                yield [name, command.name], command
        else:
            yield [name], found


PAGES = list(pages())


def shown(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    assert execute(list(words)) == code
    out, err = capsys.readouterr()
    assert err == ""
    return out


@pytest.mark.parametrize(("words", "command"), PAGES, ids=[" ".join(words) for words, _ in PAGES])
def test_every_command_has_a_page(words: list[str], command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    page = shown(capsys, *words, "--help")
    assert page.startswith(f"Usage: ixion {' '.join(words)} [OPTIONS]")
    assert page == shown(capsys, *words, "-h") == shown(capsys, "help", *words)
    for option in command.options:
        assert option.flags[0] in page
        assert option.help.split()[0] in page
    for alias in command.aliases:
        assert page == shown(capsys, *words[:-1], alias, "-h")


@pytest.mark.parametrize(("words", "command"), PAGES, ids=[" ".join(words) for words, _ in PAGES])
def test_a_command_is_called_with_what_its_table_says(words: list[str], command: Command) -> None:
    declared = {option.name for option in command.options} | {argument.name for argument in command.arguments}
    if BOOTSTRAP in command.options:
        assert set(CLUSTER) <= set(command.options)
        declared = declared - NAMES | {"access"}
    parameters = inspect.signature(command.run).parameters
    if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        assert set(parameters) == declared
    flags = [flag for option in command.options for flag in (*option.flags, *option.hidden)]
    assert len(flags) == len(set(flags))
    assert "-h" not in flags
    assert command.summary.endswith(".")
    for option in command.options:
        assert re.search(r"[.)]$", option.help), option.name


@pytest.mark.parametrize("columns", [40, 80, 100, 200])
def test_no_line_is_cut_and_none_is_too_wide(
    columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    for words in [[], *([name] for name in COMMANDS), *(words for words, _ in PAGES)]:
        page = shown(capsys, *words, "--help")
        body = page.partition("\nExamples:")[0].splitlines()[1:]  # the usage and examples are to be copied whole
        wide = [line for line in body if len(line) > columns]
        assert [line for line in wide if len(line.split()) > 3] == [], words  # an option and its value stay together
        assert columns == 40 or wide == [], words
        assert "…" not in page.replace("=…", "").replace("IXION_…", "")


def test_a_summary_in_the_list_is_no_other_than_on_the_page() -> None:
    for _, entries in SECTIONS:
        for name, _, summary in entries:
            assert summary.endswith(".")
            assert find(name).name == name


def test_the_document_lists_every_command() -> None:
    document = Path(__file__).resolve().parents[2] / "docs" / "cli.md"
    table = document.read_text().partition("\n## Every command\n")[2]
    named = re.findall(r"^\| `ixion (.+)` \| .+ \|$", table, re.MULTILINE)
    assert named == [" ".join(words) for words, _ in PAGES]


def test_the_commands_come_in_the_order_of_use(capsys: pytest.CaptureFixture[str]) -> None:
    page = shown(capsys, "--help")
    listed = re.findall(r"^  ([a-z]+)  ", page, re.MULTILINE)
    assert listed[:4] == ["serve", "topic", "produce", "consume"]
    assert listed == list(COMMANDS)


@pytest.mark.parametrize("topic", TOPICS)
def test_topics(topic: str, capsys: pytest.CaptureFixture[str]) -> None:
    page = shown(capsys, "help", topic)
    assert page.startswith(TOPICS[topic].title)
    assert max(map(len, page.splitlines())) <= 80
    assert f"ixion help {topic}" in shown(capsys, "help")
    assert topic in shown(capsys, "--help")


def test_a_group_names_the_options_of_its_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert "--bootstrap" in shown(capsys, "topic", "-h") == shown(capsys, "help", "topic")
    assert "--bootstrap" not in shown(capsys, "pipeline", "-h")


def test_an_unknown_help_topic(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["help", "format"]) == 2
    assert "there is no help about 'format'; did you mean 'formats'?" in capsys.readouterr().err
    assert execute(["help", "zzz"]) == 2
    assert (
        "there is no help about 'zzz'; there is help about commands and formats, offsets, " in capsys.readouterr().err
    )


def test_serve_knows_the_same_logs_as_the_broker() -> None:
    assert (LOG_LEVELS, LOG_FORMATS) == (LEVELS, FORMATS)


def test_the_page_about_the_connection_has_every_option() -> None:
    page = TOPICS["connection"].text
    assert [option.flags[0] for option in CLUSTER if not any(flag in page for flag in option.flags)] == []


def test_the_page_about_the_environment_has_every_variable() -> None:
    """Those of options, and those that the sources read by name."""
    read = [
        name
        for folder in ("cli", "pipelines")
        for path in (Path(ixion.__path__[0]) / folder).rglob("*.py")
        for name in re.findall(r"""environ(?:\.get\(|\[)"([A-Z_]+)\"""", path.read_text())
    ]
    named = {*read, *(option.environment for option in CLUSTER if option.environment), FOLDER}
    assert {"IXION_TOKEN_FILE", "JAVA_HOME", "XDG_CACHE_HOME"} <= named
    assert sorted(name for name in named if name not in TOPICS["environment"].text) == []
