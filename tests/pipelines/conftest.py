"""One Spark and one broker for all tests of pipelines; each test has topics and folders of its own."""

from __future__ import annotations

import gc
import re
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from devtools.parts import need, need_module
from ixion.testing import Broker
from tests.pipelines.processes import Served
from tests.pipelines.support import JARS, Lab

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Python's side of Spark leaves its sockets to the garbage collector, which then warns. The first test also waits
    for the jars and for Spark to start, which takes minutes on a busy machine: none is ended before."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(900))
            for warning in ("ResourceWarning", "pytest.PytestUnraisableExceptionWarning"):
                item.add_marker(pytest.mark.filterwarnings(f"ignore::{warning}"))


@pytest.fixture(scope="package", autouse=True)
def own_temporary_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Locks of checkpoints that are elsewhere lie there, named after the checkpoint: another run of these tests, at the
    same time on the same machine, has the same names."""
    folder = tmp_path_factory.mktemp("tmp")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(folder))  # for commands that are started
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        patch.setattr(tempfile, "tempdir", str(folder))
        yield folder


@pytest.fixture(scope="package")
def spark_parts() -> None:
    """Java, the jars, and pyspark. The interpreted pass of `make test` has these tests: nothing here is compiled."""
    need_module("pyspark")
    need(JARS, in_both_passes=True)


@pytest.fixture(scope="package")
def spark(spark_parts: None) -> Iterator[SparkSession]:
    from ixion.pipelines import open_session
    from tests.pipelines.support import SHARED, spark_jars

    session = open_session("tests", formats=("avro", "delta", "iceberg"), conf=SHARED, jars=spark_jars())
    yield session
    session.stop()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gc.collect()  # what Spark leaves open must not be found while another package is tested


@pytest.fixture(scope="package")
def broker(spark_parts: None) -> Iterator[Broker]:
    with Broker() as running:
        yield running


@pytest.fixture
def served(spark_parts: None, tmp_path: Path) -> Iterator[Served]:
    """A broker in a process of its own, to be killed."""
    broker = Served(tmp_path / "data")
    yield broker
    broker.kill()


@pytest.fixture
def lab(spark: SparkSession, broker: Broker, tmp_path: Path, request: pytest.FixtureRequest) -> Lab:
    """A topic named after the test, and a folder."""
    topic = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower())[:80].strip("-")
    broker.create_topic(topic, partitions=2)
    return Lab(spark=spark, bootstrap=broker.bootstrap, folder=tmp_path, topic=topic)
