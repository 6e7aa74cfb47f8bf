"""Counts and times of a load: records, bytes, latencies.

Latencies are counted in buckets, each about 1.6 % wider than the one before (64 to every doubling), so that a hundred
million of them cost a few kilobytes and a percentile is right within 1.6 %. 1 000 µs lie in bucket
64 × log2(1000) = 637, which stands for its upper end, 64-th root of 2 to the 638: 1 001.9 µs.
"""

from __future__ import annotations

from math import log2
from typing import Any

STEPS = 64  # buckets to a doubling
PERCENTILES = (50.0, 95.0, 99.0, 99.9)


class Latencies:
    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self.count = 0
        self.total_s = 0.0
        self.max_s = 0.0

    def add(self, seconds: float) -> None:
        micros = seconds * 1e6
        bucket = int(STEPS * log2(micros)) if micros > 1 else 0
        self._counts[bucket] = self._counts.get(bucket, 0) + 1
        self.count += 1
        self.total_s += seconds
        if seconds > self.max_s:
            self.max_s = seconds

    def percentile_ms(self, percent: float) -> float:
        """The time within which this percentage was done; 0 if there were none."""
        wanted = self.count * percent / 100
        seen = 0
        for bucket in sorted(self._counts):
            seen += self._counts[bucket]
            if seen >= wanted:
                return min(2 ** ((bucket + 1) / STEPS) / 1000, self.max_s * 1000)
        return 0.0

    @property
    def mean_ms(self) -> float:
        return self.total_s / self.count * 1000 if self.count else 0.0


class Measured:
    """The results of a load so far."""

    def __init__(self, verb: str, waited_for: str) -> None:
        self.verb = verb  # produced, consumed
        self.waited_for = waited_for  # what the latency measures
        self.records = 0
        self.value_bytes = 0
        self.seconds = 0.0
        self.latencies = Latencies()

    @property
    def records_per_s(self) -> float:
        return self.records / self.seconds if self.seconds else 0.0

    @property
    def megabytes_per_s(self) -> float:
        """Of keys and values, by the million bytes."""
        return self.value_bytes / self.seconds / 1e6 if self.seconds else 0.0

    def progress(self, target: int | None) -> str:
        done = f"{self.records:,}" if not target else f"{self.records:,} of {target:,} ({self.records / target:.0%})"
        p99 = self.latencies.percentile_ms(99)
        return f"{done}  {self.records_per_s:,.0f} records/s  {self.megabytes_per_s:,.1f} MB/s  p99 {p99:,.2f} ms"

    def as_json(self) -> dict[str, Any]:
        found = self.latencies
        return {
            "records": self.records,
            "bytes": self.value_bytes,
            "seconds": round(self.seconds, 6),
            "records_per_s": round(self.records_per_s, 1),
            "mb_per_s": round(self.megabytes_per_s, 3),
            "latency_of": self.waited_for,
            "latency_ms": {
                "mean": round(found.mean_ms, 3),
                **{f"p{percent:g}": round(found.percentile_ms(percent), 3) for percent in PERCENTILES},
                "max": round(found.max_s * 1000, 3),
            },
        }

    def lines(self) -> list[str]:
        found = self.latencies
        times = "  ".join(f"p{percent:g} {found.percentile_ms(percent):,.2f}" for percent in PERCENTILES)
        return [
            f"{self.verb} {self.records:,} records in {self.seconds:,.2f} s: "
            f"{self.records_per_s:,.0f} records/s, {self.megabytes_per_s:,.1f} MB/s",
            f"{self.waited_for}, ms: mean {found.mean_ms:,.2f}  {times}  max {found.max_s * 1000:,.2f}",
        ]
