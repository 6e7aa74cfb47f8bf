"""`ixion dump` on every kind of file that a log has, and on damaged ones."""

from __future__ import annotations

import json
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from ixion.broker.log.config import LogConfig
from ixion.broker.log.manager import LogManager
from ixion.broker.log.meta_properties import MetaProperties
from ixion.broker.log.prepare import Origin
from ixion.cli.app import execute
from ixion.language.records.compression import Codec
from tests.log.support import NOW, Clock, QuickFiles, batch, marker

ID = bytes.fromhex("11111111222243338444555555555555")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    config = LogConfig(index_interval_bytes=0, segment_bytes=500)
    manager = LogManager([str(tmp_path)], clock_ms=Clock(), config_of=lambda _: config, files=QuickFiles())
    manager.load()
    manager.directories[0].set_meta_properties(MetaProperties(version=0, cluster_id="abc", node_id=3))
    log = manager.create("orders", 0, ID)
    log.append_as_leader(batch(b"one", b"two", producer=(9, 0, 0), codec=Codec.GZIP), 4)
    log.append_as_leader(batch(b"\xff", producer=(9, 0, 2), transactional=True), 4)
    log.append_as_leader(marker(9, 0, commit=False), 4, Origin.COORDINATOR)
    for _ in range(6):
        log.append_as_leader(batch(b"x" * 50), 5)
    log.raise_high_watermark(3)
    manager.close()
    return tmp_path


def run(path: Path, *options: str, code: int = 0) -> str:
    printed, complained = StringIO(), StringIO()
    with redirect_stdout(printed), redirect_stderr(complained):
        assert execute(["dump", str(path), *options]) == code
    return printed.getvalue() or complained.getvalue()


def rows(path: Path, *options: str, code: int = 0) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run(path, "--json", *options, code=code).splitlines()]


def test_batches_and_records(data: Path) -> None:
    path = data / "orders-0" / f"{0:020d}.log"
    head, first, second, third, *_ = rows(path)
    assert head["bytes"] == path.stat().st_size
    assert (first["batch"], first["last"], first["codec"], first["epoch"], first["crc"]) == (0, 1, "gzip", 4, "ok")
    assert (first["producer"], first["sequence"], first["timestamp"]) == (9, 0, NOW)
    assert second["transactional"]
    assert third["control"] == "abort"
    deep = rows(path, "--deep")
    assert [(row["offset"], row["value"]) for row in deep if "value" in row][:3] == [
        (0, "one"),
        (1, "two"),
        (2, "\\xff"),
    ]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (f"orders-0/{0:020d}.index", {"offset": 2}),
        (f"orders-0/{0:020d}.timeindex", {"timestamp": NOW}),
        (f"orders-0/{0:020d}.txnindex", {"producer": 9, "first": 2, "last": 3, "last stable": 4}),
        ("orders-0/leader-epoch-checkpoint", {"epoch": 4, "start": 0}),
        ("orders-0/partition.metadata", {"topic id": "ERERESIiQzOERFVVVVVVVQ"}),
        ("recovery-point-offset-checkpoint", {"topic": "orders", "partition": 0, "offset": 10}),
        ("replication-offset-checkpoint", {"topic": "orders", "partition": 0, "offset": 3}),
        ("meta.properties", {"version": 0, "cluster": "abc", "node": 3}),
    ],
)
def test_every_other_kind_of_file(data: Path, name: str, expected: dict[str, Any]) -> None:
    first = rows(data / name)[1]
    assert {key: first[key] for key in expected} == expected


def test_a_snapshot(data: Path) -> None:
    (path, *_) = sorted((data / "orders-0").glob("*.snapshot"))
    (row,) = [row for row in rows(path)[1:] if row["producer"] == 9]
    assert (row["sequence"], row["last"], row["transaction from"]) == (2, 2, -1)


def test_a_whole_directory_for_people(data: Path) -> None:
    text = run(data)
    assert text.count(" bytes)") >= 10
    assert "  batch 0 · last 1 · records 2" in text
    assert "cluster abc" in text


def test_damage_is_shown_and_ends_in_code_1(data: Path) -> None:
    path = data / "orders-0" / f"{0:020d}.log"
    content = bytearray(path.read_bytes())
    content[70] ^= 1
    path.write_bytes(bytes(content) + b"torn")
    found = rows(path, code=1)
    assert found[1]["crc"] == "wrong"
    assert "4 bytes are left" in found[-1]["damaged"]
    index = path.with_suffix(".index")
    index.write_bytes(b"abc")
    assert "not a multiple" in rows(index, code=1)[1]["damaged"]


def test_what_is_not_there_or_not_known_is_said(data: Path) -> None:
    assert "there is no" in run(data / "nothing", code=1)
    other = data / "notes.txt"
    other.write_text("x")
    assert "this is not the name of a file in a log directory" in run(other, code=1)
