"""A pipeline file becomes typed values, or one error that says where and what."""

from __future__ import annotations

from pathlib import Path

import pytest

from ixion.pipelines.errors import SpecError
from ixion.pipelines.spec import load_spec, read_spec
from ixion.pipelines.spec.durations import parse_duration_ms
from ixion.pipelines.spec.lines import key_lines, line_of
from ixion.pipelines.spec.sinks import TableSink, TopicSink
from ixion.pipelines.spec.steps import DeduplicateStep, JoinStep, PythonStep, SqlStep, WatermarkStep, WindowStep
from ixion.pipelines.spec.template import template

LEAST = """\
[source]
topics = ["orders"]
[format]
type = "json"
[[sinks]]
type = "parquet"
path = "lake/orders"
"""


def complaint(text: str) -> SpecError:
    with pytest.raises(SpecError) as caught:
        read_spec(text, file="orders.toml", folder=Path("/home/eva"))
    return caught.value


def test_the_least_file_has_sensible_defaults() -> None:
    spec = read_spec(LEAST, file="orders.toml", folder=Path("/home/eva"))
    assert spec.name == "orders"
    assert spec.source.bootstrap == "localhost:9092"
    assert spec.source.start.kind == "earliest"
    assert spec.source.committed_only
    assert spec.format.inferred
    assert spec.sinks == (TableSink(format="parquet", path="/home/eva/lake/orders"),)
    assert spec.quarantine == TableSink(format="parquet", path="/home/eva/lake/orders_quarantine")
    assert spec.checkpoint == "/home/eva/.ixion/orders"


@pytest.mark.parametrize(
    ("line", "more", "reader"),
    [
        ((4, 0), "", "connector"),
        (None, "", "connector"),
        ((4, 1), "", "ixion"),
        ((4, 1), "max_records_per_batch = 5", "connector"),
        ((4, 2), "max_records_per_batch = 5", "ixion"),
        ((4, 3), 'options = { "kafka.security.protocol" = "SSL" }', "connector"),
        ((4, 3), 'reader = "connector"', "connector"),
    ],
)
def test_the_reader_is_one_that_the_installed_spark_has(
    monkeypatch: pytest.MonkeyPatch, line: tuple[int, int] | None, more: str, reader: str
) -> None:
    monkeypatch.setattr("ixion.pipelines.spec.source.spark_line", lambda: line)
    text = LEAST.replace('topics = ["orders"]', f'topics = ["orders"]\n{more}')
    spec = read_spec(text, file="orders.toml", folder=Path("/home/eva"))
    assert (spec.source.reader, spec.needs_connector()) == (reader, reader == "connector")
    copy = '[[sinks]]\ntype = "topic"\ntopic = "copy"\n'
    for how, needs in (("", True), ("exactly_once = true\n", reader == "connector")):
        spec = read_spec(f"{text}{copy}{how}", file="orders.toml", folder=Path("/home/eva"))
        assert spec.needs_connector() == needs


def test_every_kind_of_step() -> None:
    steps = """
[tables.customers]
path = "customers.csv"
format = "csv"
[[steps]]
sql = "SELECT * FROM stream;"
[[steps]]
python = "my.steps:clean"
[[steps]]
watermark = { column = "at", delay = "10 minutes" }
[[steps]]
deduplicate = ["order_id"]
[[steps]]
join = { table = "customers", on = ["customer_id"] }
[[steps]]
[steps.window]
column = "at"
size = "1 hour"
by = ["country"]
aggregates = { orders = "count(*)" }
"""
    assert read_spec(LEAST + steps).steps == (
        SqlStep(query="SELECT * FROM stream"),
        PythonStep(function="my.steps:clean"),
        WatermarkStep(column="at", delay_ms=600_000),
        DeduplicateStep(columns=("order_id",)),
        JoinStep(table="customers", on=("customer_id",), how="left"),
        WindowStep(column="at", size_ms=3_600_000, slide_ms=None, by=("country",), aggregates={"orders": "count(*)"}),
    )


@pytest.mark.parametrize(
    ("start", "kind"),
    [
        ('"latest"', "latest"),
        ("2026-01-31T08:00:00Z", "time"),
        ('"2026-01-31 08:00"', "time"),
        ("{orders={0=7}}", "offsets"),
    ],
)
def test_start_positions(start: str, kind: str) -> None:
    spec = read_spec(LEAST.replace("[format]", f"start = {start}\n[format]"))
    assert spec.source.start.kind == kind
    if kind == "time":
        assert spec.source.start.time_ms == 1_769_846_400_000
    if kind == "offsets":
        assert spec.source.start.offsets == {"orders": {0: 7}}


def test_a_topic_sink_uses_the_sources_broker_and_its_security() -> None:
    text = LEAST.replace(
        "[format]", 'bootstrap = "far:9092"\noptions = { "kafka.security.protocol" = "SSL", x = 1 }\n[format]'
    )
    spec = read_spec(text + '[[sinks]]\ntype = "topic"\ntopic = "clean"\n')
    sink = spec.sinks[1]
    assert isinstance(sink, TopicSink)
    assert (sink.bootstrap, sink.options) == ("far:9092", {"kafka.security.protocol": "SSL"})


def test_secrets_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    text = LEAST.replace(
        "[format]", 'options = { "kafka.sasl.jaas.config" = "password=${ORDERS_PASSWORD};" }\n[format]'
    )
    monkeypatch.delenv("ORDERS_PASSWORD", raising=False)
    assert "environment variable ORDERS_PASSWORD, which is not set" in str(complaint(text))
    monkeypatch.setenv("ORDERS_PASSWORD", "s3cret")
    spec = read_spec(text + 'options = { key = "${ORDERS_PASSWORD}" }\n[spark.conf]\nkey = "${ORDERS_PASSWORD}"\n')
    assert spec.source.options == {"kafka.sasl.jaas.config": "password=s3cret;"}
    assert isinstance(spec.sinks[0], TableSink)
    assert spec.sinks[0].options == spec.spark.conf == {"key": "s3cret"}
    assert "s3cret" not in repr(spec)


@pytest.mark.parametrize(
    ("old", "new", "where", "said"),
    [
        ('topics = ["orders"]', "topics = [", "orders.toml:3", "this is not TOML"),
        ("topics", "topcs", "orders.toml:2", "source.topcs is not known here; did you mean 'topics'?"),
        ('type = "json"', 'type = "jsn"', "orders.toml:4", "format.type is 'jsn'; did you mean 'json'?"),
        (
            'type = "json"',
            'type = "json"\nmessage = "a.B"',
            "orders.toml:5",
            "is only for format protobuf",
        ),
        ('type = "json"', 'type = "protobuf"', "orders.toml:3", "format protobuf needs its schema"),
        ('type = "parquet"', 'type = "parket"', "orders.toml:6", "sinks[1].type is 'parket'; did you mean 'parquet'?"),
        ('["orders"]', "7", "orders.toml:2", "source.topics is a whole number; it must be a list"),
        ('path = "lake/orders"', "", "orders.toml:5", "a parquet sink needs a path"),
        ("[[sinks]]", "[sinks]", "orders.toml:5", "write [[sinks]] instead of [sinks]"),
        ("[format]", 'start = "noon"\n[format]', "orders.toml:3", "source.start is 'noon'"),
        ("[format]", 'include = ["offsets"]\n[format]', "orders.toml:3", "did you mean 'offset'?"),
        ("[format]", 'pattern = "o.*"\n[format]', "orders.toml:1", "give either topics"),
        ("[format]", "max_records_per_batch = 0\n[format]", "orders.toml:3", "at least 1"),
        ('[format]\ntype = "json"', "", "orders.toml", "there is no [format]"),
        ('"json"', '"avro"', "orders.toml:3", "format avro needs its schema"),
        ("[[sinks]]", '[[steps]]\nsequel = "x"\n[[sinks]]', "orders.toml:6", "steps[1].sequel is not known here"),
        ("[[sinks]]", '[[steps]]\njoin = {table="c", on="a"}\n[[sinks]]', "orders.toml:6", "no [tables.c] to join"),
        (
            "[[sinks]]",
            '[[expectations]]\ncheck="a"\notherwise="warm"\n[[sinks]]',
            "orders.toml:7",
            "did you mean 'warn'?",
        ),
        ("[source]", 'every = "soon"\n[source]', "orders.toml:1", '"30s"'),
        ("[format]", "start = { other = { 0 = 1 } }\n[format]", "orders.toml:3", "which is not among the topics"),
        ('"json"', '"avro"\nschema = "{oops"', "orders.toml:5", "an Avro schema is JSON"),
        ("[[sinks]]", '[[steps]]\nsql = "-- a\\nDROP TABLE t"\n[[sinks]]', "orders.toml:6", "a SQL step is a query"),
        (
            "[[sinks]]",
            '[[steps]]\nwindow = { column="a", size="1h", slide="2h", aggregates={n="count(*)"} }\n[[sinks]]',
            "orders.toml:6",
            "not above the size",
        ),
        ("[[sinks]]", '[[sinks]]\ntype = "topic"\ntopic = "orders"\n[[sinks]]', "orders.toml:7", "is read by this"),
        ("[[sinks]]", '[quarantine]\npath = "lake/orders"\n[[sinks]]', "orders.toml:5", "a sink and the quarantine"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(old: str, new: str, where: str, said: str) -> None:
    assert old in LEAST
    error = complaint(LEAST.replace(old, new, 1))
    assert error.where == where
    assert said in str(error)


def test_a_bad_toml_line_is_shown() -> None:
    error = complaint('[source]\ntopics = "orders\n')
    assert error.where == "orders.toml:2"
    assert error.hint.splitlines()[0] == 'topics = "orders'


def test_two_sinks_on_one_table_are_refused() -> None:
    error = complaint(LEAST + '[[sinks]]\ntype = "parquet"\npath = "lake/orders"\n')
    assert (error.where, "two sinks write to" in str(error)) == ("orders.toml:8", True)


def test_a_missing_file_names_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="there is no file") as caught:
        load_spec(tmp_path / "none.toml")
    assert "ixion pipeline init" in caught.value.hint


def test_the_commented_example_is_valid(tmp_path: Path) -> None:
    path = tmp_path / "shop.toml"
    path.write_text(template("shop"))
    spec = load_spec(path)
    assert spec.name == "shop"
    assert spec.source.topics == ("shop",)
    assert spec.checkpoint == str(tmp_path / ".ixion" / "shop")


def test_lines_are_found_past_strings_comments_and_brackets() -> None:
    text = '''\
# [not.a.table]
a = """
b = 1
[c]
"""
"d e" = { x = 1, y = [
  2 ] }  # comment = 3
[t.u]
v.w = 'k = [' # ]
[[s]]
[[s]]
[s.deep]
z = 1
'''
    lines = key_lines(text)
    assert lines == {
        ("a",): 2,
        ("d e",): 6,
        ("t", "u"): 8,
        ("t", "u", "v", "w"): 9,
        ("s", 0): 10,
        ("s", 1): 11,
        ("s", 1, "deep"): 12,
        ("s", 1, "deep", "z"): 13,
    }
    assert line_of(lines, ("d e", "y")) == 6
    assert line_of(lines, ("nowhere",)) is None


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [("500ms", 500), ("30s", 30_000), ("10 minutes", 600_000), ("1 hour", 3_600_000), ("7 days", 604_800_000)],
)
def test_durations(text: str, milliseconds: int) -> None:
    assert parse_duration_ms(text) == milliseconds


@pytest.mark.parametrize("text", ["", "10", "soon", "-1s", "3 fortnights"])
def test_what_is_no_duration(text: str) -> None:
    assert parse_duration_ms(text) is None
