"""Facts from Apache Kafka: `Utils.abs(name.hashCode()) % partitions`."""

from __future__ import annotations

import random

import pytest

from ixion.language.model.placement import java_hash, masked_partition_of, partition_of


@pytest.mark.parametrize(
    ("name", "hash_code", "partition"),
    [
        ("billing", -109_829_509, 9),
        ("", 0, 0),
        ("polygenelubricants", -(2**31), 0),  # the one without an absolute value
        ("orders", -1_008_770_331, 31),
        ("a", 97, 47),
        ("größe", 98_762_257, 7),
        ("\U0001f600", 1_772_899, 49),
    ],
)
def test_a_name_is_where_kafka_has_it(name: str, hash_code: int, partition: int) -> None:
    assert (java_hash(name), partition_of(name, 50)) == (hash_code, partition)


@pytest.mark.parametrize("partitions", [1, 2, 3, 7, 50, 64])
def test_the_older_rule_swaps_pairs_of_partitions(partitions: int) -> None:
    drawn = random.Random(partitions)
    pairs: dict[int, int] = {}
    for _ in range(500):
        name = f"{drawn.getrandbits(64):x}"
        before, after = masked_partition_of(name, partitions), partition_of(name, partitions)
        if java_hash(name) >= 0:
            assert before == after
        else:
            assert pairs.setdefault(before, after) == after
    assert all(pairs.get(after, before) == before for before, after in pairs.items())
