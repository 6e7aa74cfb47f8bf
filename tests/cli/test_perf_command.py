"""`ixion perf`: what is counted is true; how fast it was is nobody's promise."""

from __future__ import annotations

import pytest

from ixion.cli.perf.stats import Latencies, Measured
from tests.cli.harness import Ixion


def test_produced_and_consumed(ixion: Ixion) -> None:
    name = ixion.topic(2)
    found = ixion.json("perf", "produce", name, "--records", "3000", "--size", "50", "--compression", "lz4")
    assert (found["records"], found["bytes"]) == (3000, 150_000)
    assert found["latency_ms"]["p50"] <= found["latency_ms"]["p99.9"] <= found["latency_ms"]["max"]
    assert sum(part["end"] for part in ixion.json("topic", "describe", name)["partitions"]) == 3000
    found = ixion.json("perf", "consume", name)
    assert (found["records"], found["bytes"]) == (3000, 150_000)
    assert 1000 <= ixion.json("perf", "consume", name, "--records", "1000")["records"] <= 3000
    assert ixion.json("perf", "consume", name, "--from", "latest")["records"] == 0


def test_lines_for_people(ixion: Ixion) -> None:
    name = ixion.topic()
    first, second = ixion("perf", "produce", name, "-n", "100", "--acks", "1", "--rate", "10000").splitlines()
    assert first.startswith("produced 100 records in ")
    assert second.startswith("acknowledgement, ms: mean ")
    first, second = ixion("perf", "consume", name).splitlines()
    assert first.startswith("consumed 100 records in ")
    assert ixion.errors == ""  # no progress line where there is no terminal


def test_a_rate_is_kept(ixion: Ixion) -> None:
    found = ixion.json("perf", "produce", ixion.topic(), "-n", "100", "--rate", "1000", "--linger", "0")
    assert found["records"] == 100
    assert found["seconds"] >= 0.099
    assert "--rate must be more than 0" in ixion.refused("perf", "produce", "t", "--rate", "0", code=2)


def test_percentiles_are_right_within_a_bucket() -> None:
    found = Latencies()
    for micros in range(1, 10_001):
        found.add(micros / 1e6)
    for percent, expected_ms in ((50, 5.0), (95, 9.5), (99, 9.9), (99.9, 9.99)):
        assert found.percentile_ms(percent) == pytest.approx(expected_ms, rel=0.017)
    assert found.percentile_ms(100) == pytest.approx(10.0)
    assert found.mean_ms == pytest.approx(5.0, rel=0.001)


def test_no_latencies_at_all() -> None:
    assert Latencies().percentile_ms(99) == 0
    load = Measured("produced", "acknowledgement")
    assert load.records_per_s == load.megabytes_per_s == 0
    assert load.lines()[0] == "produced 0 records in 0.00 s: 0 records/s, 0.0 MB/s"


def test_the_line_that_shows_progress() -> None:
    load = Measured("produced", "acknowledgement")
    load.records, load.value_bytes, load.seconds = 500, 50_000, 2.0
    load.latencies.add(0.002)
    assert load.progress(1000) == "500 of 1,000 (50%)  250 records/s  0.0 MB/s  p99 2.00 ms"
    assert load.progress(None).startswith("500  250 records/s")
