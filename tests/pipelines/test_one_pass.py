"""A batch is computed once: a cheap look finds ordinary records, and bad ones are put aside in the same pass."""

from __future__ import annotations

import json

import pytest

from tests.pipelines.support import Lab, column

FORMAT = '[format]\ntype = "json"\nschema = "n INT, s STRING"\n'
OUT = '[[sinks]]\ntype = "parquet"\npath = "out"\n'
USUAL = ('{"n":1,"s":"x"}', '{"s": "x", "n": 1}', '{"n":1}', '{"s":"a}{b"}', '{"n":1,"s":"x"} \r\n', '{"s":"é\\u00e9"}')
UNUSUAL = (
    *("{}", "", "[]", "1", "null", '{"n":1', '{"n":1}}', '{"n":1}{"n":2}', '{"n":1} x', '{"n":1 ]', '{"n":1,}'),
    *('{"n":1,"n":2}', '{"n":1,"e":2}', '{"N":1}', '{"s":"x}', '{"n":{"n":1}', '{"n":1} // }', "{,}"),
)


def test_what_is_usual_is_one_object_of_the_schema(lab: Lab) -> None:
    from pyspark.sql import functions as F

    from ixion.pipelines.spec.format import FormatSpec
    from ixion.pipelines.usual import closed_keys, is_usual, keys_of

    texts = lab.spark.createDataFrame([(text,) for text in (*USUAL, *UNUSUAL)], "text STRING")
    closed = closed_keys(F.col("text"))
    usual = is_usual(closed, ["n", "s"], FormatSpec(type="json"))
    rows = texts.select("text", usual.alias("usual"), keys_of(closed, F.col("text")).alias("keys")).collect()
    assert [row.text for row in rows if row.usual] == list(USUAL)
    for row in rows:
        if row.usual or row.text == "{}":
            assert row["keys"] == list(json.loads(row.text))


@pytest.mark.parametrize("most", [5000, 1])
def test_bad_records_are_put_aside_or_read_again(lab: Lab, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    from ixion.pipelines import batch
    from ixion.pipelines.collected import collected_rows

    aside = []

    def collected(*given: object) -> object:
        aside.append(collected_rows(*given))  # type: ignore[arg-type]
        return aside[-1]

    monkeypatch.setattr("ixion.pipelines.collected.MOST", most)
    monkeypatch.setattr(batch, "collected_rows", collected)
    lab.send({"n": 1}, "bad", {"n": "one"}, {"n": 2}, b"\xff")
    expectation = '[[expectations]]\nname = "one"\ncheck = "n < 2"\notherwise = "quarantine"\n'
    figures = lab.run(FORMAT + expectation + OUT)
    assert (figures.rows_in, figures.rows_out, figures.quarantined) == (5, 1, 4)
    assert [rows is not None for rows in aside] == [most == 5000]
    bad = sorted(lab.rows("out_quarantine"), key=lambda row: row["offset"])
    assert [(row["offset"], row["value"], row["topic"]) for row in bad] == [
        (1, b"bad", lab.topic),
        (2, b'{"n": "one"}', lab.topic),
        (3, b'{"n": 2}', lab.topic),
        (4, b"\xff", lab.topic),
    ]
    assert [row["reason"] for row in bad][2:] == ["expectation: one", "not valid UTF-8"]


def test_large_bad_records_are_read_again(lab: Lab) -> None:
    lab.send({"n": 1}, "x" * 5000)
    figures = lab.run(FORMAT + OUT)
    assert (figures.rows_out, figures.quarantined) == (1, 1)
    assert column(lab.rows("out_quarantine"), "value") == [b"x" * 5000]
