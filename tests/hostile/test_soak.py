"""A few seconds of `make soak-hostile`. Waiting times are judged there only."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, cast

import pytest

from tests.hostile import soak as soaking
from tests.hostile.soak import Honest, contents, soak

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads the memory of the brokers from /proc")


@pytest.mark.parametrize("brokers", [1, 3])
def test_hostile_clients_write_nothing_and_stop_nobody(tmp_path: Path, brokers: int) -> None:
    verdict = soak(tmp_path, brokers, 4, 8, quiet_s=0.5, patient=True)
    assert verdict.faults == [], verdict.lines


def test_foreign_and_lost_records_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    stored = {"honest": [b"honest-0", b"forged"], "secret": [b"x"], "target": [], "own": []}
    monkeypatch.setattr(soaking, "values_of", lambda _, topic: stored[topic])

    class Written:
        written = (b"honest-0", b"honest-1")

    faults = contents("", cast(Honest, cast(Any, Written())))
    assert len(faults) == 3
    assert "lacks 1 records and has 1 of others" in faults[0]
    assert "secret has 1 records" in faults[1]
    assert "own lacks" in faults[2]
