"""Keys go where Java's producer sends them."""

from __future__ import annotations

import pytest

from ixion.clients.core.producer.partitioner import Sticky, keyed_partition, murmur2


@pytest.mark.parametrize(
    ("key", "signed"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_the_hash_is_javas(key: bytes, signed: int) -> None:
    assert murmur2(key) == signed & 0xFFFFFFFF


def test_the_example_of_the_module() -> None:
    assert murmur2(b"order-17") & 0x7FFFFFFF == 1_568_318_961
    assert keyed_partition(b"order-17", 6) == 3


def test_every_partition_has_its_turn() -> None:
    sticky = Sticky()
    seen = set()
    for number in range(30):
        sticky.choose([0, 1, 2], None, number / 30)
        seen.add(sticky.current)
    assert seen == {0, 1, 2}


def test_long_queues_are_chosen_less_often() -> None:
    """The example of the module: 4 of 8, 1 of 8, 3 of 8."""
    sticky = Sticky()
    chosen = []
    for number in range(8):
        sticky.choose([0, 1, 2], [0, 3, 1], number / 8)
        chosen.append(sticky.current)
    assert chosen == [0, 0, 0, 0, 1, 2, 2, 2]


def test_the_only_candidate_is_kept() -> None:
    sticky = Sticky()
    sticky.choose([4], [9], 0.99)
    assert sticky.current == 4
