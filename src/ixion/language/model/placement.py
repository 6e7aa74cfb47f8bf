"""Which partition of its internal topic holds a group or a transactional id.

Kafka takes the absolute value of the name's hash, and 0 for the one number that has none, modulo the number of
partitions. (The partitioner of producers differs: murmur2 of the key with the sign bit cleared.)

ixion 0.1 cleared the sign bit here, too: `masked_partition_of`. For a name whose hash is negative, about half of all,
that is another partition. The two swap places, with 50 partitions:

    billing   hash -109,829,509   Kafka: 109,829,509 % 50 = 9      ixion 0.1: 2,037,654,139 % 50 = 39
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final

_LONG_NAME: Final = 256  # characters
_SIGN_BIT: Final = 1 << 31

PartitionOf = Callable[[str, int], int]  # a name and the number of partitions


def partition_of(name: str, partitions: int) -> int:
    value = java_hash(name)
    return 0 if value == -_SIGN_BIT else abs(value) % partitions


def masked_partition_of(name: str, partitions: int) -> int:
    """As ixion 0.1 chose it. A cluster that has groups from then keeps this rule until it is moved over."""
    return (java_hash(name) & (_SIGN_BIT - 1)) % partitions


def java_hash(text: str) -> int:
    """Java's String.hashCode: over UTF-16 units, 32 bits with sign.

    It is computed character by character, and the same few names come all the time, so results are cached. Long names
    are not, because many of them would fill the memory.
    """
    return _remembered_hash(text) if len(text) <= _LONG_NAME else _java_hash(text)


def _java_hash(text: str) -> int:
    value = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for index in range(0, len(units), 2):
        value = (value * 31 + (units[index] << 8 | units[index + 1])) & 0xFFFFFFFF
    return value - (1 << 32) if value >= _SIGN_BIT else value


_remembered_hash: Final = lru_cache(maxsize=10_000)(_java_hash)
