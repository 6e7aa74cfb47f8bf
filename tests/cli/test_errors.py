"""What goes wrong is said in one line, with an exit code."""

from __future__ import annotations

import socket

import pytest

from ixion.cli.app import COMMANDS, execute
from ixion.cli.options import unescape
from ixion.cli.output import print_columns


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = execute(list(words))
    out, err = capsys.readouterr()
    return code, out, err


def test_no_broker_at_the_address(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
    expected = (1, "", f"ixion: connection refused by {address}; is the broker running?\n")
    assert run(capsys, "topic", "list", "--bootstrap", address) == expected


def test_a_broker_that_never_answers(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        address = f"127.0.0.1:{mute.getsockname()[1]}"
        for seconds in ("0.05", "2", "60"):  # on a busy machine the time may be up before the request is sent
            code, out, err = run(capsys, "consume", "orders", "-b", address, "--timeout", seconds)
            assert (code, out) == (1, "")
            assert f"not done within {seconds} s" in err
            assert err.count("\n") == 1
            if "gave no answer" in err:
                break
    assert f"{address} gave no answer within" in err


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["topic", "list", "-b", "host:x"], "'host:x' is not an address: write host:port, for example 127.0.0.1:9092"),
        (["topic", "list", "--timeout", "0"], "--timeout must be more than 0 seconds, not 0"),
        (["topic", "frobnicate"], "there is no command 'frobnicate'"),
        (["frobnicate"], "there is no command 'frobnicate'"),
        (["topic", "create"], "TOPIC... is missing"),
        (["consume", "t", "--max", "x"], "--max must be a whole number, not 'x'"),
        (["consume", "t", "--colour"], "there is no option --colour"),
    ],
)
def test_wrongly_called(capsys: pytest.CaptureFixture[str], words: list[str], line: str) -> None:
    code, out, err = run(capsys, *words)
    assert (code, out) == (2, "")
    assert line in err
    assert err.startswith("ixion")
    assert err.endswith(" --help)\n")
    assert err.count("\n") == 1


def test_without_words_it_lists_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys)
    assert (code, err) == (2, "")
    for name in COMMANDS:
        assert f"\n  {name} " in out
    assert run(capsys, "--help")[:2] == (0, out)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(capsys: pytest.CaptureFixture[str], name: str) -> None:
    code, out, _ = run(capsys, name, "--help")
    assert code == 0
    assert f"Usage: ixion {name}" in out


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (r"\t", b"\t"),
        (r"\n\0", b"\n\0"),
        (r"\\t", rb"\t"),
        ("::", b"::"),
        (r"\x41\xff\x00", b"A\xff\0"),
        ("\\x4\\q\\\\x41\\", b"\\x4\\q\\x41\\"),
        ("\udcfe", b"\xfe"),
    ],
)
def test_separators_as_a_shell_writes_them(written: str, meant: bytes) -> None:
    assert unescape(written) == meant


def test_columns(capsys: pytest.CaptureFixture[str]) -> None:
    print_columns(
        ["NAME", "IN-SYNC", "N"], ("name", "in sync", "n"), [["a", "1,2", "10"], ["longer", "-", "5"]], right=("n",)
    )
    assert capsys.readouterr().out == "NAME    IN-SYNC   N\na       1,2      10\nlonger  -         5\n"
