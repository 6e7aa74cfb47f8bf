"""Apache Kafka as the source: plainly, and behind TLS and a password, which nobody ever gets to see."""

from __future__ import annotations

import subprocess
import tempfile
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest

from devtools.kafka import RealKafka, free_port
from devtools.parts import need
from ixion.cli.pipeline.job import plan_lines, status_lines
from ixion.pipelines.errors import PipelineError
from tests.pipelines.support import Lab, send

TEXT = '[format]\ntype = "text"\n[[sinks]]\ntype = "parquet"\npath = "out"\n'
PASSWORD, STORE = "open-sesame-71", "sealed-tight-52"  # looked for in all that is printed and written
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.fixture(scope="module")
def kafka(spark_parts: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealKafka]:
    need("kafka-3.9.1", in_both_passes=True)
    folder = tmp_path_factory.mktemp("kafka")
    key = ["-alias", "kafka", "-keyalg", "EC", "-dname", "CN=test", "-ext", "san=ip:127.0.0.1"]
    store = ["-storetype", "PKCS12", "-keystore", str(folder / "key.p12"), "-storepass", STORE]
    subprocess.run(["keytool", "-genkeypair", *key, *store], check=True, capture_output=True)
    properties = {
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": f'{PLAIN} required user_me="{PASSWORD}";',
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(folder / "key.p12"),
        "ssl.keystore.password": STORE,
    }
    with RealKafka(
        "3.9.1", folder / "data", heap="256m", listeners={"SASL_SSL": free_port()}, properties=properties
    ) as running:
        send(running.bootstrap, "orders", [f"{number}" for number in range(100)], partition=-1)
        yield running


@pytest.fixture
def theirs(kafka: RealKafka, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Lab:
    """Behind the listener that wants a password."""
    monkeypatch.setenv("KAFKA_PASSWORD", PASSWORD)
    monkeypatch.setenv("STORE_PASSWORD", STORE)
    bootstrap = f"127.0.0.1:{kafka.listeners['SASL_SSL']}"
    return Lab(spark=lab.spark, bootstrap=bootstrap, folder=lab.folder, topic="orders")


def settings(kafka: RealKafka, **others: str) -> str:
    options = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f"{PLAIN} required username='me' password='${{KAFKA_PASSWORD}}';",
        "ssl.truststore.location": str(kafka.data_dir.parent / "key.p12"),
        "ssl.truststore.password": "${STORE_PASSWORD}",
        "ssl.truststore.type": "PKCS12",
        **{name.replace("_", "."): value for name, value in others.items()},
    }
    lines = (f'"kafka.{name}" = "{value}"\n' for name, value in options.items() if value)
    return "[source.options]\n" + "".join(lines)


def test_apache_kafka_is_a_source_too(kafka: RealKafka, lab: Lab) -> None:
    plain = Lab(spark=lab.spark, bootstrap=kafka.bootstrap, folder=lab.folder, topic="orders")
    figures = plain.run(TEXT)
    assert (figures.rows_in, figures.rows_out, figures.lag) == (100, 100, 0)
    assert sorted(int(row["value"]) for row in plain.rows()) == list(range(100))


def test_tls_and_a_password_from_the_environment_that_is_never_shown(kafka: RealKafka, theirs: Lab) -> None:
    clean = '[[sinks]]\ntype = "topic"\ntopic = "clean"\n'
    pipeline = theirs.pipeline(TEXT + clean, source=settings(kafka))
    said = [*plan_lines(pipeline.spec, pipeline.check(theirs.spark)), repr(pipeline.spec)]
    assert pipeline.run(theirs.spark).rows_out == 100
    said += status_lines(pipeline.spec, pipeline.checkpoint().history(), pipeline.checkpoint().totals())
    broken = f'{TEXT}[[steps]]\nsql = "SELECT string(raise_error(value)) AS value FROM stream"\n'
    with pytest.raises(PipelineError) as caught:
        theirs.run(broken, name="broken", source=settings(kafka))
    said += traceback.format_exception(caught.value)  # what --verbose shows
    said += [path.read_text(errors="replace") for path in theirs.folder.rglob("*") if path.is_file()]
    logs = list(Path(tempfile.gettempdir()).glob("ixion-spark-*.log"))
    assert logs
    said += [log.read_text(errors="replace") for log in logs]
    assert [text for text in said if "Traceback" in text and "StreamingQueryException" in text]
    assert [text for text in said if PASSWORD in text or STORE in text] == []


@pytest.mark.parametrize(
    ("others", "said", "hint"),
    [
        (
            {"sasl_jaas_config": f"{PLAIN} required username='me' password='wrong';"},
            "does not accept the name or the password",
            "kafka.sasl.jaas.config",
        ),
        (
            {"ssl_truststore_location": "", "ssl_truststore_password": "", "ssl_truststore_type": ""},
            "no trusted connection to the broker at",
            "kafka.ssl.truststore.location",
        ),
        ({"ssl_truststore_password": "wrong"}, "the password of the key store or the trust store is wrong", ""),
        ({"security_protocol": "SASL_TLS"}, "Invalid value SASL_TLS", "Kafka's clients"),
        ({"security_protocol": "SASL_PLAINTEXT"}, "wants TLS", 'kafka.security.protocol" = "SASL_SSL"'),
    ],
    ids=["password", "certificate", "store", "setting", "protocol"],
)
def test_what_keeps_a_pipeline_out(kafka: RealKafka, theirs: Lab, others: dict[str, str], said: str, hint: str) -> None:
    with pytest.raises(PipelineError) as caught:
        theirs.pipeline(TEXT, source=settings(kafka, **others)).check(theirs.spark)
    assert said in str(caught.value)
    assert hint in caught.value.hint
    assert "Exception" not in str(caught.value) + caught.value.hint
