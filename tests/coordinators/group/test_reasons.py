"""Log lines about rebalances: each names its member once."""

from __future__ import annotations

import logging

import pytest

from ixion.broker.coordinators.group.classic.reasons import LONGEST
from tests.coordinators.group.kit import START_MS, World, settle


def logged(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name.startswith("ixion.broker.coordinators")]


def test_a_member_id_is_in_a_line_once_also_if_the_client_repeats_it(caplog: pytest.LogCaptureFixture) -> None:
    """The Java client's reason when it joins with the id that it has been given."""
    caplog.set_level(logging.INFO)
    world = World()
    world.join(client="a", reason="need to re-join with the given member-id: a-1")
    world.advance(5)
    world.leave("a-1")
    joining, *_, leaving, _ = logged(caplog)
    assert joining == (
        "group g prepares a rebalance after generation 0: "
        "member a-1 joins: need to re-join with the given member-id: its own"
    )
    assert leaving.endswith(": member a-1 leaves")


def test_a_reason_is_cut(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    world = World()
    settle(world, "a")
    world.join("a-1", reason="x" * 100_000)
    line = next(line for line in logged(caplog) if "xx" in line)
    assert line.count("x") == LONGEST


def test_a_member_that_is_gone(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    world = World()
    settle(world, "a")
    world.advance(START_MS)
    assert any(line.endswith(": member a-1 has missed its session timeout") for line in logged(caplog))
    assert all(line.count("a-1") <= 1 for line in logged(caplog))
