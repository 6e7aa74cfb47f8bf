"""A setting that is wrong is named when the consumer is made."""

from __future__ import annotations

from typing import Any

import pytest

from ixion.clients import Consumer
from ixion.clients.consumer.settings import read_settings


def test_defaults_are_kafkas() -> None:
    found = read_settings({})
    assert (found.auto_offset_reset, found.enable_auto_commit, found.max_poll_records) == ("latest", True, 500)
    assert (found.session_timeout_ms, found.max_poll_interval_ms) == (45_000, 300_000)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"auto_ofset_reset": "latest"}, "unknown setting 'auto_ofset_reset'; did you mean 'auto_offset_reset'?"),
        (
            {"auto_offset_reset": "first"},
            "auto_offset_reset must be one of earliest, latest, none, by_duration:PnDTnHnMn.nS, not",
        ),
        ({"isolation_level": "none"}, "isolation_level must be one of read_uncommitted, read_committed, not 'none'"),
        ({"max_poll_records": 0}, "max_poll_records must be at least 1, not 0"),
        ({"fetch_min_bytes": -1}, "fetch_min_bytes must be at least 0, not -1"),
        ({"partition_assignment_strategy": []}, "partition_assignment_strategy must be a list of one name or more"),
        ({"partition_assignment_strategy": ["mine"]}, "partition_assignment_strategy must be one of range"),
    ],
)
def test_values(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        Consumer("127.0.0.1:1", **given)
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize(("name", "value"), [("max_poll_records", "5"), ("enable_auto_commit", 1), ("client_id", 7)])
def test_kinds(name: str, value: Any) -> None:
    with pytest.raises(TypeError, match=f"{name} must be of type"):
        Consumer("127.0.0.1:1", **{name: value})


def test_addresses() -> None:
    with pytest.raises(ValueError, match=r"nowhere:port"):
        Consumer("nowhere:port")
