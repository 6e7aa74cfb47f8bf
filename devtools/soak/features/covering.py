"""A covering array: few rows in which any two levels of different factors meet.

With factors of 11, 5 and 3 levels, 165 rows have all triples, and 55 have all pairs. A pair of features is what usually
breaks: a fault that needs three of them at once is rare. The rows are found greedily: each new row takes, factor by
factor, the level that covers most of the pairs that are still open.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations

Row = dict[str, str]
Pair = tuple[tuple[str, str], tuple[str, str]]

TRIES = 30  # rows of which the best is taken


def pairs_of(row: Mapping[str, str]) -> set[Pair]:
    return {(one, two) for one, two in combinations(sorted(row.items()), 2)}


def cover(factors: Mapping[str, Sequence[str]], chance: random.Random, allows: Callable[[Row], bool]) -> list[Row]:
    """`allows` says of a row, or of a part of one, whether its levels can be together. A pair that is in no allowed row
    is left out."""
    wanted = {
        ((one, a), (two, b))
        for one, two in combinations(sorted(factors), 2)
        for a in factors[one]
        for b in factors[two]
        if allows({one: a, two: b})
    }
    rows: list[Row] = []
    while wanted:
        first = min(wanted)
        best = max((_row(first, factors, wanted, chance, allows) for _ in range(TRIES)), key=lambda found: found[0])
        gained, row = best
        if not gained:
            wanted.discard(first)  # in no allowed row
            continue
        rows.append(row)
        wanted -= pairs_of(row)
    return rows


def _row(
    first: Pair,
    factors: Mapping[str, Sequence[str]],
    wanted: set[Pair],
    chance: random.Random,
    allows: Callable[[Row], bool],
) -> tuple[int, Row]:
    """A row with the pair `first`, and how many open pairs it covers; none if a factor has no level that is allowed."""
    row: Row = dict(first)
    others = [name for name in factors if name not in row]
    chance.shuffle(others)
    for name in others:
        levels = [level for level in factors[name] if allows({**row, name: level})]
        if not levels:
            return 0, row
        chance.shuffle(levels)
        row[name] = max(levels, key=lambda level: _gain(row, name, level, wanted))
    return len(pairs_of(row) & wanted), row


def _gain(row: Row, name: str, level: str, wanted: set[Pair]) -> int:
    new = (name, level)
    found = [(each, new) if each < new else (new, each) for each in row.items()]
    return sum(pair in wanted for pair in found)
