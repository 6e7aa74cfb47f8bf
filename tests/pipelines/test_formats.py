"""From bytes to columns: every format, what is wrong with a record, what drifts, what else a record carries."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ixion.pipelines.errors import PipelineError
from tests.pipelines.support import Lab, Value, column

OUT = '[[sinks]]\ntype = "parquet"\npath = "out"\n'
NULLABLE = (
    '{"type":"record","name":"o","fields":[{"name":"id","type":["null","string"]},{"name":"n","type":["int","null"]}]}'
)
AVRO = '{"type":"record","name":"o","fields":[{"name":"id","type":"string"},{"name":"n","type":"int"}]}'


def avro(name: str, n: int) -> bytes:
    """A string is its length and its bytes, numbers are zigzag varints; these are small."""
    return bytes([len(name) * 2]) + name.encode() + bytes([n * 2])


@pytest.mark.parametrize(
    ("declared", "sent", "rows", "bad"),
    [
        (
            'type = "json"\nschema = "id STRING, n INT"',
            [{"id": "a", "n": 1}, {"id": "b", "n": 2}, "garbage", "[1]", "", '{"id": "c", "n": "many"}'],
            [{"id": "a", "n": 1}, {"id": "b", "n": 2}],
            ["not a JSON object"] * 3 + ["not of the type in the schema: n"],
        ),
        (
            'type = "csv"\nschema = "id STRING, n INT"\noptions = { sep = ";", header = true }',
            ["id;n", "a;1", '"b;\n";2\n', "c;many", "few", "too;1;many", '"open;1', "", "d;1\ne;2"],
            [{"id": "a", "n": 1}, {"id": "b;\n", "n": 2}],
            ["not a line of the schema"] * 6,
        ),
        (
            f"type = \"avro\"\nschema = '''{AVRO}'''",
            [avro("a", 1), avro("b", 2), b"\xff", b"", avro("cut", 1)[:-1], b"\xff\xff\xff\xff\x0f"],
            [{"id": "a", "n": 1}, {"id": "b", "n": 2}],
            ["not a record of the Avro schema"] * 4,
        ),
        (
            f"type = \"avro\"\nschema = '''{NULLABLE}'''",
            [b"\x02" + avro("a", 0)[:2] + b"\x00\x04", b"\x00\x02", b"\x02", b""],
            [{"id": "a", "n": 2}, {"id": None, "n": None}],
            ["not a record of the Avro schema"] * 2,
        ),
        ('type = "text"', ["a", "ü", None], [{"value": "a"}, {"value": "ü"}, {"value": None}], []),
        ('type = "bytes"', [b"\x00\xff", None], [{"value": b"\x00\xff"}, {"value": None}], []),
    ],
    ids=["json", "csv", "avro", "avro-of-nulls", "text", "bytes"],
)
def test_a_format(lab: Lab, declared: str, sent: list[Value], rows: list[dict[str, Any]], bad: list[str]) -> None:
    lab.send(*sent)
    figures = lab.run(f"[format]\n{declared}\n{OUT}")
    assert (figures.rows_in, figures.rows_out, figures.quarantined) == (len(sent), len(rows), len(bad))
    assert figures.dropped == len(sent) - len(rows) - len(bad)  # the header of CSV
    assert sorted(lab.rows(), key=str) == sorted(rows, key=str)
    quarantine = lab.rows("out_quarantine")
    assert sorted(row["reason"] for row in quarantine) == bad
    sent_bytes = [json.dumps(value) if isinstance(value, dict) else value for value in sent]
    for row in quarantine:
        assert (row["topic"], row["partition"]) == (lab.topic, 0)
        original = sent_bytes[row["offset"]]
        assert row["value"] == (original.encode() if isinstance(original, str) else original)


def test_a_schema_is_inferred_once_and_then_kept(lab: Lab) -> None:
    lab.send(*({"id": f"{number}", "price": number + 0.5} for number in range(20)), {"id": "odd", "price": "free"})
    text = f'[format]\ntype = "json"\n[format.drift]\nnew = "ignore"\n{OUT}'
    plan = lab.pipeline(text).check(lab.spark)
    assert plan.schema == "`id` string, `price` double"
    lab.run(text)
    lab.send({"id": "new", "price": 1.0, "colour": "red"})
    figures = lab.run(text)
    assert (figures.drifted, figures.new_fields) == (1, {"colour": "left out"})  # not without a word
    assert lab.pipeline(text).check(lab.spark).schema == plan.schema
    assert set(lab.rows()[0]) == {"id", "price"}
    assert len(lab.rows()) == 21
    assert [row["reason"] for row in lab.rows("out_quarantine")] == ["not of the type in the schema: price"]


@pytest.mark.timeout(900)
def test_new_fields_become_columns_of_every_table(lab: Lab) -> None:
    """Those of the record that brings them first too; what cannot be a column goes to the quarantine."""
    from ixion.cli.pipeline.job import status_lines, summary_lines
    from ixion.pipelines.batch.metrics import prometheus, total

    text = f"""[format]\ntype = "json"\n{OUT}
[[sinks]]
type = "delta"
path = "delta"
[[sinks]]
type = "iceberg"
path = "ice"
"""
    first: dict[str, Any] = {"id": "a", "place": {"x": 1}, "parts": [{"no": 1}]}
    lab.send(first)
    lab.run(text)
    sent: list[dict[str, Any]] = [
        {"id": "b"},
        {"id": "c", "email": "c@x"},
        {"id": "d", "age": 4, "email": "d@x"},
        {"id": "e", "address": {"zip": "1"}},
        {"id": "f", "place": {"x": 2, "y": "z"}, "parts": [{"no": 2}, {"no": 3, "of": {"a": True}}]},
    ]
    lab.send(*sent, {"ID": "x"}, {"id": "y", "no column": 1}, {"id": "z", "place": {"X": 1, "a.b": 2}})
    figures = lab.run(text)
    assert (figures.rows_in, figures.rows_out, figures.quarantined) == (8, 5, 3)
    assert set(figures.new_fields) == {"email", "age", "address", "place.y", "parts[].of"}
    nothing = dict.fromkeys(("email", "age", "address", "place", "parts"))
    wanted = [{**nothing, **row} for row in (first, *sent)]
    wanted[0]["place"] = {"x": 1, "y": None}  # the fields inside of objects are there for all rows too
    wanted[0]["parts"] = [{"no": 1, "of": None}]
    wanted[-1]["parts"][0] = {"no": 2, "of": None}
    tables = [lab.rows()]
    for kind, path in (("delta", "delta"), ("iceberg", "ice")):
        frame = lab.spark.read.format(kind).load(str(lab.folder / path))
        tables.append([row.asDict(recursive=True) for row in frame.collect()])
    for rows in tables:
        assert sorted(rows, key=lambda row: str(row["id"])) == wanted
    assert column(lab.rows("out_quarantine"), "reason") == [
        "fields that cannot be columns: ID",
        "fields that cannot be columns: no column",
        "fields that cannot be columns: place.X, place.`a.b`",
    ]
    pipeline = lab.pipeline(text)
    named = "address, age, email, parts[].of, place.y (added)"
    assert f"fields that are not in the schema: {named}" in list(summary_lines(pipeline.spec, figures))
    history = pipeline.checkpoint(lab.spark).history()
    assert any(named in line for line in status_lines(pipeline.spec, history, total(history)))
    assert 'ixion_pipeline_new_fields{pipeline="p"} 5' in prometheus("p", total(history))


def test_keys_that_are_data_do_not_become_columns_for_ever(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ixion.pipelines.batch.new_fields.MOST", 3)
    text = f'[format]\ntype = "json"\nschema = "id STRING"\n[format.drift]\nnew = "add"\n{OUT}'
    lab.send(*({"id": "a", f"k{number}": 1} for number in range(5)))
    with pytest.raises(PipelineError, match="bring more than 3 fields that are not in the schema, such as k0, k1, k2"):
        lab.run(text)
    assert lab.rows() == []


def test_a_new_checkpoint_takes_tables_with_columns_that_an_old_one_added(lab: Lab) -> None:
    """As the hint for a topic that was recreated says: the checkpoint is moved away, and the run gets --again."""
    sinks = "".join(f'[[sinks]]\ntype = "{kind}"\npath = "{kind}"\n' for kind in ("parquet", "delta", "iceberg"))
    text = f'[format]\ntype = "json"\nschema = "id STRING"\n[format.drift]\nnew = "add"\n{sinks}'
    lab.send({"id": "a", "more": 1})
    lab.run(text)
    checkpoint = lab.folder / ".ixion" / "p"
    checkpoint.rename(checkpoint.with_name("old"))
    lab.send({"id": "b"}, topic=f"{lab.topic}-2")
    source = f'topics = ["{lab.topic}-2"]'
    lab.pipeline(text, source=source).run(lab.spark, again=True)
    lab.send({"id": "c", "more": 2}, topic=f"{lab.topic}-2")
    lab.run(text, source=source)
    for kind in ("parquet", "delta", "iceberg"):
        options = {"mergeSchema": "true"} if kind == "parquet" else {}
        frame = lab.spark.read.format(kind).options(**options).load(str(lab.folder / kind))
        assert sorted((row.id, row.more) for row in frame.collect()) == [("a", 1), ("b", None), ("c", 2)]


NOT_JSON = "not a JSON object"
AFTER = "there is more after the JSON object"
UTF8 = "not valid UTF-8"
ODD_JSON: dict[bytes, str] = {
    b'{"id":"a"}{"id":"b"}': AFTER,
    b'{"id":"a"} {"x":{}}': AFTER,
    b'{"id":"a"} trailing': AFTER,
    b'{"id":"a"} // comment': AFTER,
    b'{"id":"a"}]': AFTER,
    b'{"id":"a"},{"id":"b"}': AFTER,
    b'{"id":"a"},"n":{}': AFTER,
    b'{"id":"a"}\x00': AFTER,
    b'/* comment */{"id":"a"}': NOT_JSON,
    b"{'id':'a'}": NOT_JSON,
    b'{id:"a"}': NOT_JSON,
    b'{"id":"a",}': NOT_JSON,
    b'{"id":NaN}': NOT_JSON,
    b'[{"id":"a"}]': NOT_JSON,
    b'[{"id":"a"},{"id":"b"}]': NOT_JSON,
    b"null": NOT_JSON,
    b'\xef\xbb\xbf{"id":"a"}': NOT_JSON,
    b'{"id":"\xff"}': UTF8,
    b'{"id":"a","id":"b"}': "repeated keys: id",
    b'{"id":"a","x":1,"x":1}': "repeated keys: x",
}
SOUND_JSON = [
    b'{"id":"}{"}',
    b' {"id":"b","x":{"y":{}}}\r\n',
    b'{"id":"c","x":[{"id":"x"},{"id":"y"}]}',
    b'{"id":"d"}\t ',
    b"{}",
    '{"id":"ü\\u0000"}'.encode(),
]


def test_json_is_exactly_one_object(lab: Lab) -> None:
    text = '[format]\ntype = "json"\nschema = "id STRING"\n'
    lab.send(*ODD_JSON, *SOUND_JSON)
    figures = lab.run(text + OUT)
    assert {bytes(row["value"]): row["reason"] for row in lab.rows("out_quarantine")} == ODD_JSON
    assert column(lab.rows(), "id") == [None, "b", "c", "d", "}{", "ü\x00"]
    assert (figures.drifted, figures.new_fields) == (3, {"x": "left out"})


def test_json_may_be_looser_if_the_file_says_so(lab: Lab) -> None:
    loose = 'strict = false\nkey_case = "ignore"\nrepeated_keys = "last"\n'
    text = f'[format]\ntype = "json"\nschema = "id STRING, orderNo INT"\n{loose}'
    lab.send('{"id":"a"}{"id":"b"}', "{'id':'c'}", '{"id":"d","id":"e"}', '{"ID" : "f","ORDERNO":7}', b'{"id":"\xff"}')
    lab.run(text + OUT)
    rows = sorted(lab.rows(), key=lambda row: str(row["id"]))
    assert [(row["id"], row["orderNo"]) for row in rows] == [("a", None), ("c", None), ("e", None), ("f", 7)]
    assert column(lab.rows("out_quarantine"), "reason") == [UTF8]


@pytest.mark.parametrize(
    ("declared", "sent", "values"),
    [
        ('type = "text"', [b"a", b"\xff", "ü".encode(), b"\xc3"], ["a", "ü"]),
        ('type = "csv"\nschema = "value STRING"', [b"a", b"\xff"], ["a"]),
        (
            'type = "avro"\nschema = \'\'\'{"type":"record","name":"o","fields":[{"name":"value","type":"string"},'
            '{"name":"l","type":{"type":"array","items":"string"}}]}\'\'\'',
            [b"\x02a\x00", b"\x02\xff\x00", b"\x02b\x02\x02\xff\x00"],
            ["a"],
        ),
    ],
    ids=["text", "csv", "avro"],
)
def test_text_is_valid_or_quarantined(lab: Lab, declared: str, sent: list[Value], values: list[str]) -> None:
    lab.send(*sent)
    lab.run(f"[format]\n{declared}\n{OUT}")
    assert column(lab.rows(), "value") == values
    assert [row["reason"] for row in lab.rows("out_quarantine")] == [UTF8] * (len(sent) - len(values))


def test_a_key_that_is_no_text_is_quarantined_if_it_is_to_be_text(lab: Lab) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": lab.bootstrap})
    producer.produce(lab.topic, "a", b"\xff", 0)
    producer.produce(lab.topic, None, b"\xff", 0)
    producer.produce(lab.topic, "b", "ü", 0)
    producer.flush()
    lab.run(f'[format]\ntype = "text"\n{OUT}', source='include = ["key"]')
    assert [(row["value"], row["kafka_key"]) for row in lab.rows()] == [("b", "ü")]
    assert [row["reason"][:28] for row in lab.rows("out_quarantine")] == ["the key is not valid UTF-8; "] * 2


def test_avro_with_the_header_of_a_registry_is_not_taken_for_a_record(lab: Lab) -> None:
    schema = '{"type":"record","name":"o","fields":[{"name":"n","type":"int"},{"name":"id","type":"string"}]}'
    text = f"[format]\ntype = \"avro\"\nschema = '''{schema}'''\n{OUT}"
    plain, header = b"\x00" + avro("abcd", 0)[:-1], b"\x00\x00\x00\x00\x07"
    lab.send(*(header + b"\x04" + avro("xy", 0)[:-1] for _ in range(3)))
    for attempt in (lab.run, lambda text: lab.pipeline(text).check(lab.spark)):
        with pytest.raises(PipelineError, match=r"begin with the header of a schema registry \(schema id 7\)"):
            attempt(text)
    lab.send(plain, header + plain, plain)  # among others it is only one bad record
    lab.run(text)
    assert [(row["n"], row["id"]) for row in lab.rows()] == [(0, "abcd")] * 2
    reasons = {row["reason"] for row in lab.rows("out_quarantine")}
    assert reasons == {"Avro with the header of a schema registry, and the file has no [format.registry]"}
    assert len(lab.rows("out_quarantine")) == 4


def test_a_csv_schema_is_inferred_from_the_lines_that_fit(lab: Lab) -> None:
    lab.send("id;price;note", 'a;1;"semi;colon"', 'b;2.5;"two\nlines"', *(f"{n};{n};x" for n in range(20)))
    lab.send("few", "many;1;2;3", "odd;free;x", "id;price;note")
    text = f'[format]\ntype = "csv"\noptions = {{ header = true, sep = ";" }}\n{OUT}'
    assert lab.pipeline(text).check(lab.spark).schema == "`id` string, `price` double, `note` string"
    figures = lab.run(text)
    assert (figures.rows_out, figures.dropped, figures.quarantined) == (22, 2, 3)
    assert {"id": "b", "price": 2.5, "note": "two\nlines"} in lab.rows()


def test_keys_that_cannot_be_columns_do_not_spoil_an_inferred_schema(lab: Lab) -> None:
    """Their records go to the quarantine, as they would later."""
    lab.send({"id": 1, "x": {"y": 2}}, {"id": 2, "ID": 3}, {"id": 4, "a`b": 5}, {"id": 6, "_reason": 7})
    lab.send({"id": 8, "x": {"y": 9, "Y": 9, "c`d": 9}}, "[" * 5000)
    figures = lab.run(f'[format]\ntype = "json"\n{OUT}')
    assert (figures.rows_out, figures.quarantined) == (1, 5)
    assert lab.rows() == [{"id": 1, "x": {"y": 2}}]


def test_nothing_to_infer_from_is_reported(lab: Lab) -> None:
    with pytest.raises(PipelineError, match="no json record yet to infer a schema from") as caught:
        lab.run(f'[format]\ntype = "json"\n{OUT}')
    assert caught.value.retry


DRIFT = 'type = "json"\nschema = "id STRING, n INT"\n[format.drift]\n'
INNER = DRIFT.replace("n INT", "n INT, x STRUCT<z: INT>")  # fields inside of objects drift too
SENT: list[Value] = [
    {"id": "same", "n": 1},
    {"id": "new", "n": 2, "x": {"y": 3}},
    {"id": "missing"},
    {"id": "retyped", "n": "a"},
]


@pytest.mark.parametrize(
    ("policy", "accepted", "reasons"),
    [
        ('new = "quarantine"', ["missing", "same"], ["new fields: x", "not of the type in the schema: n"]),
        ('missing = "quarantine"\nretyped = "null"', ["new", "retyped", "same"], ["missing fields: n"]),
    ],
    ids=["new", "missing"],
)
def test_drift_has_a_policy(lab: Lab, policy: str, accepted: list[str], reasons: list[str]) -> None:
    lab.send(*SENT)
    lab.run(f"[format]\n{DRIFT}{policy}\n{OUT}")
    assert column(lab.rows(), "id") == accepted
    assert column(lab.rows("out_quarantine"), "reason") == reasons


def test_new_fields_can_be_kept(lab: Lab) -> None:
    lab.send(*SENT[:2])
    lab.run(f'[format]\n{INNER}new = "keep"\n{OUT}')
    extra = {row["id"]: row["_extra"] for row in lab.rows()}
    assert extra["same"] is None
    assert json.loads(extra["new"]) == {"x": '{"y":3}'}


def test_drift_that_must_not_be_stops_before_anything_is_written(lab: Lab) -> None:
    lab.send(*SENT)
    with pytest.raises(PipelineError, match=rf"new fields: x\.y at {lab.topic}-0 offset 1"):
        lab.run(f'[format]\n{INNER}new = "fail"\n{OUT}')
    assert lab.rows() == []


def test_a_row_carries_what_its_record_had(lab: Lab) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": lab.bootstrap})
    producer.produce(lab.topic, '{"n": 1}', "k", 1, timestamp=1_769_846_400_123, headers=[("h", b"1"), ("h", None)])
    producer.produce(lab.topic, '{"n": 2}', None, 1)  # no key
    producer.produce(lab.topic, None, "k", 1)  # a tombstone
    producer.flush()
    include = 'include = ["topic", "partition", "offset", "timestamp", "key", "key_bytes", "headers"]'
    lab.run(f'[format]\ntype = "json"\nschema = "n INT"\n{OUT}', source=include)
    first, second, third = sorted(lab.rows(), key=lambda row: row["kafka_offset"])
    assert (first["n"], first["kafka_topic"], first["kafka_partition"], first["kafka_offset"]) == (1, lab.topic, 1, 0)
    assert first["kafka_timestamp"].timestamp() * 1000 == 1_769_846_400_123
    assert (first["kafka_key"], first["kafka_key_bytes"]) == ("k", b"k")
    assert first["kafka_headers"] == [{"key": "h", "value": b"1"}, {"key": "h", "value": None}]
    assert (second["n"], second["kafka_key"]) == (2, None)
    assert (third["n"], third["kafka_key"]) == (None, "k")


@pytest.mark.parametrize(("policy", "kept", "quarantined"), [("drop", 1, 0), ("quarantine", 1, 1)])
def test_tombstones_have_a_policy(lab: Lab, policy: str, kept: int, quarantined: int) -> None:
    lab.send({"n": 1}, None, key="k")
    figures = lab.run(f'[format]\ntype = "json"\nschema = "n INT"\ntombstones = "{policy}"\n{OUT}')
    assert (len(lab.rows()), len(lab.rows("out_quarantine"))) == (kept, quarantined)
    assert figures.dropped + figures.quarantined == 1
