"""The leader epoch cache: what is assigned, where an epoch ended, truncation at both ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from ixion.broker.log.epochs import EpochCache
from ixion.broker.log.files import Files


@pytest.fixture
def cache(tmp_path: Path) -> EpochCache:
    cache = EpochCache(Files(), str(tmp_path / "leader-epoch-checkpoint"))
    for epoch, start in [(2, 0), (5, 40), (6, 90)]:
        cache.assign(epoch, start)
    return cache


@pytest.mark.parametrize(
    ("epoch", "expected"),
    [(2, (2, 40)), (5, (5, 90)), (6, (6, 120)), (3, (2, 40)), (4, (2, 40)), (0, (0, 0)), (7, (-1, -1)), (-1, (-1, -1))],
)
def test_where_an_epoch_ended(cache: EpochCache, epoch: int, expected: tuple[int, int]) -> None:
    assert cache.end_offset(epoch, 120) == expected


def test_an_empty_cache_knows_nothing(tmp_path: Path) -> None:
    assert EpochCache(Files(), str(tmp_path / "x")).end_offset(0, 10) == (-1, -1)


@pytest.mark.parametrize(
    ("assigned", "expected"),
    [
        ((6, 95), [(2, 0), (5, 40), (6, 90)]),
        ((7, 100), [(2, 0), (5, 40), (6, 90), (7, 100)]),
        ((7, 90), [(2, 0), (5, 40), (7, 90)]),
        ((7, 60), [(2, 0), (5, 40), (7, 60)]),
        ((5, 100), [(2, 0), (5, 100)]),
        ((6, 80), [(2, 0), (5, 40), (6, 80)]),
        ((1, 0), [(1, 0)]),
    ],
)
def test_a_new_epoch_removes_entries_that_contradict_it(
    cache: EpochCache, assigned: tuple[int, int], expected: list[tuple[int, int]]
) -> None:
    cache.assign(*assigned)
    assert cache.entries() == expected


@pytest.mark.parametrize(("epoch", "start"), [(-1, 0), (1, -1)])
def test_a_negative_entry_is_refused(cache: EpochCache, epoch: int, start: int) -> None:
    with pytest.raises(ValueError, match="cannot start"):
        cache.assign(epoch, start)


@pytest.mark.parametrize(
    ("end", "expected"),
    [(200, [(2, 0), (5, 40), (6, 90)]), (91, [(2, 0), (5, 40), (6, 90)]), (90, [(2, 0), (5, 40)]), (0, [])],
)
def test_truncation_at_the_end(cache: EpochCache, end: int, expected: list[tuple[int, int]]) -> None:
    cache.truncate_end(end)
    assert cache.entries() == expected
    assert cache.latest == (expected[-1][0] if expected else -1)


@pytest.mark.parametrize(
    ("start", "expected"),
    [(0, [(2, 0), (5, 40), (6, 90)]), (10, [(2, 10), (5, 40), (6, 90)]), (40, [(5, 40), (6, 90)]), (95, [(6, 95)])],
)
def test_truncation_at_the_start(cache: EpochCache, start: int, expected: list[tuple[int, int]]) -> None:
    cache.truncate_start(start)
    assert cache.entries() == expected


@pytest.mark.parametrize(("offset", "epoch"), [(0, 2), (39, 2), (40, 5), (1000, 6)])
def test_which_epoch_wrote_an_offset(cache: EpochCache, offset: int, epoch: int) -> None:
    assert cache.epoch_of(offset) == epoch


def test_the_file_follows_when_asked(tmp_path: Path, cache: EpochCache) -> None:
    cache.write()
    again = EpochCache(Files(), str(tmp_path / "leader-epoch-checkpoint"))
    again.load()
    assert again.entries() == cache.entries()
    assert again.latest == 6
