"""The disk fails at every call of a whole broker in turn: start, topics made and deleted, records, what coordinators
write, changes of the metadata, stop. The answers to clients are true, and the broker serves or says why not.

`make test` walks a sample, the same each time; `make soak-faults` walks all of it (IXION_FAULTS=all).
"""

from __future__ import annotations

import copy
import os
import shutil
from pathlib import Path

import pytest

from tests.faults.broker_life import Facts, Life, check, faulty
from tests.faults.disk import Fault, FaultyDisk, cases

SHARE = 1 if os.environ.get("IXION_FAULTS") == "all" else 47
PARTS = 4  # tests that share the walk

Template = tuple[Path, Facts, list[tuple[str, str]]]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Template:
    """What a broker left when it was killed, what it had promised, and the calls of a healthy life on it."""
    root = tmp_path_factory.mktemp("broker")
    facts = Facts()
    older = FaultyDisk()
    life = Life(root / "template", older, facts)
    first = [lambda: life.create("old"), lambda: life.create("brief"), lambda: life.produce("brief")]
    with faulty(older):
        life.live([*first, lambda: life.produce("old"), life.commit, life.init], killed=True)
    disk = FaultyDisk()
    shutil.copytree(root / "template", root / "healthy")
    healthy = Life(root / "healthy", disk, copy.deepcopy(facts))
    with faulty(disk):
        healthy.live()
    assert healthy.facts.doubtful == set()
    assert healthy.facts.topics == {"old", "new"}
    check(root / "healthy", healthy.facts)
    return root / "template", facts, disk.calls


def test_the_life_writes_logs_and_metadata(template: Template) -> None:
    assert {"sql", "write", "make_dir", "rename", "sync_dir"} <= {what for what, _ in template[2]}


@pytest.mark.parametrize("part", range(PARTS))
def test_a_fault_at_every_call(template: Template, part: int, tmp_path: Path) -> None:
    path, facts, calls = template
    for at, fault in cases(calls, SHARE)[part::PARTS]:
        try:
            walk_one(path, tmp_path / f"{at}-{fault.name}", facts, at, fault)
        except Exception as error:
            error.add_note(f"{fault.name} at call {at}, {calls[at]}")
            raise


def walk_one(template: Path, root: Path, facts: Facts, at: int, fault: Fault) -> None:
    shutil.copytree(template, root)
    disk = FaultyDisk(at, fault, quiet=True)
    life = Life(root, disk, copy.deepcopy(facts))
    with faulty(disk):
        life.live()
    check(root, life.facts)
    shutil.rmtree(root)
