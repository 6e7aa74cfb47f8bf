"""The cases of `make soak-features`: every pair of features is in one of them, and each can be made."""

from __future__ import annotations

import random
from itertools import combinations

import pytest

from devtools.soak.features.case import PARTITIONS
from devtools.soak.features.covering import Row, cover
from devtools.soak.features.factors import CHANGES, allows, factors, settings_of
from devtools.soak.features.phase import topics_of
from ixion.clients import Admin
from ixion.clients.admin.configs import Resource
from ixion.clients.admin.topics import NewTopic
from ixion.language.model.resource_type import ResourceType
from ixion.testing import Broker


def rows_of(brokers: int) -> list[Row]:
    return cover(factors(brokers), random.Random(1), allows)


@pytest.mark.parametrize("brokers", [1, 3])
def test_every_pair_that_may_be_is_there(brokers: int) -> None:
    rows = rows_of(brokers)
    levels = factors(brokers)
    for one, two in combinations(levels, 2):
        found = {(row[one], row[two]) for row in rows}
        assert found == {(a, b) for a in levels[one] for b in levels[two] if allows({one: a, two: b})}
    assert all(allows(row) for row in rows)
    assert len(rows) < 75, "an hour is too short for so many"


def test_a_pair_that_is_in_no_row_does_not_keep_it_searching() -> None:
    """Each of its levels is allowed beside the other, but never beside a level of the third factor."""

    def never_together(row: Row) -> bool:
        return not (row.get("a") == "1" and row.get("b") == "1" and "c" in row)

    rows = cover({"a": "01", "b": "01", "c": "01"}, random.Random(1), never_together)
    assert {(row["a"], row["b"]) for row in rows} == {("0", "0"), ("0", "1"), ("1", "0")}


def test_a_broker_takes_the_settings_of_every_case() -> None:
    with Broker() as broker, Admin(broker.bootstrap) as admin:
        for number, row in enumerate(rows_of(1)):
            written, *others = topics_of(number, row)
            settings = settings_of(row)
            admin.create_topics([NewTopic(name, PARTITIONS, 1) for name in others]).check()
            if row["delay"] == "target":
                settings["delivery.delay.target"] = others[0]
            admin.create_topics([NewTopic(written, PARTITIONS, 1, settings)]).check()
            for change in CHANGES:
                admin.alter_configs({Resource(ResourceType.TOPIC, written): dict(change)}, validate_only=True).check()
