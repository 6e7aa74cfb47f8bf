"""Curves of a benchmark: where they bend, how they are drawn."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest

from benchmarks.framework import Benchmark, Curve, Row
from benchmarks.framework.curve import draw, knee, table
from benchmarks.framework.model import Outcome
from benchmarks.framework.report import number
from benchmarks.framework.rounds import run

SVG = "{http://www.w3.org/2000/svg}"
SIZES = (1, 10, 100, 1_000)
COST = Curve(title="memory", size="clients", unit="MB", points={size: f"m{size}" for size in SIZES})
RATE = Curve(title="rate", size="clients", unit="1/s", points={size: f"r{size}" for size in SIZES}, more_is_better=True)


@pytest.mark.parametrize(
    ("curve", "values", "bend"),
    [
        (COST, [10, 10, 19, 100], 1_000),
        (COST, [10, 20, 40, 80], 10),
        (COST, [10, 8, 15.9, 15.9], None),
        (COST, [0, 0, 5, 9], None),
        (RATE, [5, 50, 30, 26], None),
        (RATE, [5, 50, 30, 25], 1_000),
        (RATE, [50, 25, 50, 50], 10),
    ],
    ids=["late", "at-once", "flat", "zero", "rises", "falls", "dips"],
)
def test_the_knee_is_where_a_cost_has_doubled_or_a_rate_has_halved(
    curve: Curve, values: list[float], bend: int | None
) -> None:
    assert knee(curve, dict(zip(SIZES, values, strict=True))) == bend


def outcome() -> Outcome:
    ours = {"m1": 10.0, "m10": 10.0, "m100": 12.0, "m1000": 100.0, "r1": 5.0, "r10": 50.0, "r100": 40.0, "r1000": 20.0}
    benchmark = Benchmark(
        name="example",
        title="Curves & knees",
        rows=tuple(Row(key=key, label=key, unit="") for key in ours),
        goals=(),
        baseline="theirs",
        contenders=lambda session: {"ours": lambda: ours, "theirs": lambda: {"m1": 90.0, "m1000": 120.0}},
        rounds=1,
        curves=(COST, RATE),
    )
    return run(benchmark, quick=False, say=lambda text: None)


def test_a_plot_has_a_line_for_each_contender_and_a_ring_at_its_knee() -> None:
    picture = ElementTree.fromstring(draw(outcome(), number))
    lines = [(line.attrib["class"], len(line.attrib["points"].split())) for line in picture.iter(f"{SVG}polyline")]
    assert lines == [("l0", 4), ("l1", 2), ("l0", 4)]
    dots = [circle.attrib for circle in picture.iter(f"{SVG}circle")]
    rings = [circle for circle in dots if circle["class"].startswith("l")]
    rightmost = max(float(circle["cx"]) for circle in dots if float(circle["cx"]) < 430)
    assert [float(ring["cx"]) for ring in rings] == [rightmost, max(float(circle["cx"]) for circle in dots)]
    texts = [text.text for text in picture.iter(f"{SVG}text")]
    assert "Curves & knees" in texts
    assert "MB by clients" in texts


def test_a_table_names_the_knee_and_leaves_out_what_was_not_measured() -> None:
    lines = table(
        COST, {"ours": {1: 10.0, 10: 10.0, 100: 12.0, 1_000: 100.0}, "theirs": {1: 90.0, 1_000: 120.0}}, number
    )
    assert lines[2:6] == [
        "| clients | 1 | 10 | 100 | 1,000 | knee |",
        "|---|---|---|---|---|---|",
        "| ours | 10 | 10 | 12 | 100 | 1,000 |",
        "| theirs | 90 | · | · | 120 | none |",
    ]
