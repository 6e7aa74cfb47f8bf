"""The disk fails at every call in turn: start, append, roll, flush, compaction, retention, move, checkpoint, creation,
deletion, stop. What was acknowledged is there, nothing else is shown, and the logs serve or say why not.

`make test` walks a sample, the same each time; `make soak-faults` walks all of it (IXION_FAULTS=all).
"""

from __future__ import annotations

import copy
import os
import shutil
from pathlib import Path

import pytest

from tests.faults.disk import KILLS, TABLE, Fault, FaultyDisk, Killed, cases
from tests.faults.storage import Life, Truth, check_later, check_now, older_life

SHARE = 1 if os.environ.get("IXION_FAULTS") == "all" else 47
PARTS = 8  # tests that share the walk


def walk_one(template: Path, root: Path, truth: Truth, at: int, fault: Fault) -> None:
    shutil.copytree(template, root)
    files = FaultyDisk(at, fault)
    life = Life(root, files, copy.deepcopy(truth))

    def heal_and_check(life: Life) -> None:
        if files.struck and not files.healed:
            files.heal()
            check_now(life, fault != Fault.EIO)

    try:
        life.live(heal_and_check)
    except Killed:
        if hasattr(life, "manager"):
            life.manager.abandon()
    assert files.struck, "the call was made"
    check_later(root, life.truth)
    shutil.rmtree(root)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Truth, list[tuple[str, str]]]:
    """A directory that was killed, what it has acknowledged, and the calls of a life on it without a fault."""
    root = tmp_path_factory.mktemp("older")
    truth = older_life(root / "template", FaultyDisk())
    files = FaultyDisk()
    shutil.copytree(root / "template", root / "healthy")
    life = Life(root / "healthy", files, copy.deepcopy(truth))
    life.live()
    assert life.failures == []
    check_later(root / "healthy", life.truth)
    return root / "template", truth, files.calls


def test_the_life_makes_every_call_of_the_table(template: tuple[Path, Truth, list[tuple[str, str]]]) -> None:
    assert {what for what, _ in template[2]} == TABLE.keys() - {"sql"}


@pytest.mark.parametrize("part", range(PARTS))
def test_a_fault_at_every_call(template: tuple[Path, Truth, list[tuple[str, str]]], part: int, tmp_path: Path) -> None:
    path, truth, calls = template
    for at, fault in cases(calls, SHARE)[part::PARTS]:
        try:
            walk_one(path, tmp_path / "life", truth, at, fault)
        except Exception as error:
            error.add_note(f"{fault.name} at call {at}, {calls[at]}")
            raise


def test_a_kill_while_recovery_rebuilds_an_index(
    template: tuple[Path, Truth, list[tuple[str, str]]], tmp_path: Path
) -> None:
    """The start after it takes an index that is there for whole: no abort may be missing from it."""
    path, truth, calls = template
    walked = 0
    for at, (what, file) in enumerate(calls):
        if "ended-0" in file and ".txnindex" in file:
            for fault in set(KILLS) & set(TABLE[what]):
                walk_one(path, tmp_path / "life", truth, at, fault)
                walked += 1
    assert walked > 4
