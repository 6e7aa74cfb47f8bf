"""Groups and transactional ids of ixion 0.1 are moved to Kafka's partitions at the first start, whatever kills it."""

from __future__ import annotations

import copy
import logging
import os
import random
import shutil
from pathlib import Path

import pytest

from ixion.broker.metadata import paths
from ixion.broker.metadata.placement_node import Placement, decode_placement
from ixion.broker.replica.internal_topic import INTERNAL
from ixion.testing import Broker
from tests.broker.old_placement import SETTINGS, Known, check, make, older_rule
from tests.faults.broker_life import faulty
from tests.faults.disk import KILLS, FaultyDisk

SHARE = 1 if os.environ.get("IXION_FAULTS") == "all" else 13


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Known]:
    path = tmp_path_factory.mktemp("older")
    return path, make(path, random.Random(os.urandom(8)), 16)


def placement_of(broker: Broker) -> Placement:
    return decode_placement(broker.call(lambda real: real.parts.session.get(paths.PLACEMENT)).data)


def moving_calls(disk: FaultyDisk) -> list[int]:
    """From the note that groups are being moved to the note that they are."""
    changes = [
        at for at, (what, path) in enumerate(disk.calls) if what in ("write", "sync") and any(map(path.count, INTERNAL))
    ]
    statements = [at for at, (what, _) in enumerate(disk.calls) if what == "sql"]
    before = max(at for at in statements if at < changes[0])
    after = [at for at in statements if at > changes[-1]][:3]
    return list(range(before - 2, after[-1] + 1))


def test_the_first_start_moves_and_says_how_many(
    template: tuple[Path, Known], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, known = template[0], copy.deepcopy(template[1])
    shutil.copytree(path, tmp_path / "data")
    with caplog.at_level(logging.WARNING), Broker(SETTINGS, data=tmp_path / "data") as broker:
        assert placement_of(broker) is Placement.KAFKA
        (line,) = [each.getMessage() for each in caplog.records if "Apache Kafka keeps them" in each.getMessage()]
        assert line.startswith("moved ")
        assert not line.startswith("moved 0")
        check(broker, known)
    caplog.clear()
    with Broker(SETTINGS, data=tmp_path / "data") as again:
        assert placement_of(again) is Placement.KAFKA
        assert not [each for each in caplog.records if "Apache Kafka keeps them" in each.getMessage()]


def test_it_is_moved_although_an_older_version_ran_in_between(template: tuple[Path, Known], tmp_path: Path) -> None:
    """A tree without the node, such as that of a directory that an older version has adopted."""
    path, known = template[0], copy.deepcopy(template[1])
    shutil.copytree(path, tmp_path / "data")
    with older_rule(), Broker(SETTINGS, data=tmp_path / "data"):
        pass
    with Broker(SETTINGS, data=tmp_path / "data") as broker:
        check(broker, known)


def test_a_kill_at_every_call(template: tuple[Path, Known], tmp_path: Path) -> None:
    path, known = template
    healthy = FaultyDisk()
    shutil.copytree(path, tmp_path / "healthy")
    with faulty(healthy):
        broker = Broker(SETTINGS, data=tmp_path / "healthy")
        broker.start()
        broker.kill()
    walked = moving_calls(healthy)
    for number in range(random.Random(os.urandom(8)).randrange(SHARE), len(walked), SHARE):
        at = walked[number]
        for fault in KILLS:
            data = tmp_path / f"{at}-{fault.name}"
            shutil.copytree(path, data)
            disk = FaultyDisk(at, fault, quiet=True)
            with faulty(disk):
                killed = Broker(SETTINGS, data=data)
                try:
                    killed.start()
                except Exception:
                    pass
                else:
                    killed.kill()
            with Broker(SETTINGS, data=data) as broker:
                try:
                    check(broker, copy.deepcopy(known))
                except Exception as error:
                    error.add_note(f"{fault.name} at call {at}, {healthy.calls[at]}")
                    raise
            shutil.rmtree(data)
