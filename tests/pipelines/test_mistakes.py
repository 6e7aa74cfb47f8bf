"""Common mistakes and their messages: in the words of the user, with a way out, without a line of Java."""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable
from functools import partial

import pytest

from ixion.pipelines.errors import PipelineError
from ixion.pipelines.spark.master import need_master
from ixion.pipelines.spec import read_spec
from tests.pipelines.support import Lab, column

FORMAT = '[format]\ntype = "json"\nschema = "n INT, s STRING"\n'
OUT = '[[sinks]]\ntype = "parquet"\npath = "out"\n'
EVENTS = '[format]\ntype = "json"\nschema = "n INT, at TIMESTAMP"\n'
WINDOW = 'window = { column = "at", size = "1 hour", aggregates = { total = "sum(n)" } }'


def refused(call: Callable[[], object], said: str, hint: str = "") -> PipelineError:
    with pytest.raises(PipelineError) as caught:
        call()
    assert said in str(caught.value)
    assert hint in caught.value.hint
    for noise in ("\tat ", "org.apache.spark", "java.", "py4j", "Exception:", "Traceback", "SQLSTATE"):
        assert noise not in str(caught.value) + caught.value.hint
    return caught.value


def test_python_steps(lab: Lab) -> None:
    def step(name: str, body: str) -> str:
        (lab.folder / f"{name}.py").write_text(f"from pyspark.sql import functions as F\n{body}\n")
        return f'{FORMAT}[[steps]]\npython = "{name}:step"\n{OUT}'

    def check(text: str) -> Callable[[], object]:
        return lambda: lab.pipeline(text).check(lab.spark)

    raising = step("raising", "def step(frame):\n    raise ValueError('odd')")
    refused(
        check(raising), "the Python step raising:step failed: ValueError: odd", "raising.py, line 3: raise ValueError"
    )
    silent = step("silent", "def step(frame):\n    frame.where('n > 0')")
    refused(check(silent), "the Python step silent:step returned NoneType; it must return a DataFrame", "return")
    refused(
        check(step("broken", "def step(frame:")), "cannot be imported: SyntaxError: '(' was never closed (broken.py,"
    )
    refused(
        check(step("greedy", "def step(frame):\n    frame.count()\n    return frame")), "asks for the rows of a stream"
    )
    lab.send({"n": 1, "s": "a"}, {"n": 0, "s": "b"})
    share = "@F.udf('int')\ndef share(n):\n    return 1 // n\n"
    text = step("division", f"{share}def step(frame):\n    return frame.select(share('n').alias('n'))")
    said = (
        "a Python function failed: ZeroDivisionError: integer division or modulo by zero (division.py, line 4, in share"
    )
    refused(lambda: lab.run(text), said, "nothing of this batch was written; an expectation can keep records out")
    lab.run(text.replace(OUT, f'[[expectations]]\ncheck = "n <> 0"\notherwise = "quarantine"\n{OUT}'))
    assert column(lab.rows(), "n") == [1]


@pytest.mark.parametrize(
    ("steps", "said", "hint"),
    [
        (f"[[steps]]\n{WINDOW}\n", "needs a watermark before it", "watermark = { column ="),
        ('[[steps]]\nsql = "SELECT n, count(*) AS c FROM stream GROUP BY n"\n', "needs a watermark before it", ""),
        ('[[steps]]\nsql = "SELECT summ(n) FROM stream"\n', "SQL: there is no function summ", ""),
        ('[[steps]]\nsql = "SELECT n FROM stream WHERE n +"\n', "SQL: Syntax error at or near end of input", "^^^"),
        ('[[steps]]\nsql = "SELECT sum(n), at FROM stream"\n', "SQL: The query does not include a GROUP BY clause", ""),
        ('[[steps]]\nsql = "SELECT array(n) + 1 AS x FROM stream"\n', "SQL: ", ""),
        ('[[steps]]\nsql = "SELECT 1 AS one"\n', "the steps do not read the stream", "each step must read `stream`"),
        ('[[steps]]\nsql = "SELECT n, at AS N FROM stream"\n', "the rows have two columns N", "AS other"),
        ('[[expectations]]\ncheck = "n >"\notherwise = "warn"\n', "SQL: Syntax error", ""),
    ],
    ids=["window", "aggregate", "function", "syntax", "group-by", "types", "constant", "twins", "expectation"],
)
def test_steps_that_cannot_be(lab: Lab, steps: str, said: str, hint: str) -> None:
    refused(lambda: lab.pipeline(EVENTS + steps + OUT).check(lab.spark), said, hint)


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ('type = "json"\nschema = "n STRNG"', 'format.schema: Unsupported data type "STRNG"'),
        ('type = "csv"\nschema = "n INT s STRING"', "format.schema: Syntax error at or near 's'"),
        ('type = "json"\nschema = "_reason STRING"', "a field cannot be called _reason"),
        (
            """type = "avro"\nschema = '{"type": "record", "name": "o", "fields": [{"name": "a", "type": "strng"}]}'""",
            "format.schema is not a usable Avro schema: Undefined schema: strng",
        ),
    ],
    ids=["type", "syntax", "reserved", "avro"],
)
def test_schemas_that_cannot_be(lab: Lab, declared: str, said: str) -> None:
    refused(lambda: lab.pipeline(f"[format]\n{declared}\n{OUT}").check(lab.spark), said)


def test_steps_that_leave_nothing_do_not_wait_for_ever(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark then skips the reading, and with it the counting."""
    monkeypatch.setattr("ixion.pipelines.batch.write.COUNT_S", 0.2)
    lab.send({"n": 1, "s": "a"}, "broken")
    figures = lab.run(f'{FORMAT}[[steps]]\nsql = "SELECT * FROM stream WHERE false"\n{OUT}')
    assert (figures.rows_in, figures.rows_out, figures.quarantined) == (2, 0, 1)
    assert len(lab.rows("out_quarantine")) == 1


def test_a_full_disk(spark_parts: None) -> None:
    from ixion.pipelines.spark.explain import explain

    for error in (
        OSError(errno.ENOSPC, "No space left on device", "f"),
        RuntimeError("x\nCaused by: No space left on device"),
    ):
        assert str(explain(error)) == "the disk is full"
        assert explain(error).retry


def test_tables_that_others_change_or_guard(spark_parts: None) -> None:
    from ixion.pipelines.spark.explain import explain

    for said in (
        "io.delta.exceptions.ProtocolChangedException: [DELTA_PROTOCOL_CHANGED] The protocol version has been changed",
        "io.delta.exceptions.ConcurrentAppendException: [DELTA_CONCURRENT_APPEND] Files were added",
        "org.apache.iceberg.exceptions.CommitFailedException: Version 1 already exists: /t/metadata/v1.metadata.json",
        "org.apache.iceberg.exceptions.ValidationException: Found conflicting files that can contain records",
    ):
        error = explain(RuntimeError(f"An error occurred\nCaused by: {said}"))
        assert "another job changed the table at the same time" in str(error)
        assert error.retry
    for said, words in (
        (
            "org.postgresql.util.PSQLException: An I/O error occurred while sending to the backend.",
            "the catalog of the",
        ),
        ("java.io.IOException: Cannot create file:/proc/lake/_delta_log", "a folder cannot be written"),
    ):
        assert words in str(explain(RuntimeError(f"x\nCaused by: {said}\nCaused by: java.io.EOFException")))
    guarded = explain(
        RuntimeError("x\n[DELTA_VIOLATE_CONSTRAINT_WITH_VALUES] CHECK constraint pos (n > 5) violated by row")
    )
    assert str(guarded).startswith("the table does not accept a row (CHECK constraint pos (n > 5) violated")
    assert not guarded.retry


def test_words_in_the_plan_are_not_what_happened(spark_parts: None) -> None:
    """Spark shows the plan of a query that failed, with the texts of errors that it could raise."""
    from ixion.pipelines.formats.drift import FATAL, GROWN
    from ixion.pipelines.spark.explain import explain, has_grown

    plan = f"Project [raise_error(concat({GROWN}, concat_ws(, , new))), raise_error({FATAL}expectation 'n' is not met)]"
    other = RuntimeError(f"TimeoutException: no answer\n=== Streaming Query ===\nLogical Plan:\n{plan}")
    assert not has_grown(other)
    assert "the broker stopped answering" in str(explain(other))
    grown = RuntimeError(f"[USER_RAISED_EXCEPTION] {GROWN}a, b SQLSTATE: P0001\n{plan}")
    assert has_grown(grown)
    assert "these cannot be added: a, b" in str(explain(grown)).splitlines()[0]


def test_places_that_cannot_be_written(lab: Lab) -> None:
    from ixion.pipelines import Pipeline

    (lab.folder / "file").write_text("here")
    source = f'[source]\nbootstrap = "{lab.bootstrap}"\ntopics = ["{lab.topic}"]\n'
    for place in ("file", "file/below", "/proc/nowhere"):
        pipeline = Pipeline(read_spec(f'checkpoint = "{place}"\n{source}{FORMAT}{OUT}', folder=lab.folder))
        refused(partial(pipeline.run, lab.spark), place.partition("/below")[0], "that you can write to?")
    for kind in ("parquet", "delta", "iceberg"):
        pipeline = lab.pipeline(f'{FORMAT}[[sinks]]\ntype = "{kind}"\npath = "file"\n')
        refused(partial(pipeline.check, lab.spark), "file is a file; a table is a folder")
    lost = f'{FORMAT}[[sinks]]\ntype = "iceberg"\ntable = "lost.db.orders"\n'
    refused(lambda: lab.run(lost), "there is no catalog lost", '"spark.sql.catalog.lost"')
    quarantined = f'{FORMAT}{OUT}[quarantine]\npath = "file"\n'
    refused(lambda: lab.pipeline(quarantined).check(lab.spark), "file is a file; a table is a folder")


def test_tables_of_another_kind_or_with_other_columns(lab: Lab) -> None:
    lab.send({"n": 1, "s": "a"})
    kinds = ("parquet", "delta", "iceberg")
    lab.run(FORMAT + "".join(f'[[sinks]]\ntype = "{kind}"\npath = "{kind}"\n' for kind in kinds))

    def check(kind: str, path: str = "", columns: str = "n INT, s STRING", more: str = "") -> Callable[[], object]:
        sink = f'[[sinks]]\ntype = "{kind}"\npath = "{path or kind}"\n{more}'
        pipeline = lab.pipeline(f'[format]\ntype = "json"\nschema = "{columns}"\n{sink}')
        return partial(pipeline.check, lab.spark)

    for kind in kinds:
        check(kind)()
        other = kinds[kinds.index(kind) - 1]
        refused(check(kind, other), f"/{other} is a {other} table, and the sink is {kind}", f'type = "{other}"')
        types = f"{lab.folder}/{kind} is int in the table and string in the rows"
        refused(check(kind, columns="n STRING, s STRING"), f"column n of {kind} {types}", "a SQL step can cast")
        mixed = lab.pipeline(f'{FORMAT}{OUT}[quarantine]\ntype = "{kind}"\npath = "{kind}"\n')
        refused(partial(mixed.check, lab.spark), f"/{kind} is not a quarantine table: it has no column topic")
    wider = "n INT, s STRING, x INT"
    check("parquet", columns=wider)()
    check("delta", columns=wider, more='options = { mergeSchema = "true" }\n')()
    refused(check("delta", columns=wider), "has no column x, which the rows have", "evolve = true")
    refused(check("iceberg", columns=wider), "has no column x, which the rows have", "evolve = true")
    refused(check("iceberg", columns="n INT"), "has a column s, which the rows do not have")
    for kind in ("parquet", "delta"):
        refused(check(kind, more='partition_by = ["s"]\n'), "is partitioned by nothing, and partition_by says s")


def test_a_master_that_is_not_there() -> None:
    for fine in ("local", "local[*]", "local[2, 3]", "local-cluster[2, 1, 1024]", "yarn", "k8s://https://cluster:6443"):
        need_master(fine)
    refused(
        lambda: need_master("sprak://host:7077"),
        "Spark does not know the master 'sprak://host:7077'",
        "spark://host:7077",
    )
    refused(lambda: need_master("local-cluster[2]"), "Spark does not know the master 'local-cluster[2]'", "[2,1,1024]")
    refused(lambda: need_master("spark://[::1]:1"), "no Spark master answers", "is the cluster running?")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"  # bound, but not listening
        error = refused(lambda: need_master(f"spark://{address}"), f"no Spark master answers at spark://{address}")
        assert error.retry
        taken.listen()
        need_master(f"spark://127.0.0.1:1,{address}")
