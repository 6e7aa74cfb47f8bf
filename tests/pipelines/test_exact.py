"""Values that their columns would change go to the quarantine; those at the limits of a type are read exactly."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from ixion.pipelines.spec.format import DriftSpec, FormatSpec
from tests.pipelines.support import Lab

COLUMNS = "key BINARY, value BINARY, topic STRING, partition INT, offset LONG, timestamp TIMESTAMP, timestampType INT"
CHANGED = "values that their columns would change: "


def parsed(lab: Lab, schema: str, values: Sequence[str], *without: str, **how: Any) -> list[Any]:
    from ixion.pipelines.formats.parse import parse_records

    rows = [(None, value.encode(), "t", 0, number, None, 0) for number, value in enumerate(values)]
    spec = FormatSpec(**{"type": "json", "schema": schema, **how})
    frame = parse_records(lab.spark.createDataFrame(rows, COLUMNS), spec, ["offset"])
    return sorted(frame.drop("_record", *without).collect(), key=lambda row: row.kafka_offset)


EXACT = ("0", "12.5", "12.50000", "-99999999.99", "1.5e3", "0.000", "0E-10", "1.20e-1", "null", '"7.25"')
ROUNDED = ("123.455", "1e-19", "0.001", "-1.2345e1", '"7.255"')


@pytest.mark.parametrize("more", ["", ', "other": {"price": 1.25}'])
def test_decimals_are_exact_or_quarantined(lab: Lab, more: str) -> None:
    """With a key inside of an object the cheap pattern does not count: it could have matched that one."""
    values = [f'{{"price": {number}{more}}}' for number in (*EXACT, *ROUNDED)]
    schema = "price DECIMAL(10,2)" + (", other STRUCT<price: DOUBLE>" if more else "")
    rows = parsed(lab, schema, values)
    assert [row._reason for row in rows] == [None] * len(EXACT) + [f"{CHANGED}price"] * len(ROUNDED)
    found = [None if row.price is None else float(row.price) for row in rows[: len(EXACT)]]
    assert found == [0, 12.5, 12.5, -99999999.99, 1500, 0, 0, 0.12, None, 7.25]


def test_a_pattern_in_a_text_is_no_number(lab: Lab) -> None:
    value = json.dumps({"price": 1.005, "note": '"price": 1.25,'})
    [row] = parsed(lab, "price DECIMAL(10,2), note STRING", [value])
    assert row._reason == f"{CHANGED}price"


def test_numbers_and_times_beyond_their_types(lab: Lab) -> None:
    schema = "amount DOUBLE, small FLOAT, at TIMESTAMP, day DATE, inside ARRAY<STRUCT<at: TIMESTAMP, d: DECIMAL(4,1)>>"
    wrong: list[tuple[str, str]] = [
        ('{"amount": 1e400}', "amount"),
        ('{"amount": -1e400, "small": 1e39}', "amount, small"),
        ('{"at": 1767225600000}', "at"),
        ('{"at": "+10000-01-01T00:00:00Z"}', "at"),
        ('{"day": "+10000-01-01"}', "day"),
        ('{"inside": [{"d": 1.5}, {"at": 1767225600000}]}', "inside"),
        ('{"inside": [{"d": 1.55}]}', "inside"),
    ]
    right = [
        '{"amount": 1.7976931348623157e308, "small": 3.4e38}',
        '{"at": 1767225600, "day": "9999-12-31"}',
        '{"at": "9999-12-31T23:59:59.999999Z"}',
        '{"at": "0001-01-01T00:00:00Z", "day": "0001-01-01"}',
        '{"inside": [{"d": 1.5}]}',
    ]
    columns = ("amount", "small", "at", "day", "inside")  # Python has no such years
    rows = parsed(lab, schema, [*(value for value, _ in wrong), *right], *columns)
    assert [row._reason for row in rows] == [*(f"{CHANGED}{name}" for _, name in wrong), *[None] * len(right)]


def test_retyped_null_makes_them_null(lab: Lab) -> None:
    values = ['{"price": 1.005, "n": 1}', '{"price": 1.5, "n": 2}']
    rows = parsed(lab, "price DECIMAL(10,2), n INT", values, drift=DriftSpec(retyped="null"))
    assert [(row.price and float(row.price), row.n, row._reason) for row in rows] == [(None, 1, None), (1.5, 2, None)]


def test_csv_too(lab: Lab) -> None:
    values = ["1.25,2026-01-31", "1.255,2026-01-31", "1.2500,+10000-01-01", "oops,2026-01-31"]
    rows = parsed(lab, "price DECIMAL(10,2), day DATE", values, "day", type="csv")
    reasons = [None, f"{CHANGED}price", f"{CHANGED}day", "not a line of the schema"]
    assert [row._reason for row in rows] == reasons
