"""What is looked for before Spark is started: Java, jars, a broker; and what is said when it is not there."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from devtools.parts import need_module
from ixion.pipelines.errors import PipelineError
from ixion.pipelines.source.broker_address import need_reachable
from ixion.pipelines.spark import jars, session
from ixion.pipelines.spark.jars import Coordinate
from ixion.pipelines.spark.java_version import need_java
from ixion.pipelines.spark.master import is_one_process

KAFKA = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0"
POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><dependencies>{}</dependencies></project>"""
DEPENDENCY = "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>{}</dependency>"


class Repository:
    """A local Maven repository with empty jars."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def add(self, coordinate: str, *needs: str, scope: str = "") -> Path:
        group, artifact, version = coordinate.split(":")
        folder = self.root.joinpath(*group.split("."), artifact, version)
        folder.mkdir(parents=True)
        more = f"<scope>{scope}</scope>" if scope else ""
        text = "".join(DEPENDENCY.format(*need.split(":"), more) for need in needs)
        (folder / f"{artifact}-{version}.pom").write_text(POM.format(text))
        jar = folder / f"{artifact}-{version}.jar"
        jar.touch()
        return jar


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "repository")


@pytest.fixture
def carried(tmp_path: Path) -> Path:
    """What comes with pyspark."""
    folder = tmp_path / "carried"
    folder.mkdir()
    (folder / "slf4j-api-2.0.16.jar").touch()
    return folder


def test_the_connector_follows_the_installed_spark() -> None:
    assert [str(one) for one in jars.needed("4.0.0", ["parquet", "json"])] == [KAFKA]
    assert [str(one) for one in jars.needed("4.0.1", ["delta", "iceberg", "avro"])] == [
        "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.1",
        "org.apache.spark:spark-avro_2.13:4.0.1",
        "io.delta:delta-spark_2.13:4.0.0",
        "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.10.1",
    ]
    assert [str(one) for one in jars.needed("4.3.0", ["parquet"], connector=False)] == [
        "org.apache.kafka:kafka-clients:3.9.0"
    ]
    with pytest.raises(PipelineError, match=r"Delta tables are tested with Spark 4\.0, not with 4\.9"):
        jars.needed("4.9.0", ["delta"])


def test_jars_of_the_local_repository_bring_what_they_need(repository: Repository, carried: Path) -> None:
    connector = repository.add(KAFKA, "org.apache.kafka:kafka-clients:3.9.0", "org.slf4j:slf4j-api:1.7.36")
    client = repository.add("org.apache.kafka:kafka-clients:3.9.0", "junit:junit:4", scope="test")
    found = jars.find(jars.needed("4.0.0", []), [], carried, repository.root)
    assert found == jars.Jars(files=(str(connector), str(client)))


def test_what_is_not_there_in_full_is_left_to_spark(repository: Repository, carried: Path) -> None:
    repository.add(KAFKA, "org.apache.kafka:kafka-clients:3.9.0")
    assert jars.find(jars.needed("4.0.0", []), [], carried, repository.root) == jars.Jars(packages=(KAFKA,))


def test_a_connector_of_the_same_line_serves_too(repository: Repository, carried: Path) -> None:
    of_405 = jars.needed("4.0.5", [])
    for other in ("3.5.9", "4.1.0", "4.0.7-SNAPSHOT"):
        repository.add(KAFKA.replace("4.0.0", other))
    assert jars.find(of_405, [], carried, repository.root) == jars.Jars(packages=(KAFKA.replace("4.0.0", "4.0.5"),))
    first, newer = repository.add(KAFKA), repository.add(KAFKA.replace("4.0.0", "4.0.3"))
    assert jars.find(of_405, [], carried, repository.root) == jars.Jars(files=(str(newer),))
    newer.unlink()
    assert jars.find(of_405, [], carried, repository.root) == jars.Jars(files=(str(first),))


def test_named_jars_come_first(repository: Repository, carried: Path, tmp_path: Path) -> None:
    repository.add(KAFKA)
    mine = tmp_path / "spark-sql-kafka-0-10_2.13-4.0.0.jar"
    mine.touch()
    wanted = [Coordinate(*KAFKA.split(":"))]
    assert jars.find(wanted, [str(mine)], carried, repository.root) == jars.Jars(files=(str(mine),))
    with pytest.raises(PipelineError, match="there is no jar"):
        jars.find(wanted, ["/nowhere/a.jar"], carried, repository.root)


def test_jars_that_spark_has_downloaded_are_used_again(
    repository: Repository, carried: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    wanted = jars.needed("4.0.0", [])
    assert jars.find(wanted, [], carried, repository.root) == jars.Jars(packages=(KAFKA,))
    files = [str(tmp_path / name) for name in ("kafka.jar", "clients.jar")]
    for file in files:
        Path(file).touch()
    jars.note_files([KAFKA], [f"file://{files[0]}", files[1]])
    assert jars.find(wanted, [], carried, repository.root) == jars.Jars(files=tuple(files))
    Path(files[1]).unlink()  # as a clean-up would: everything is downloaded again
    assert jars.find(wanted, [], carried, repository.root) == jars.Jars(packages=(KAFKA,))
    (note,) = (jars.cache_folder() / "jars").iterdir()
    for broken in ("", "{}", "[1]"):
        note.write_text(broken)
        assert jars.find(wanted, [], carried, repository.root) == jars.Jars(packages=(KAFKA,))


def test_jars_are_on_the_class_path_of_the_jvm_that_is_launched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_DIST_CLASSPATH", "hadoop/*")
    monkeypatch.delenv("SPARK_LAUNCHER_OPTS", raising=False)
    with session._launched_with(["a.jar", "b.jar"]):
        assert os.environ["SPARK_DIST_CLASSPATH"] == "hadoop/*:a.jar:b.jar"
        assert "TieredStopAtLevel" in os.environ["SPARK_LAUNCHER_OPTS"]
    assert os.environ["SPARK_DIST_CLASSPATH"] == "hadoop/*"
    assert "SPARK_LAUNCHER_OPTS" not in os.environ


@pytest.mark.parametrize(
    ("master", "here"),
    [("local", True), ("local[*]", True), ("local[2, 1]", True), ("local-cluster[2,1,512]", False), ("yarn", False)],
)
def test_jars_are_shipped_to_other_processes_only(master: str, here: bool) -> None:
    assert is_one_process(master) == here


def test_how_to_get_jars_names_both_ways() -> None:
    hint = jars.how_to_get([KAFKA])
    assert f"mvn dependency:get -Dartifact={KAFKA}" in hint
    assert "--jars" in hint
    assert 'pip install "pyspark==4.0.0"' in hint


def test_no_java_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PipelineError, match="needs Java 17 or newer, and no java was found") as caught:
        need_java()
    assert "apt-get install openjdk-17" in caught.value.hint
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(PipelineError, match=f"JAVA_HOME is {tmp_path}"):
        need_java()


def test_an_old_java_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_402\"' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(PipelineError, match="is Java 8"):
        need_java()
    (tmp_path / "release").write_text('IMPLEMENTOR="x"\nJAVA_VERSION="11.0.2"\n')  # the program is not asked then
    with pytest.raises(PipelineError, match="is Java 11"):
        need_java()
    (tmp_path / "release").write_text('JAVA_VERSION="25"\n')
    assert need_java() == str(java)


def test_a_broker_that_is_not_there_is_reported_at_once() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"  # bound, but not listening
        with pytest.raises(PipelineError, match=f"no broker answers at {address}") as caught:
            need_reachable(address)
        assert caught.value.retry
        taken.listen()
        need_reachable(f"127.0.0.1:1,{address}", "SSL")
    for wrong in ("localhost", "127.0.0.1:1,localhost"):
        with pytest.raises(PipelineError, match="'localhost' is not host:port"):
            need_reachable(wrong)


@pytest.mark.parametrize(
    ("said", "told", "retry"),
    [
        ("WARNING: Using incubator modules\n", "the JVM of Spark was killed while it was starting", True),
        ("Error: Invalid -Xmx\n", "Spark did not start: Error: Invalid -Xmx", False),
        ("unresolved dependency: a:b:1\n", "these jars were not found: a:b:1", False),
    ],
    ids=["killed", "refused", "jars"],
)
def test_a_jvm_that_does_not_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, told: str, retry: bool
) -> None:
    """Its last output says why; without any, another process has ended it."""
    need_module("pyspark")
    from pyspark import SparkContext

    log = tmp_path / "spark.log"
    log.touch()

    def launch(**_: object) -> None:
        log.write_text(said)
        raise RuntimeError("[JAVA_GATEWAY_EXITED] Java gateway process exited before sending its port number.")

    monkeypatch.setattr(session, "_new_log", lambda: log)
    monkeypatch.setattr(session, "need_java", lambda: "java")
    monkeypatch.setattr(jars, "find", lambda *_: jars.Jars(packages=("a:b:1",)))
    monkeypatch.setattr(SparkContext, "_ensure_initialized", launch)
    with pytest.raises(PipelineError) as caught:
        session.open_session("p")
    assert str(caught.value) == told
    assert caught.value.retry is retry


def ixion(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ixion", "pipeline", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **environment})


@pytest.mark.parametrize(
    ("broken", "code", "said"),
    [
        ('topics = ["orders"', 1, "ixion: p.toml:3: this is not TOML"),
        ('topcs = ["orders"]', 1, "ixion: p.toml:2: source.topcs is not known here; did you mean 'topics'?"),
        ('topics = ["orders"]\nbootstrap = "127.0.0.1:1"', 75, "ixion: no broker answers at 127.0.0.1:1"),
    ],
    ids=["toml", "name", "broker"],
)
def test_the_command_says_it_in_one_or_two_lines(tmp_path: Path, broken: str, code: int, said: str) -> None:
    file = tmp_path / "p.toml"
    file.write_text(f'[source]\n{broken}\n[format]\ntype = "json"\n[[sinks]]\ntype = "parquet"\npath = "out"\n')
    done = ixion("run", str(file))
    assert done.returncode == code
    assert done.stderr.startswith(said)
    assert "Traceback" not in done.stderr


def test_the_command_without_java(tmp_path: Path) -> None:
    need_module("pyspark")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        file = tmp_path / "p.toml"
        bootstrap = (
            f'bootstrap = "127.0.0.1:{listener.getsockname()[1]}"\noptions = {{ "kafka.security.protocol" = "SSL" }}'
        )
        file.write_text(
            f'[source]\n{bootstrap}\ntopics = ["a"]\n[format]\ntype = "text"\n[[sinks]]\ntype = "console"\n'
        )
        done = ixion("check", str(file), PATH=str(tmp_path), JAVA_HOME="")
    assert done.returncode == 1
    assert done.stderr.startswith("ixion: Spark needs Java 17 or newer, and no java was found")


def test_init_writes_a_file_once(tmp_path: Path) -> None:
    file = tmp_path / "shop.toml"
    assert ixion("init", str(file)).returncode == 0
    file.write_text("mine")
    assert ixion("init", str(file)).returncode == 1
    assert file.read_text() == "mine"
