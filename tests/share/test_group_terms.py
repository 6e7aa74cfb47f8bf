"""What is kept ready of the settings of groups."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ixion.broker.startup.late_share_leaders import GroupTerms
from ixion.config.broker import BrokerConfig


def world() -> Any:
    return SimpleNamespace(config=SimpleNamespace(current=BrokerConfig({})), image=SimpleNamespace(group_configs={}))


def test_nothing_is_remembered_of_groups_without_settings() -> None:
    terms = GroupTerms(world())
    for number in range(100):
        terms.of(f"{number}" * 1_000)
    assert len(terms._known) == 1


def test_a_change_of_settings_counts_at_once() -> None:
    parts = world()
    terms = GroupTerms(parts)
    before = terms.of("g").lock_ms
    parts.image.group_configs["g"] = {"share.record.lock.duration.ms": str(before // 2)}
    assert terms.of("g").lock_ms == before // 2
    assert terms.of("other").lock_ms == before
    del parts.image.group_configs["g"]
    assert terms.of("g").lock_ms == before
    parts.config.current = BrokerConfig({"group.share.record.lock.duration.ms": str(before // 2)})
    assert terms.of("g").lock_ms == before // 2
