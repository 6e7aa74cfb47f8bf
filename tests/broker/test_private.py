"""Nobody else on the machine reads a broker's data."""

from __future__ import annotations

import logging
import os
import stat
from pathlib import Path

import pytest

from ixion.broker.log.files import Files
from tests.broker.support import broker_with, run


def modes(root: Path) -> dict[str, int]:
    return {str(path.relative_to(root)): stat.S_IMODE(path.stat().st_mode) for path in (root, *root.rglob("*"))}


def test_new_data_is_private(tmp_path: Path) -> None:
    async def work() -> None:
        broker = broker_with(Files(), tmp_path / "data")
        await broker.start()
        assert [name for name, mode in modes(tmp_path / "data").items() if mode & 0o077] == []
        await broker.stop(drain_ms=100)
        assert [name for name, mode in modes(tmp_path / "data").items() if mode & 0o077] == []

    before = os.umask(0)
    try:
        run(work)
    finally:
        os.umask(before)


def test_an_open_directory_is_tightened_and_a_line_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    data = tmp_path / "data"

    async def life() -> None:
        broker = broker_with(Files(), data)
        await broker.start()
        await broker.stop(drain_ms=100)

    run(life)
    metadata = [path for path in data.iterdir() if path.is_file() and path.read_bytes()[:6] == b"SQLite"]
    assert len(metadata) == 1
    data.chmod(0o755)
    metadata[0].chmod(0o644)
    with caplog.at_level(logging.WARNING):
        run(life)
    assert stat.S_IMODE(data.stat().st_mode) == 0o700
    assert stat.S_IMODE(metadata[0].stat().st_mode) == 0o600
    said = [record.getMessage() for record in caplog.records if "open to other users" in record.getMessage()]
    assert len(said) == 2
