"""A setting that is wrong is named when the consumer is made."""

from __future__ import annotations

from typing import Any

import pytest

from ixion.clients import Consumer
from ixion.clients.consumer.settings import ConsumerOptions, read_settings
from ixion.clients.core.consumer.settings import ConsumerSettings
from ixion.clients.security import NAMES


def test_defaults_are_kafkas() -> None:
    found = read_settings({})
    assert (found.auto_offset_reset, found.enable_auto_commit, found.max_poll_records) == ("latest", True, 500)
    assert (found.session_timeout_ms, found.max_poll_interval_ms) == (45_000, 300_000)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"auto_offset_reset": "first"},
            "auto_offset_reset must be one of earliest, latest, none, by_duration:PnDTnHnMn.nS, not",
        ),
        ({"isolation_level": "none"}, "isolation_level is 'none'; allowed are 'read_uncommitted', 'read_committed'"),
        ({"max_poll_records": 0}, "max_poll_records is 0; allowed are whole numbers from 1 to 2147483647"),
        ({"fetch_min_bytes": -1}, "fetch_min_bytes is -1; allowed are whole numbers from 0 to 2147483647"),
        ({"partition_assignment_strategy": []}, "partition_assignment_strategy is []; allowed is a list of 'range'"),
        (
            {"partition_assignment_strategy": ["mine"]},
            "partition_assignment_strategy is ['mine']; allowed is a list of 'range'",
        ),
    ],
)
def test_values(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        Consumer("127.0.0.1:1", **given)
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("max_poll_records", "5", "whole numbers from 1"),
        ("enable_auto_commit", 1, "True and False"),
        ("client_id", 7, "text"),
        ("partition_assignment_strategy", "range", "a list of"),
    ],
)
def test_kinds(name: str, value: Any, allowed: str) -> None:
    with pytest.raises(ValueError, match=f"^{name} is {value!r}; allowed (are|is) {allowed}"):
        Consumer("127.0.0.1:1", **{name: value})


def test_its_options_are_its_settings() -> None:
    assert set(ConsumerOptions.__annotations__) - NAMES == set(ConsumerSettings._fields)


def test_addresses() -> None:
    with pytest.raises(ValueError, match=r"nowhere:port"):
        Consumer("nowhere:port")
