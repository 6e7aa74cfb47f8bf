"""A batch is computed once: a cheap look finds ordinary records, and bad ones are put aside in the same pass."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

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

    from ixion.pipelines.formats.json_fast_path import closed_keys, is_usual, keys_of
    from ixion.pipelines.spec.format import FormatSpec

    texts = lab.spark.createDataFrame([(text,) for text in (*USUAL, *UNUSUAL)], "text STRING")
    closed = closed_keys(F.col("text"))
    usual = is_usual(closed, ["n", "s"], FormatSpec(type="json"))
    rows = texts.select("text", usual.alias("usual"), keys_of(closed, F.col("text")).alias("keys")).collect()
    assert [row.text for row in rows if row.usual] == list(USUAL)
    for row in rows:
        if row.usual or row.text == "{}":
            assert row["keys"] == list(json.loads(row.text))


COUNTED = (
    *('{"n":1,"s":"x"}', '{"s": "x", "n": 1}', '{"n":1,"s":null}', '{"s" : "12:00", "n"\t:\n1}'),
    *('{"s":"é\ufffd"}', '{"n":1}', '{"s":{"n":1}}'),
)
NOT_COUNTED = (
    *UNUSUAL,
    *('{"n":1,"s":"a\\":b"}', '{"n":1,"s":"a :b"}', '{"n":1,"s":{"x":1}}', '{"n":1,"m\\"s":2}', '{"n":1,"\\u006e":2}'),
    *(
        '{"n":"x","s":"y"}',
        '{"s":"\\u00"}',
        '{"n":null,"n":null}',
        '{"n":1,"x":null}',
        '{"n":1,"S":"x"}',
        '{"n":1,"x" :2}',
        '{"n":1,"x"\r:2}',
        ' {"n":1}',
    ),
)


def broken_up(chance: random.Random, count: int) -> Iterator[bytes]:
    """Texts near those above: parts of them are repeated, left out, and put together with other ones."""
    parts = [*(text.encode() for text in (*COUNTED, *NOT_COUNTED, *USUAL)), b'"n":', b'"s" :', b"null", b"\\", b"\xff"]
    for _ in range(count):
        text = chance.choice(parts)
        for _ in range(chance.randint(0, 3)):
            first, last = sorted(chance.choices(range(len(text) + 1), k=2))
            other = chance.choice(parts)
            start, end = sorted(chance.choices(range(len(other) + 1), k=2))
            text = text[:first] + chance.choice((b"", other[start:end], text[first:last] * 2)) + text[last:]
        yield text


@pytest.mark.parametrize(
    ("missing", "code"), [("null", "NO_CODEGEN"), ("null", "CODEGEN_ONLY"), ("quarantine", "FALLBACK")]
)
def test_a_record_whose_keys_are_counted_is_usual_and_read_as_it_is(lab: Lab, missing: str, code: str) -> None:
    from pyspark.sql import functions as F

    from ixion.pipelines.formats.added_columns import BAD_TEXT
    from ixion.pipelines.formats.json_fast_path import OURS, closed, closed_keys, has_known_keys, is_usual
    from ixion.pipelines.spark.java_text import JavaText
    from ixion.pipelines.spec.format import DriftSpec, FormatSpec

    spec = FormatSpec(type="json", drift=DriftSpec(missing=missing))
    known = [text.encode() for text in (*COUNTED, *NOT_COUNTED, *USUAL)]
    values = [*known, *broken_up(random.Random(7), 4000)]
    text, bad = F.col("value").cast("string"), {"columnNameOfCorruptRecord": BAD_TEXT}
    exact = {"allowSingleQuotes": "false", "allowNonNumericNumbers": "false", **bad}
    frame = lab.spark.createDataFrame([(bytearray(value),) for value in values], "value BINARY").coalesce(1)
    read = F.from_json(closed(text), f"n INT, s STRING, {BAD_TEXT} STRING, `{OURS}` INT", exact)
    frame = frame.select(
        "value", read.alias("data"), F.from_json(text, f"n INT, s STRING, {BAD_TEXT} STRING", exact).alias("of")
    )
    counted = has_known_keys(text, JavaText(lab.spark, text), F.col("data"), ["n", "s"], spec)
    usual = is_usual(closed_keys(text), ["n", "s"], spec) & F.is_valid_utf8(text)
    if missing != "null":  # in any order, here
        keys = closed_keys(text)
        usual = (F.array_sort(keys) == F.array_sort(F.array(*map(F.lit, ("n", "s", OURS))))) & F.is_valid_utf8(text)
    setting = "spark.sql.codegen.factoryMode"
    before = lab.spark.conf.get(setting)
    lab.spark.conf.set(setting, code)
    try:
        judged = {"counted": counted, "usual": usual, "json": F.try_parse_json(text).isNotNull()}
        rows = frame.withColumns(judged).collect()
    finally:
        lab.spark.conf.set(setting, before or "")
    found = {bytes(row.value): row.counted for row in rows}
    if missing == "null":
        assert [text for text in COUNTED if not found[text.encode()]] == []
    assert [text for text in NOT_COUNTED if found[text.encode()]] == []
    assert [bytes(row.value) for row in rows if row.counted and not row.usual] == []
    assert sum(row.counted for row in rows) > 100
    for row in rows:  # of a text that is no JSON, only the error counts
        ours, plain = ((it.n, it.s) if it and row.json else None for it in (row.data, row.of))
        assert ours == plain, row.value
        assert (row.data and row.data[BAD_TEXT] is None) == (row.of and row.of[BAD_TEXT] is None), row.value


@pytest.mark.parametrize("most", [5000, 1])
def test_bad_records_are_put_aside_or_read_again(lab: Lab, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    from ixion.pipelines.batch import write as batch
    from ixion.pipelines.batch.bad_records import collected_rows

    aside = []

    def collected(*given: object) -> object:
        aside.append(collected_rows(*given))  # type: ignore[arg-type]
        return aside[-1]

    monkeypatch.setattr("ixion.pipelines.batch.bad_records.MOST", most)
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
