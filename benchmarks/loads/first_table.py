"""A pipeline from the start of its process to its first table, with the time of each part; the last line is JSON.

    python -m benchmarks.loads.first_table FILE JARS TIME       TIME: when the process was made, as time.time() has it

It does what `ixion pipeline run FILE` does. The parts, in this order:

    python    the interpreter, and imports             plan     topics, tables, checkpoint, the plan
    spark     the JVM and the session in it            batch    the first batch, until it is in the table

The JVM starts while Python imports pyspark; its processor time until then is part of `python`.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from benchmarks.loads.cpu import tree_seconds

PARTS = ("python", "spark", "plan", "batch")


def main() -> None:
    file, jars, begun = sys.argv[1:]
    times = [float(begun)]
    cpu = [0.0]

    def mark() -> None:
        times.append(time.time())
        cpu.append(tree_seconds(os.getpid()))

    from ixion.cli.pipeline.amount import has_few
    from ixion.pipelines.spark.session import opened, start_spark
    from ixion.pipelines.spec import load_spec

    spec = load_spec(Path(file))
    starting = start_spark(spec, jars=tuple(jars.split(",")), short=has_few(spec))
    from ixion.pipelines.pipeline import Pipeline

    pipeline = Pipeline(spec)
    mark()
    with opened(starting) as spark:
        mark()
        pipeline.run(spark, started=lambda _: mark(), report=lambda _: mark())
    found = {}
    for number, part in enumerate(PARTS):
        found[part] = times[number + 1] - times[number]
        found[f"{part}-cpu"] = cpu[number + 1] - cpu[number]
    found["all"], found["all-cpu"] = times[len(PARTS)] - times[0], cpu[len(PARTS)]
    assert any(Path(file).parent.glob("lake/*/**/*.parquet")), "there is no table"
    print(json.dumps(found))


if __name__ == "__main__":
    main()
