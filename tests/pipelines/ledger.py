"""What a producer was promised, to be found in every table once and only once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any


def record(number: int) -> dict[str, int]:
    return {"n": number, "half": number % 2}


@dataclass
class Ledger:
    """Acknowledged records by (partition, offset); what failed on the way."""

    told: dict[tuple[int, int], int] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)

    def acknowledged(self, partition: int, offset: int, number: int) -> None:
        before = self.told.setdefault((partition, offset), number)
        if before != number:
            self.failed.append(f"records {before} and {number} were both acknowledged at {partition}/{offset}")

    def problems(self, rows: Iterable[Mapping[str, Any]]) -> list[str]:
        """What is wrong with a table: each row must be a record that was acknowledged, and each record one row."""
        found: Counter[tuple[int, int]] = Counter()
        problems = []
        for row in rows:
            place = (row["kafka_partition"], row["kafka_offset"])
            found[place] += 1
            number = self.told.get(place)
            if number is None:
                problems.append(f"{place} was never acknowledged: {dict(row)}")
            elif {name: row[name] for name in ("n", "half")} != record(number):
                problems.append(f"{place} is record {number}, but the row says {dict(row)}")
        problems += [f"{place} is there {times} times" for place, times in found.items() if times > 1]
        problems += [f"{place}, record {number}, is missing" for place, number in self.told.items() if not found[place]]
        return problems
