"""A pipeline into tables of two real catalogs: Iceberg's own REST server, and PostgreSQL. `make soak-catalogs`

PostgreSQL is Debian's (15 or what is installed), in a folder of its own; the REST server is the one that Iceberg tests
its clients with, from Maven Central. Records are sent in two runs, the second with other columns, partitions and order;
each record must be in both tables once, and what was asked of the catalogs must be true.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from devtools import jars
from devtools.jvm import QUICK
from devtools.programs import tool
from ixion.testing import Broker
from tests.pipelines.support import SMALL, send, spark_jars

REST = "iceberg-rest-1.10.1"
TEXT = """
name = "catalogs"
[source]
bootstrap = "{bootstrap}"
topics = ["t"]
[format]
type = "json"
schema = "{schema}"
[catalogs.rest]
type = "rest"
uri = "{rest}"
[catalogs.pg]
type = "jdbc"
uri = "{postgres}"
warehouse = "{folder}/pg"
user = "{user}"
password = "${{PG_PASSWORD}}"
[[sinks]]
type = "iceberg"
table = "rest.shop.orders"
{more}
[[sinks]]
type = "iceberg"
table = "pg.shop.orders"
{more}
[quarantine]
type = "parquet"
path = "bad"
"""


@contextmanager
def rest_server(folder: Path) -> Iterator[str]:
    """Its address. It takes a free port, and says which in its log."""
    import pyspark

    hadoop = [str(path) for path in (Path(pyspark.__file__).parent / "jars").glob("hadoop-client-*.jar")]
    environment = {
        "CATALOG_CATALOG__IMPL": "org.apache.iceberg.jdbc.JdbcCatalog",
        "CATALOG_URI": f"jdbc:sqlite:{folder}/rest.db",
        "CATALOG_JDBC_USER": "user",
        "CATALOG_JDBC_PASSWORD": "password",
        "CATALOG_WAREHOUSE": f"{folder}/rest",
        "CATALOG_REST_PORT": "0",
    }
    command = [tool("java"), "-Xmx256m", *QUICK, "-cp", ":".join([jars.classpath(REST), *hadoop])]
    said = folder / "rest.log"
    with said.open("w") as log:  # a file: nobody would read on, and a full pipe would stop the server
        server = subprocess.Popen(
            [*command, "org.apache.iceberg.rest.RESTCatalogServer"],
            env={**os.environ, **environment},
            stdout=log,
            stderr=log,
        )
    try:
        while not (found := re.search(r"Started ServerConnector.*:(\d+)\}", said.read_text())):
            if server.poll() is not None:
                raise SystemExit(f"the REST server did not start: {said.read_text()[-500:]}")
            time.sleep(0.1)
        yield f"http://127.0.0.1:{found[1]}"
    finally:
        server.kill()
        server.wait()


@contextmanager
def postgres(folder: Path) -> Iterator[str]:
    """Its JDBC address. It refuses to run as root, so it runs as the user that its package brings."""
    binaries = sorted(Path("/usr/lib/postgresql").glob("*/bin"))[-1]
    data, password = folder / "data", folder / "password"
    password.write_text("secret")
    switch = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.geteuid() == 0 else []
    if switch:
        shutil.chown(folder, "postgres")
        shutil.chown(password, "postgres")
    init = [f"{binaries}/initdb", "-D", str(data), "-U", "ada", f"--pwfile={password}", "-A", "scram-sha-256"]
    subprocess.run([*switch, *init], check=True, stdout=subprocess.DEVNULL, cwd="/")
    with Broker() as probe:  # any free port; the broker gives it back
        port = int(probe.bootstrap.rpartition(":")[2])
    control = [f"{binaries}/pg_ctl", "-D", str(data), "-w", "-l", str(folder / "log")]
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder} -c fsync=off"
    subprocess.run([*switch, *control, "-o", options, "start"], check=True, stdout=subprocess.DEVNULL, cwd="/")
    try:
        yield f"jdbc:postgresql://127.0.0.1:{port}/postgres"
    finally:
        subprocess.run([*switch, *control, "-m", "immediate", "stop"], check=True, stdout=subprocess.DEVNULL, cwd="/")


def main() -> int:
    from ixion.pipelines import Pipeline, open_session
    from ixion.pipelines.spec import read_spec

    os.environ["PG_PASSWORD"] = "secret"
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (folder / "pgdata").mkdir()
        folder.chmod(0o755)
        broker = stack.enter_context(Broker())
        broker.create_topic("t", partitions=2)
        places = {
            "bootstrap": broker.bootstrap,
            "rest": stack.enter_context(rest_server(folder)),
            "postgres": stack.enter_context(postgres(folder / "pgdata")),
            "folder": str(folder),
            "user": "ada",
        }
        driver = Path(jars.classpath("postgresql").partition(":")[0])
        extra = [str(path) for path in driver.glob("postgresql-*.jar")]
        spark = open_session("catalogs", formats=("iceberg",), conf=SMALL, jars=(*spark_jars(), *extra))
        stack.callback(spark.stop)

        def run(schema: str, more: str) -> list[str]:
            pipeline = Pipeline(read_spec(TEXT.format(schema=schema, more=more, **places), folder=folder))
            planned = [f"{table}: {change}" for table, change in pipeline.check(spark).changes]
            pipeline.run(spark)
            left = pipeline.check(spark).changes
            assert left == (), f"what was planned was not done: {left}"
            return planned

        send(broker.bootstrap, "t", [{"n": n} for n in range(100)])
        properties = 'properties = { "write.metadata.compression-codec" = "gzip" }'
        first = f'partition_by = ["bucket(4, n)"]\nsort_by = ["n"]\n{properties}'
        assert run("n INT", first) == []
        send(broker.bootstrap, "t", [{"n": n, "s": str(n)} for n in range(100, 200)])
        upkeep = '[sinks.upkeep]\ncompact_below_mb = 1\nkeep = "1 ms"'
        other = f'evolve = true\npartition_by = ["s"]\nsort_by = ["n DESC"]\n{upkeep}'
        for line in run("n INT, s STRING", other):
            print(line)
        for catalog in ("rest", "pg"):
            rows: list[Any] = spark.table(f"{catalog}.shop.orders").collect()
            assert sorted(row.n for row in rows) == list(range(200)), catalog
            shown = {
                row["key"]: row["value"] for row in spark.sql(f"SHOW TBLPROPERTIES {catalog}.shop.orders").collect()
            }
            assert shown["sort-order"] == "n DESC NULLS LAST"
            assert shown["write.metadata.compression-codec"] == "gzip"
            print(f"{catalog}: 200 rows, each once")
    return 0


if __name__ == "__main__":
    sys.exit(main())
