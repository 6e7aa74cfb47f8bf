"""Families as Prometheus reads them."""

from __future__ import annotations

import pytest

from ixion.broker.web.exposition import Exposition
from tests.web.prometheus import parse, value


def test_counters_and_gauges() -> None:
    page = Exposition()
    page.counter("a_total", "Things.", 3)
    page.gauge("b", "Others.", [({"x": "1", "y": "z"}, 2.5), ({"x": "2", "y": "z"}, -1)])
    assert page.text() == (
        "# HELP a_total Things.\n# TYPE a_total counter\na_total 3\n"
        '# HELP b Others.\n# TYPE b gauge\nb{x="1",y="z"} 2.5\nb{x="2",y="z"} -1\n'
    )


def test_a_histogram_adds_up_its_buckets() -> None:
    page = Exposition()
    page.histogram("h", "Times.", [0.1, 1.0], [({"api": "Fetch"}, [2, 0, 3], 12.5)])
    found = parse(page.text())
    assert value(found, "h_bucket", api="Fetch", le="0.1") == 2
    assert value(found, "h_bucket", api="Fetch", le="1.0") == 2
    assert value(found, "h_bucket", api="Fetch", le="+Inf") == 5
    assert value(found, "h_count", api="Fetch") == 5
    assert value(found, "h_sum", api="Fetch") == 12.5


def test_labels_are_escaped() -> None:
    page = Exposition()
    page.gauge("g", "Odd.", [({"path": 'a"b\\c\nd'}, 1)])
    assert 'g{path="a\\"b\\\\c\\nd"} 1' in page.text()
    parse(page.text())


@pytest.mark.parametrize("text", ["g 1", "# HELP g x\n# TYPE g gauge\ng{a=b} 1\n", "# HELP g x\n# TYPE g gauge\nh 1\n"])
def test_the_reader_is_strict(text: str) -> None:
    with pytest.raises((AssertionError, KeyError)):
        parse(text)
