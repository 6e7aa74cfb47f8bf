"""Named sets of jars from Maven Central, fetched once.

    classpath("kafka-3.9.1")  ->  "…/.cache/jars/kafka-3.9.1-0f3a9c51:…/.cache/jars/kafka-3.9.1-0f3a9c51/*"

The directory itself comes first on the class path because it holds the logging settings that keep every program of
the set quiet: warnings and errors on standard error, nothing else.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

from devtools.cache import made_once
from devtools.jvm import QUICK
from devtools.programs import PartMissing, tool

# Kafka 3.9 logs through reload4j, which comes with it; 4.x through log4j 2, whose slf4j binding does not.
_LOG4J2 = "org.apache.logging.log4j:log4j-slf4j-impl:2.25.4"
_KAFKA_3 = ("org.apache.kafka:kafka_2.13:3.9.1", "org.apache.kafka:kafka-tools:3.9.1")
_KAFKA_4 = ("org.apache.kafka:kafka_2.13:4.3.0", "org.apache.kafka:kafka-tools:4.3.0", _LOG4J2)
_NOP = "org.slf4j:slf4j-nop:1.7.36"

# name -> group:artifact:version or group:artifact:version:classifier; what these depend on comes along
SETS: dict[str, tuple[str, ...]] = {
    "kafka-3.9.1": _KAFKA_3,
    "kafka-3.9.1-test": (
        *_KAFKA_3,
        "org.apache.kafka:kafka_2.13:3.9.1:test",
        "org.apache.kafka:kafka-clients:3.9.1:test",
        "org.apache.kafka:kafka-server-common:3.9.1:test",
    ),
    "kafka-4.3.0": _KAFKA_4,
    "clients-3.9.1": ("org.apache.kafka:kafka-clients:3.9.1", _NOP),
    "clients-4.3.0": ("org.apache.kafka:kafka-clients:4.3.0", _NOP),
    # With what its converters to JSON need, which Kafka's servers bring along.
    "clients-4.4.0": (
        "org.apache.kafka:kafka-clients:4.4.0",
        "com.fasterxml.jackson.datatype:jackson-datatype-jdk8:2.19.0",
        _NOP,
    ),
    # What Spark needs beside pyspark itself for pipelines with every table format.
    "spark-4.0.0": (
        "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0",
        "org.apache.spark:spark-avro_2.13:4.0.0",
        "io.delta:delta-spark_2.13:4.0.0",
        "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.10.1",
    ),
    # The REST catalog that Iceberg tests its clients with, and a driver for a catalog in PostgreSQL.
    "iceberg-rest-1.10.1": (
        "org.apache.iceberg:iceberg-open-api:1.10.1:test-fixtures",
        "org.apache.iceberg:iceberg-core:1.10.1",
        "org.apache.iceberg:iceberg-core:1.10.1:tests",
        "org.eclipse.jetty:jetty-servlet:11.0.25",
        "org.xerial:sqlite-jdbc:3.50.3.0",
        "org.slf4j:slf4j-simple:2.0.16",
    ),
    "postgresql": ("org.postgresql:postgresql:42.7.4",),
    "connect-4.3.0": (
        "org.apache.kafka:connect-runtime:4.3.0",
        "org.apache.kafka:connect-file:4.3.0",
        "org.apache.kafka:connect-mirror:4.3.0",
        _LOG4J2,
    ),
    "streams-4.3.0": ("org.apache.kafka:kafka-streams:4.3.0", _NOP),
    "streams-4.3.0-test": (
        "org.apache.kafka:kafka-streams:4.3.0",
        "org.apache.kafka:kafka-streams:4.3.0:test",
        "org.apache.kafka:kafka-clients:4.3.0:test",
        _NOP,
    ),
    # Rivals of the benchmark of delayed delivery.
    "rocketmq-5.5.0": (
        "org.apache.rocketmq:rocketmq-namesrv:5.5.0",
        "org.apache.rocketmq:rocketmq-broker:5.5.0",
        "org.apache.rocketmq:rocketmq-client:5.5.0",
    ),
    "pulsar-4.0.7": ("org.apache.pulsar:pulsar-broker:4.0.7",),
    "zookeeper-3.8.4": (
        "org.apache.zookeeper:zookeeper:3.8.4",
        "io.dropwizard.metrics:metrics-core:4.1.12.1",
        "org.xerial.snappy:snappy-java:1.1.10.5",
    ),
    "zookeeper-3.9.4": (
        "org.apache.zookeeper:zookeeper:3.9.4",
        "io.dropwizard.metrics:metrics-core:4.1.12.1",
        "org.xerial.snappy:snappy-java:1.1.10.5",
    ),
}

_QUIET = {
    "log4j.properties": """\
log4j.rootLogger=WARN, stderr
log4j.appender.stderr=org.apache.log4j.ConsoleAppender
log4j.appender.stderr.target=System.err
log4j.appender.stderr.layout=org.apache.log4j.PatternLayout
log4j.appender.stderr.layout.ConversionPattern=%d %p %m (%c)%n
""",
    "log4j2.properties": """\
status=off
appender.stderr.type=Console
appender.stderr.name=stderr
appender.stderr.target=SYSTEM_ERR
appender.stderr.layout.type=PatternLayout
appender.stderr.layout.pattern=%d %p %m (%c)%n
rootLogger.level=warn
rootLogger.appenderRef.stderr.ref=stderr
""",
    "logback.xml": """\
<configuration>
  <statusListener class="ch.qos.logback.core.status.NopStatusListener"/>
  <appender name="stderr" class="ch.qos.logback.core.ConsoleAppender">
    <target>System.err</target>
    <encoder><pattern>%d %level %msg \\(%logger\\)%n</pattern></encoder>
  </appender>
  <root level="WARN"><appender-ref ref="stderr"/></root>
</configuration>
""",
}


def classpath(name: str) -> str:
    """The class path of the set NAME; fetched when it is not in the cache, without the network when it is."""
    pom = _pom(SETS[name])
    settings = "".join(_QUIET.values())
    digest = hashlib.sha256((pom + settings).encode()).hexdigest()[:8]
    directory = made_once("jars", f"{name}-{digest}", lambda unfinished: _fetch(pom, unfinished))
    return f"{directory}:{directory}/*"


def _fetch(pom: str, directory: Path) -> None:
    (directory / "pom.xml").write_text(pom)
    for file, text in _QUIET.items():
        (directory / file).write_text(text)
    command = [
        *(tool("mvn"), "--quiet", "--batch-mode", "--file", str(directory / "pom.xml")),
        *("dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={directory}"),
    ]
    quick = {**os.environ, "MAVEN_OPTS": f"{' '.join(QUICK)} {os.environ.get('MAVEN_OPTS', '')}"}
    done = subprocess.run(command, capture_output=True, text=True, env=quick, check=False)
    if done.returncode:
        raise PartMissing(f"mvn could not bring {directory.name[1:]}: {done.stdout.strip()[-1000:]}")


def _pom(coordinates: tuple[str, ...]) -> str:
    dependencies = "\n".join(_dependency(*coordinate.split(":")) for coordinate in coordinates)
    return f"""\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>ixion</groupId><artifactId>parts</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>
{dependencies}
  </dependencies>
</project>
"""


def _dependency(group: str, artifact: str, version: str, classifier: str = "") -> str:
    text = f"<groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>"
    if classifier:
        text += f"<classifier>{classifier}</classifier>"
    return f"    <dependency>{text}</dependency>"
