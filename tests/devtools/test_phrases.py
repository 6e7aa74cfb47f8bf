"""Banned phrasings are found, and their counts may only shrink."""

from __future__ import annotations

from pathlib import Path

import pytest

from devtools import phrases


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(phrases, "ROOT", tmp_path)
    monkeypatch.setattr(phrases, "COUNTS", tmp_path / "phrases.txt")
    (tmp_path / "src/ixion/broker/log").mkdir(parents=True)
    (tmp_path / "docs").mkdir()
    (tmp_path / "src/ixion/broker/log/log.py").write_text('"""Whoever waits\n    is told."""\n')
    (tmp_path / "README.md").write_text("A client gets an answer.\n")
    phrases.write()
    return tmp_path


def test_what_is_there_is_allowed(tree: Path) -> None:
    assert (tree / "phrases.txt").read_text() == "  2 src/ixion/broker/log\n"
    assert phrases.check() == []


def test_one_more_is_an_error_with_its_place(tree: Path) -> None:
    (tree / "README.md").write_text("\nA client that asks Is Told.\n")
    assert phrases.check() == [". has 1 banned phrasings, 0 are allowed:", "README.md:2: Is Told"]
    phrases.write()
    assert phrases.check() != [], "writing the counts allows no more than before"


def test_a_file_may_be_split(tree: Path) -> None:
    (tree / "src/ixion/broker/log/log.py").write_text('"""Whoever waits."""\n')
    (tree / "src/ixion/broker/log/parts").mkdir()
    (tree / "src/ixion/broker/log/parts/part.py").write_text('"""It is told."""\n')
    assert phrases.check() == []


def test_the_counts_shrink(tree: Path) -> None:
    (tree / "src/ixion/broker/log/log.py").write_text('"""It is told."""\n')
    phrases.write()
    assert (tree / "phrases.txt").read_text() == "  1 src/ixion/broker/log\n"
