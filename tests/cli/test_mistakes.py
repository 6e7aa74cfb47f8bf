"""Mistakes and odd surroundings: every one ends in a clear line and an exit code, none in a traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ixion.cli.app import execute
from ixion.testing import Broker
from tests.broker.served import serve_and_wait
from tests.cli.harness import Ixion

IXION = f'"{sys.executable}" -m ixion'


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        broker.create_topic("orders", 1)
        yield broker


@pytest.fixture
def ixion(
    broker: Broker, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Ixion:
    return Ixion(broker.bootstrap, capfdbinary, monkeypatch, tmp_path)


NOT_UTF8 = os.fsdecode(b"\xff")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("topic create x --partitions 99999999999", "--partitions must be at most 2147483647, not 99999999999"),
        ("topic create x --partitions -1", "--partitions must be at least 1, not -1"),
        ("topic create x --replication 40000", "--replication must be at most 32767, not 40000"),
        ("topic alter orders --partitions 0", "--partitions must be at least 1, not 0"),
        ("topic list --timeout inf", "--timeout must be at most 1000000, not inf"),
        ("topic list --timeout 3e6", "--timeout must be at most 1000000, not 3e6"),
        ("topic list --timeout nan", "--timeout must be a number, not 'nan'"),
        ("perf produce orders --size 9999999999", "--size must be at most 1073741824, not 9999999999"),
        ("group describe g --watch 1e10", "--watch must be at most 1000000, not 1e10"),
        ("help topic create extra", "'extra' is one word too many"),
        ("help formats extra", "'extra' is one word too many"),
        (f"topic describe {NOT_UTF8}", r"'\udcff' is not UTF-8"),
        (f"config set topic orders retention.ms={NOT_UTF8}", r"'retention.ms=\udcff' is not UTF-8"),
    ],
)
def test_wrong_words(ixion: Ixion, words: str, line: str) -> None:
    assert line in ixion.refused(*words.split(), code=2)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("no json", "line 1 of standard input: it is not JSON: Expecting value at column 1 (0 records before it sent)"),
        ('{"value": 1}\n[', "line 2 of standard input: it is not JSON: Expecting value at column 2 (1 record before"),
        ("[" * 100_000, "line 1 of standard input: it is nested too deeply"),
        ('{"value": {"base64": 1}}', "1 is not base64"),
        ('{"value": {"base64": "x"}}', "'x' is not base64"),
        ('{"value": "\\ud800"}', "half of a surrogate pair has no UTF-8 form"),
        ('{"value": 1, "timestamp": 1e30}', "is neither milliseconds nor a time"),
        (f'{{"value": 1, "timestamp": {1 << 63}}}', "is neither milliseconds nor a time"),
        ('{"value": 1, "partition": true}', "True is not a partition number"),
        ('{"value": 1, "partition": 99999999999}', "99999999999 is not a partition number"),
    ],
    ids=range(10),
)
def test_wrong_lines(ixion: Ixion, text: str, line: str) -> None:
    assert line in ixion.refused("produce", "orders", "--json", stdin=text)


def test_json_that_is_not_text(ixion: Ixion) -> None:
    ixion.raw("produce", "orders", "--json", stdin=b"\xff", code=1)
    assert "line 1 of standard input: it is not UTF-8" in ixion.errors


def test_wrong_files(ixion: Ixion, tmp_path: Path) -> None:
    assert ixion.refused("produce", "orders", str(tmp_path)) == f"ixion: {tmp_path} cannot be read: Is a directory"
    gone = tmp_path / "gone" / "x.toml"
    assert ixion.refused("produce", "orders", str(gone)) == f"ixion: {gone} cannot be read: No such file or directory"
    assert ixion.refused("pipeline", "init", str(gone)) == f"ixion: {gone}: No such file or directory"
    assert ixion.refused("dump", str(gone)) == f"ixion: there is no {gone}"


def test_a_time_that_no_record_has(ixion: Ixion) -> None:
    assert ixion("consume", "orders", "-e", "-o", "@99999999999999999999999") == ""
    assert ixion("topic", "offsets", "orders", "--at", f"@{1 << 70}").splitlines()[0] == "PARTITION  FIRST  END  AT"


def test_a_value_too_large_for_the_topic(ixion: Ixion) -> None:
    assert "the topic allows 1048588" in ixion.refused(
        "perf", "produce", "orders", "--records", "3", "--size", "2000000"
    )


def test_binary_keys_values_and_headers_survive_the_trip_as_json(ixion: Ixion) -> None:
    name = ixion.topic()
    ixion.raw("produce", name, "--key-separator", ":", "--header", "ü=é", stdin=b"\xff\x00:\x80\x81\n\xfe:")
    lines = ixion("consume", name, "-e", "--json")
    assert [json.loads(line)["key"] for line in lines.splitlines()] == [{"base64": "/wA="}, {"base64": "/g=="}]
    other = ixion.topic()
    ixion("produce", other, "--json", stdin=lines)
    found = ixion.raw("consume", other, "-e", "-f", "%k=%v %h")
    assert found == b"\xff\x00=\x80\x81 \xc3\xbc=\xc3\xa9\n\xfe= \xc3\xbc=\xc3\xa9\n"


def test_a_pipe_that_brings_nothing(ixion: Ixion) -> None:
    assert ixion("produce", ixion.topic(), stdin="") == ""
    assert ixion.errors == ""


def in_shell(broker: Broker, line: str, **variables: str) -> tuple[int, str, str]:
    surroundings = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    environment = {**surroundings, "IXION_BOOTSTRAP": broker.bootstrap, **variables}
    command = ["/bin/sh", "-c", line.replace("ixion", IXION)]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", env=environment, timeout=60)
    return done.returncode, done.stdout, done.stderr


NO_ROOM = "ixion: the output cannot be written: No space left on device\n"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("ixion topic list > /dev/full", (1, "", NO_ROOM)),
        ("ixion --version > /dev/full", (1, "", NO_ROOM)),
        ("ixion consume orders -e > /dev/full", (1, "", NO_ROOM)),
        ("ixion help > /dev/full 2> /dev/full", (1, "", "")),
        ("ixion topic list >&-", (0, "", "")),
        ("ixion consume orders -e >&-", (0, "", "")),
        ("ixion produce orders <&-", (0, "", "")),
        ("ixion topic frobnicate >&- 2>&-", (2, "", "")),
        (
            "ixion topic delete-records orders 0 2>&1 | tail -n 1",
            (0, "ixion: nothing was deleted; add --execute to do it\n", ""),
        ),
        ("ixion help formats | head -n 1", (0, "How records are written and read\n", "")),
        ("seq 200000 | ixion produce pipe --no-create 2>&1 | head -n 1", (0, "ixion: there is no topic 'pipe'\n", "")),
    ],
)
def test_streams_that_are_closed_or_full(broker: Broker, line: str, expected: tuple[int, str, str]) -> None:
    """The shell gives the exit code of the last command of a pipe."""
    in_shell(broker, "seq 20000 | ixion produce orders")
    assert in_shell(broker, line) == expected


def test_output_is_utf8_in_every_locale(broker: Broker) -> None:
    plain = {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"}
    code, shown, _ = in_shell(broker, "ixion help formats", **plain)
    assert (code, "'{…}'" in shown) == (0, True)
    code, shown, error = in_shell(broker, "ixion group describe ärger", **plain)
    assert (code, shown, error) == (1, "", "ixion: there is no group 'ärger'\n")


def test_a_damaged_file_is_a_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "00000000000000000000.log").write_bytes(b"\1" * 100)
    assert execute(["dump", str(tmp_path)]) == 1
    assert capsys.readouterr().err == "ixion: parts marked as damaged cannot be read\n"


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("--config gone", "the settings file gone cannot be read: No such file or directory"),
        ("--config .", "the settings file . cannot be read: Is a directory"),
        ("--set listeners=PLAINTEXT://0.0.0.0:9", "advertised.listeners, for example PLAINTEXT://HOST:9"),
        (
            "--set listeners=PLAINTEXT://192.0.2.1:9099 --allow-remote",
            "192.0.2.1:9099 is not an address of this machine; name one of its own in listeners",
        ),
    ],
)
def test_serve_says_what_keeps_it_from_starting(words: str, line: str, tmp_path: Path) -> None:
    done = serve_and_wait(*words.split(), cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert done.stderr.startswith("ixion serve: ")
    assert line in done.stderr
    assert list(tmp_path.iterdir()) == []
