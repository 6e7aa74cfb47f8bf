"""kill -9 under load: every acknowledged record is there, and none twice for who asked for that."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.kill.rounds import FAULTS, live_through

ROUNDS = 3


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ({"acks": 1}, "lost indexes"),
        ({"acks": "all"}, "torn write"),
        ({"enable.idempotence": True, "compression.type": "lz4"}, "lost indexes"),
    ],
    ids=["acks=1", "acks=all", "idempotent"],
)
def test_nothing_that_was_acknowledged_is_lost(tmp_path: Path, settings: dict[str, Any], fault: str) -> None:
    history, failed = live_through(tmp_path, ROUNDS, settings, FAULTS[fault])
    assert len(history.told) > 100  # something happened
    assert failed == []
    assert history.problems("enable.idempotence" in settings)[:10] == []
