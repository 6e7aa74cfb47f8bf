"""Filter expressions: what they mean, how they fail, and what they cannot be made to cost."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ixion.clients.filter.parse import DEEPEST, compiled
from ixion.clients.filter.tokens import LONGEST, FilterError
from ixion.clients.filter.values import Limits


class Given(NamedTuple):
    key: bytes | None = b"c-12"
    value: bytes | None = None
    headers: list[tuple[str, bytes | None]] = []  # noqa: RUF012 — never changed
    offset: int = 7
    timestamp: int = 1_700_000_000_000


ORDER = {
    "status": "failed",
    "total": 120.5,
    "test": False,
    "note": None,
    "items": [{"sku": "a-1", "n": 2}, {"sku": "b-2", "n": 1}],
    "tags": ["new", 7],
    "a b": {"ü": 1},
}
RECORD = Given(
    value=json.dumps(ORDER).encode(),
    headers=[("trace", b"9f3"), ("content-type", b"json"), ("n", b"12"), ("trace", b"77"), ("meta", b'{"v": 2}')],
)


@pytest.mark.parametrize(
    "text",
    [
        'value.status == "failed" and value.total >= 100',
        "value.status = 'failed' && value.total > 1e2",
        'key contains "12" or key == "nothing"',
        'key startswith "c-" and key endswith "12"',
        'headers.trace == "9f3" and headers.trace == "77"',  # one of several
        'headers["content-type"] == "json" and header.content-type != "text"',
        "headers.n > 9 and headers.n == 12 and headers.n < 100",  # a number, not a text
        "headers.meta.v == 2",
        'value.items[0].sku == "a-1" and value.items[-1].n == 1',
        'value.items[*].sku in ("x", "b-2")',
        'value.tags contains "new" and value.tags contains 7',
        'value["a b"]["ü"] == 1',
        "value.test == false and not value.test",
        "value.note == null and value.missing == null and value.status[3] == null and headers.none == null",
        "value.items and not value.missing",
        'value.status matches "^f.*d$" and value matches "\\"total\\": *120"',
        r"key matches '^c-\d+$'",
        "partition == 3 and offset == 7 and timestamp > 1600000000000 and size > 10",
        'not (key == "a" or (key == "b" and not offset == 1))',
        'value.total != "120.5" and value.status != 5',  # other kinds are never equal
        "! value.missing",
        '"failed" == value.status',
        'value contains "failed"',
        r'any matches "(?i)FAILED" and any == "trace" and any contains "9f" and any == "c-12"',
    ],
)
def test_what_fits(text: str) -> None:
    assert compiled(text).fits(RECORD, 3)
    assert not compiled(f"not ({text})").fits(RECORD, 3)


@pytest.mark.parametrize(
    "text",
    [
        'value.status == "Failed"',
        'value.total > "100"',
        "value.status < 5",
        'headers.trace != "77"',  # one of them is
        "value.missing < 5",
        "value.missing >= 0",
        "key > 5",
        'value.items[*].sku == "c"',
        "value.note",
        "value.test",
        "value.items[2]",
        'value.status contains "x"',
        'value.items contains "a-1"',
        "value.status.more",
    ],
)
def test_what_does_not_fit(text: str) -> None:
    assert not compiled(text).fits(RECORD, 3)


@pytest.mark.parametrize(
    "value",
    [None, b"", b"\xff\xfe", b"not json", b"[" * 100_000, b"1" * 5000, b'{"status": NaN}', b'"text"', b"17"],
)
def test_any_bytes_are_searched(value: bytes | None) -> None:
    record = Given(value=value, key=None)
    assert not compiled('value.status == "failed" or value.status < 5 or value.status >= 0').fits(record, 0)
    assert compiled("value == null").fits(record, 0) == (value is None)
    assert compiled("value == 17").fits(record, 0) == (value == b"17")
    assert compiled('key == null and not (key contains "a" or key matches "a" or key < 5)').fits(record, 0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "ends too early"),
        ("value.", "a name is missing"),
        ("value.a ==", "ends too early"),
        ("value.a == failed", "a text has quotes"),
        ("value.a === 5", "character 11"),
        ('value.a == "x', "has no end"),
        ("(key == 'a'", "')' is missing"),
        ("key == 'a')", "character 11"),
        ("key 'a'", "character 5"),
        ("5", "a comparison"),
        ("headers == 'a'", "headers need a name"),
        ("headers[0] == 'a'", "headers need a name"),
        ("offset.x == 1", "has no parts"),
        ("key in ()", "was expected"),
        ("key in (value)", "behind 'in'"),
        ("key matches value", "in quotes"),
        ("key matches '('", "RE2"),
        ("key matches '((.?){49}){50}'", "RE2"),
        ("key == 'a' # or", "has no meaning"),
        ("__import__('os')", "is none of key, value"),
        ('key == "\\q"', "escape"),
        ("key == 1" + "0" * 40, "character"),
        (f"key == '{'x' * LONGEST}'", "longer than"),
        ("(" * (DEEPEST + 2) + "key" + ")" * (DEEPEST + 2), "nested"),
        ("not " * (DEEPEST + 2) + "key", "nested"),
        ("value" + ".a" * 11, "at most 10 steps"),
        (f"key in ({','.join(['1'] * 101)})", "at most 100"),
    ],
)
def test_what_is_no_filter_is_said(text: str, said: str) -> None:
    with pytest.raises(FilterError, match=r".") as refused:
        compiled(text)
    assert said in str(refused.value)


@given(st.text(alphabet="valuekyhdrs.[]()*\"\\'=!<>&| 019andornotincontainsmatches,é", max_size=60))
def test_any_text_is_a_filter_or_an_error(text: str) -> None:
    try:
        found = compiled(text)
    except FilterError:
        return
    found.fits(RECORD, 0)


JSON: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=10,
)


@given(JSON, st.sampled_from(["==", "!=", "<", "<=", ">", ">=", "contains", "startswith", "endswith"]))
def test_any_two_values_compare(value: Any, sign: str) -> None:
    record = Given(value=json.dumps({"a": value, "b": [value]}).encode())
    for right in ("value.b[0]", "value.b", "'x'", "1", "true", "null", "key"):
        compiled(f"value.a {sign} {right}").fits(record, 0)


def test_what_one_record_may_cost_is_bounded() -> None:
    limits = Limits(json_bytes=1000, match_steps=100_000)
    long = Given(value=json.dumps({"a": "x" * 2000}).encode())
    found = compiled("value.a", limits)
    assert not found.fits(long, 0)
    assert found.too_long == 1
    found = compiled("value matches '^(a|b|c|[x-z]){2,40}$'", limits)
    assert not found.fits(long, 0)
    assert found.too_long == 1
    assert compiled("value contains 'xx'", limits).fits(long, 0)  # the text itself is searched
    many = Given(value=json.dumps({"a": [[1] * 10] * 10}).encode())
    assert compiled("value.a[*][*] == 1", Limits(json_bytes=10_000)).fits(many, 0)
