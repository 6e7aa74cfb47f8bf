"""The records that a producer got acknowledged: each must be in every table exactly once.

Use it to check tables after kills and other faults.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Place = tuple[int, int, int]  # how often the topic was recreated before; partition; offset


def record(number: int, columns: Sequence[int] = ()) -> dict[str, int]:
    """COLUMNS are the first numbers that have one column more."""
    more = {f"c{column}": number for column, first in enumerate(columns) if number >= first}
    return {"n": number, "half": number % 2, **more}


@dataclass
class Ledger:
    """Acknowledged records by their place; what failed on the way."""

    told: dict[Place, int] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    columns: list[int] = field(default_factory=list)
    anew: list[int] = field(default_factory=list)  # the first number after each time that the topic was recreated

    def acknowledged(self, partition: int, offset: int, number: int) -> None:
        before = self.told.setdefault(self._place(number, partition, offset), number)
        if before != number:
            self.failed.append(f"records {before} and {number} were both acknowledged at {partition}/{offset}")

    def problems(self, rows: Iterable[Mapping[str, Any]], *, drained: bool = True) -> list[str]:
        """What is wrong with a table: each row must be a record that was acknowledged, and each record one row.

        If the topic was not DRAINED, records that are missing may still be there, and count for nothing.
        """
        found: Counter[Place] = Counter()
        problems = []
        for row in rows:
            place = self._place(row["n"], row["kafka_partition"], row["kafka_offset"])
            found[place] += 1
            number = self.told.get(place)
            if number is None:
                problems.append(f"{_words(place)} was never acknowledged: {dict(row)}")
            elif _fields(row) != record(number, self.columns):
                problems.append(f"{_words(place)} is record {number}, but the row says {dict(row)}")
        problems += [f"{_words(place)} is there {times} times" for place, times in found.items() if times > 1]
        missing = (place for place in self.told if drained and not found[place])
        return problems + [f"{_words(place)}, record {self.told[place]}, is missing" for place in missing]

    def _place(self, number: int, partition: int, offset: int) -> Place:
        return bisect_right(self.anew, number), partition, offset


def _fields(row: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of the record; one that it does not have is null."""
    return {name: value for name, value in row.items() if not name.startswith("kafka_") and value is not None}


def _words(place: Place) -> str:
    generation, *rest = place
    return f"{tuple(rest)}" + (f" of topic {generation}" if generation else "")


def verdict(problems: Sequence[str], unsettled: Sequence[str]) -> tuple[int, str]:
    """The exit code and the last line of a soak. UNSETTLED is what it could not wait for."""
    if problems:
        return 1, f"verdict: wrong, {len(problems)} problems"
    if unsettled:
        return 2, f"verdict: open, nothing is wrong in what is there; {len(unsettled)} waits were cut short"
    return 0, "verdict: right, each acknowledged record once and only once in every table"
