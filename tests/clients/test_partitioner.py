"""Keys go where Java's producer sends them."""

from __future__ import annotations

import pytest

from ixion.clients.partitioner import Sticky, keyed_partition, murmur2


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


def test_a_sticky_partition_moves_on_and_covers_all() -> None:
    sticky = Sticky()
    last, seen = -1, set()
    for _ in range(200):
        assert sticky.choose([0, 1, 2]) != last
        last = sticky.current
        seen.add(last)
    assert seen == {0, 1, 2}


def test_the_only_candidate_is_kept() -> None:
    sticky = Sticky()
    assert [sticky.choose([4]) for _ in range(3)] == [4, 4, 4]
