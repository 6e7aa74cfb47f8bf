"""`ixion read`: the same records as `ixion consume`, in a file."""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.harness import Ixion

LINES = (
    '{"key": "a", "value": "one", "timestamp": 1000, "headers": [["via", "cli"], ["via", null]]}\n'
    '{"key": null, "value": "two, \\"three\\"", "timestamp": 2000}\n'
    '{"key": "", "value": null, "timestamp": 3000}\n'
    '{"key": "d", "value": {"base64": "/w=="}, "timestamp": 4000}\n'
)


def filled(ixion: Ixion) -> str:
    name = ixion.topic()
    ixion("produce", name, "--json", stdin=LINES)
    return name


def table(path: Path) -> list[dict[str, Any]]:
    found = pq.read_table(path) if path.suffix == ".parquet" else pa.ipc.open_file(path).read_all()
    rows: list[dict[str, Any]] = found.to_pylist()
    return rows


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_a_table_of_all_records(ixion: Ixion, tmp_path: Path, suffix: str) -> None:
    name = filled(ixion)
    path = tmp_path / f"orders.{suffix}"
    assert ixion("read", name, "--to", str(path)) == ""
    rows = table(path)
    assert [(row["offset"], row["key"], row["value"]) for row in rows] == [
        (0, b"a", b"one"),
        (1, None, b'two, "three"'),
        (2, b"", None),
        (3, b"d", b"\xff"),
    ]
    assert [row["timestamp"].timestamp() for row in rows] == [1, 2, 3, 4]
    assert rows[0]["headers"] == [{"key": "via", "value": b"cli"}, {"key": "via", "value": None}]
    assert (rows[0]["topic"], rows[0]["partition"], rows[0]["timestampType"]) == (name, 0, 0)
    assert list(tmp_path.glob(".*partial*")) == []


def test_csv(ixion: Ixion, tmp_path: Path) -> None:
    name = filled(ixion)
    path = tmp_path / "orders.csv"
    ixion("read", name, "--to", str(path))
    assert path.read_text().splitlines()[3] == f'"",,{name},0,2,3000,0,'
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["value"] for row in rows] == ["one", 'two, "three"', "", "base64:/w=="]
    assert rows[0]["headers"] == '[["via", "cli"], ["via", null]]'
    ixion("read", name, "--to", str(path), "--no-headers", "-n", "1")
    assert path.read_text() == f"key,value,topic,partition,offset,timestamp,timestampType\na,one,{name},0,0,1000,0\n"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["-o", "1", "--until", "3"], [1, 2]),
        (["-o", "-2"], [2, 3]),
        (["-o", "@2000", "--until", "@4000"], [1, 2]),
        (["-n", "2"], [0, 1]),
        (["--partition", "0", "--read-committed"], [0, 1, 2, 3]),
        (["-o", "latest"], []),
    ],
)
def test_parts_of_a_topic(ixion: Ixion, tmp_path: Path, words: list[str], expected: list[int]) -> None:
    path = tmp_path / "part.parquet"
    ixion("read", filled(ixion), "--to", str(path), *words)
    assert [row["offset"] for row in table(path)] == expected


@pytest.mark.parametrize("name", ["orders.json", "orders"])
def test_a_kind_of_file_that_is_not_known(ixion: Ixion, tmp_path: Path, name: str) -> None:
    said = ixion.refused("read", "orders", "--to", str(tmp_path / name), code=2)
    assert said.startswith("ixion read: --to must be a file that ends in .parquet, .arrow, .csv, not ")


def test_no_file(ixion: Ixion) -> None:
    said = ixion.refused("read", "orders", code=2)
    assert said.startswith("ixion read: --to is missing: a file that ends in .parquet, .arrow, .csv")


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "csv"])
def test_a_folder_that_is_not_there(ixion: Ixion, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / "none" / f"orders.{suffix}"
    said = ixion.refused("read", filled(ixion), "--to", str(path))
    assert said.startswith(f"ixion: cannot write {path}: ")


def test_a_topic_that_is_not_there_leaves_the_file_alone(ixion: Ixion, tmp_path: Path) -> None:
    path = tmp_path / "orders.csv"
    path.write_text("mine")
    assert "there is no topic 'none'" in ixion.refused("read", "none", "--to", str(path))
    assert path.read_text() == "mine"


def test_without_pyarrow(ixion: Ixion, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = filled(ixion)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    for suffix in ("parquet", "arrow"):
        said = ixion.refused("read", name, "--to", str(tmp_path / f"orders.{suffix}"))
        assert said == f"ixion: .{suffix} files need pyarrow, which is not installed: pip install pyarrow"
    ixion("read", name, "--to", str(tmp_path / "orders.csv"))
