"""`ixion pipeline warm FILE`: creates the class archive that the first run would create (see `class_archive`).

Spark runs a pipeline over example orders, with the kinds of tables that FILE has, a broker in this process and tables
in a temporary folder. The topics and tables of FILE are not touched.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rich.console import Console

from ixion.cli.pipeline.job import settings_of
from ixion.pipelines.errors import NoSparkError, PipelineError
from ixion.pipelines.spark.class_archive import FOLDER, archive_folder
from ixion.pipelines.spec import load_spec, read_spec
from ixion.pipelines.spec.sinks import TableSink
from ixion.testing import Broker

if TYPE_CHECKING:
    from ixion.pipelines.spec import PipelineSpec

COUNT: Final = 1000
_JOB: Final = """
name = "warm"
[source]
bootstrap = "{bootstrap}"
topics = ["warm"]
create_missing = true
include = ["offset"]
[format]
type = "json"
schema = "order_id STRING, customer STRING, country STRING, amount DOUBLE, at TIMESTAMP"
[[expectations]]
check = "order_id IS NOT NULL"
otherwise = "quarantine"
[[steps]]
sql = "SELECT *, date(at) AS day FROM stream"
"""


def warm_up(file: Path, conf: list[str], jars: str, verbose: bool) -> str:
    """Create the archive for FILE; returns the line to print."""
    begun = time.monotonic()
    spec = load_spec(file)
    folder = archive_folder()
    if folder is None or not spec.spark.class_archive:
        where = f"{FOLDER} is off" if folder is None else "[spark] class_archive is false"
        raise PipelineError(f"archives of classes are switched off: {where}")
    with Console(stderr=True).status("starting Spark") as live:
        try:
            from ixion.pipelines.pipeline import Pipeline
            from ixion.pipelines.spark.session import close_session, open_session, own_interrupts
        except ImportError:
            raise NoSparkError() from None
        with own_interrupts():
            spark = open_session(
                "ixion pipeline warm",
                formats=spec.formats() | {spec.format.type},
                conf={**spec.spark.conf, **settings_of(conf)},
                jars=(*(jar for jar in jars.split(",") if jar), *spec.spark.jars),
                connector=spec.needs_connector(),
                class_archive="note",
                verbose=verbose,
            )
        try:
            live.update("running an example")
            with Broker() as broker, tempfile.TemporaryDirectory() as place:
                pipeline = Pipeline(read_spec(_job(spec, broker.bootstrap), folder=Path(place)))
                pipeline.send_sample(spark, COUNT)
                pipeline.run(spark)
        except BaseException:
            close_session(spark)
            raise
        live.update("writing the archive")
        made = close_session(spark, make="now")
    took = f"{time.monotonic() - begun:.0f} s"
    if not made:
        return f"there is an archive in {folder} already, or Java cannot make one with this class path · {took}"
    return f"Spark starts with the archive in {folder} from now on · {took}"


def _job(spec: PipelineSpec, bootstrap: str) -> str:
    kinds = {sink.format for sink in spec.sinks if isinstance(sink, TableSink)} or {"parquet"}
    sinks = "".join(f'[[sinks]]\ntype = "{kind}"\npath = "{kind}"\n' for kind in sorted(kinds))
    return _JOB.format(bootstrap=bootstrap) + sinks
