"""The data source over TLS and SASL, without Spark: it plans, reads and writes, or says why it is refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ixion.clients.faults import AuthenticationError
from ixion.spark.options import read_options
from ixion.spark.source import BatchReader
from tests.security.secured import Secured
from tests.spark_source.sinking import batch_rows, write

LOGIN = {
    "kafka.security.protocol": "SASL_SSL",
    "kafka.sasl.mechanism": "PLAIN",
    "kafka.sasl.username": "alice",
    "kafka.sasl.password": "a-secret",
}


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    made = Secured(tmp_path_factory.mktemp("certificates"))
    with made.broker:
        made.broker.create_topic("t")
        yield made


def given(secured: Secured, **more: str) -> dict[str, str]:
    trusted = {"kafka.ssl.truststore.location": str(secured.authority.certificate)}
    return {"kafka.bootstrap.servers": secured.address("SASL_SSL"), **LOGIN, **trusted, **more}


def test_what_is_written_is_read(secured: Secured) -> None:
    options: dict[str, Any] = given(secured)
    write(secured.address("SASL_SSL"), "t", 0, batch_rows(0), **options)
    reader = BatchReader(read_options({**options, "subscribe": "t"}))
    read = [value for task in reader.partitions() for batch in reader.read(task) for value in batch.column("value")]
    assert sorted(value.as_py().decode() for value in read) == sorted(value for _, value in batch_rows(0))


def test_a_wrong_password_is_named(secured: Secured) -> None:
    options = given(secured, **{"kafka.sasl.password": "wrong"})
    with pytest.raises(AuthenticationError, match="wrong name or password"):
        BatchReader(read_options({**options, "subscribe": "t"})).partitions()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"kafka.sasl.jaas.config": "x"}, "has no option kafka.sasl.jaas.config"),
        ({"kafka.security.protocol": "SSL", "kafka.sasl.username": "a"}, "sasl_username"),
    ],
)
def test_mistakes_are_named(options: dict[str, str], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read_options({"kafka.bootstrap.servers": "b:1", "subscribe": "t", **options})
