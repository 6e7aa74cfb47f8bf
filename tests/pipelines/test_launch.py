"""The JVM of Spark without Spark's launch script."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from devtools.parts import need_module
from ixion.pipelines.errors import PipelineError
from ixion.pipelines.spark import jars, session
from ixion.pipelines.spark.launch import Jvm, JvmEnded, can_launch

JAVA = """#!/bin/sh
printf '%s\\n' "$@" > {folder}/words
env > {folder}/environment
printf '\\0\\0\\022\\064\\0\\0\\0\\003abc' > {folder}/unfinished
mv {folder}/unfinished "$_PYSPARK_DRIVER_CONN_INFO_PATH"
cat > /dev/null
touch {folder}/ended
"""


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("SPARK_", "PYSPARK_", "HADOOP_", "YARN_")):
            monkeypatch.delenv(name)


def script(path: Path, text: str) -> str:
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def test_the_jvm_is_found_by_two_variables_and_ends_with_its_pipe(tmp_path: Path, temporary: Path) -> None:
    settings = {
        "spark.driver.memory": "3g",
        "spark.driver.extraJavaOptions": '-Da=b "-XX:SharedArchiveFile=/a b/c"',
        "spark.master": "local[2]",
    }
    home = tmp_path / "spark"
    (home / "jars").mkdir(parents=True)
    (home / "jars" / "slf4j-api-2.jar").touch()
    java = script(tmp_path / "java", JAVA.format(folder=tmp_path))
    jvm = Jvm(java, home, ["x.jar", "y.jar"], settings, None)
    jvm.wait()
    with jvm.found():
        assert (os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"]) == ("4660", "abc")
    assert not any(name.startswith("PYSPARK_GATEWAY") for name in os.environ)
    words = (tmp_path / "words").read_text().splitlines()
    assert words[1] == f"{home}/conf:{home}/jars/slf4j-api-2.jar:{home}/jars/*:x.jar:y.jar"  # as the script has it
    assert {"-Xmx3g", "-Da=b", "-XX:SharedArchiveFile=/a b/c", "-Dspark.master=local[2]"} < set(words)
    assert words[-1] == "org.apache.spark.api.python.PythonGatewayServer"
    environment = (tmp_path / "environment").read_text().splitlines()
    assert {f"SPARK_HOME={home}", "PYTHONHASHSEED=0"} < set(environment)
    assert not list(temporary.iterdir())
    process = jvm.process
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(60) == 0
    assert (tmp_path / "ended").exists()


def test_a_jvm_that_ends_before_it_is_ready(tmp_path: Path, temporary: Path) -> None:
    java = script(tmp_path / "java", "#!/bin/sh\nexit 1\n")
    with pytest.raises(JvmEnded):
        Jvm(java, tmp_path, [], {}, None).wait()
    assert not list(temporary.iterdir())


def test_a_jvm_that_is_not_ready_is_killed_by_an_interrupt(
    tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    jvm = Jvm(script(tmp_path / "java", "#!/bin/sh\nexec sleep 600\n"), tmp_path, [], {}, None)
    monkeypatch.setattr(time, "sleep", interrupt)
    with pytest.raises(KeyboardInterrupt):
        jvm.wait()
    assert jvm.process.returncode == -signal.SIGKILL
    assert not list(temporary.iterdir())


def test_a_fork_does_not_end_the_jvm_of_its_parent(tmp_path: Path, temporary: Path) -> None:
    jvm = Jvm(script(tmp_path / "java", JAVA.format(folder=tmp_path)), tmp_path, [], {}, None)
    child = os.fork()
    if child == 0:
        jvm.end()
        os._exit(0)
    os.waitpid(child, 0)
    jvm.wait()
    assert jvm.process.poll() is None
    jvm.end()


def test_an_interrupt_does_not_end_the_jvm(tmp_path: Path, temporary: Path) -> None:
    """Ctrl-C reaches all processes of a terminal; the pipeline decides when its JVM ends."""
    jvm = Jvm(script(tmp_path / "java", JAVA.format(folder=tmp_path)), tmp_path, [], {}, None)
    jvm.wait()
    status = Path(f"/proc/{jvm.process.pid}/status").read_text()
    ignored = int(status.partition("SigIgn:")[2].split()[0], 16)
    assert ignored & 1 << (signal.SIGINT - 1)
    jvm.end()


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> None:
    """A JVM would be launched directly."""
    need_module("pyspark")
    monkeypatch.setattr(session, "can_launch", lambda *_: True)
    monkeypatch.setattr(session, "need_java", lambda: "java")
    monkeypatch.setattr(session, "_has_jvm", lambda: False)
    monkeypatch.setattr(jars, "find", lambda *_: jars.Jars())


def test_a_jvm_for_which_the_system_has_no_room_is_one_sentence(
    launched: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_room(*_: object, **_more: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(subprocess, "Popen", no_room)
    with pytest.raises(PipelineError, match=r"Spark did not start: .*Too many open files"):
        session.Starting("p", class_archive="off")


def test_passwords_are_not_in_the_command(launched: None, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[dict[str, str]] = []
    monkeypatch.setattr(session, "Jvm", lambda _java, _home, _jars, settings, _output: given.append(settings))
    conf = {"spark.sql.catalog.c.password": "geheim", "spark.hadoop.fs.s3a.access.key": "geheim", "spark.a": "b"}
    session.Starting("p", conf=conf, class_archive="off")
    assert given[0]["spark.a"] == "b"
    assert "geheim" not in given[0].values()


@pytest.mark.parametrize(
    ("version", "variable", "setting", "can"),
    [
        ("4.0.0", "HOME", "spark.sql.shuffle.partitions=2", True),
        ("4.0.5", "SPARK_BUFFER_SIZE", "spark.driver.memory=2g", True),
        ("4.0.0", "HOME", "spark.driver.extraJavaOptions=-Da=b", True),
        ("4.0.0", "HOME", "spark.driver.extraJavaOptions=-Da='b c'", False),
        ("4.0.0", "HOME", "spark.driver.extraJavaOptions=-Xmx2g", False),
        ("4.1.0", "HOME", "spark.driver.memory=2g", False),
        ("4.0.0", "SPARK_HOME", "spark.a=b", False),
        ("4.0.0", "SPARK_CONF_DIR", "spark.a=b", False),
        ("4.0.0", "PYSPARK_SUBMIT_ARGS", "spark.a=b", False),
        ("4.0.0", "HADOOP_CONF_DIR", "spark.a=b", False),
        ("4.0.0", "HOME", "spark.jars.packages=a:b:1", False),
        ("4.0.0", "HOME", "spark.driver.extraClassPath=a.jar", False),
        ("4.0.0", "HOME", "spark.kerberos.keytab=a", False),
    ],
)
def test_what_the_script_understands_is_left_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, variable: str, setting: str, can: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(variable, "x")
    home = tmp_path / "pyspark"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "spark-submit").touch()
    name, _, value = setting.partition("=")
    assert can_launch(version, home, {name: value}) is can


@pytest.mark.parametrize(
    "other", ["pyspark/conf/spark-defaults.conf", "pyspark/spark-distribution/x", "bin/spark-submit"]
)
def test_another_spark_or_a_file_of_settings_is_left_to_the_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    home, here = tmp_path / "pyspark", tmp_path / "here"
    (home / "bin").mkdir(parents=True)
    here.mkdir()
    monkeypatch.chdir(here)
    assert not can_launch("4.0.0", home, {})
    (home / "bin" / "spark-submit").touch()
    assert can_launch("4.0.0", home, {})
    (tmp_path / other).parent.mkdir(exist_ok=True)
    (tmp_path / other).touch()
    assert not can_launch("4.0.0", home, {})
