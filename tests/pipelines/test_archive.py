"""Archives of Java's classes: which one belongs to a class path, how it is made, and that a broken one harms nobody."""

from __future__ import annotations

import os
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from devtools.programs import tool
from ixion.pipelines.errors import PipelineError
from ixion.pipelines.spark.class_archive import FOLDER, ROOM, Archive, archive_for, make_archive, make_in_background
from tests.pipelines.support import spark_jars

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(FOLDER, str(tmp_path / "classes"))
    return tmp_path / "classes"


def test_an_archive_belongs_to_one_java_and_one_class_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java, jar, other = (tmp_path / name for name in ("java", "a.jar", "b.jar"))
    for file in (java, jar, other):
        file.write_bytes(b"1")

    def name(*jars: Path) -> str:
        found = archive_for(str(java), jars)
        assert found is not None
        return found.file.name

    names = {name(jar), name(jar, other)}
    jar.write_bytes(b"another version")
    names.add(name(jar))
    java.write_bytes(b"another java")
    names.add(name(jar))
    assert len(names) == 4
    assert name(jar, other) == name(other, jar)
    assert archive_for(str(java), [tmp_path / "gone.jar"]) is None
    assert archive_for(str(java), [jar], "-Xmx1g -Xshare:off") is None  # the user has decided
    monkeypatch.setenv(FOLDER, "off")
    assert archive_for(str(java), [jar]) is None
    monkeypatch.delenv(FOLDER)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    found = archive_for(str(java), [jar])
    assert found is not None
    assert found.file.parent == tmp_path / "cache" / "ixion" / "classes"


def test_java_starts_with_the_archive_and_without_a_broken_one(spark_parts: None, folder: Path) -> None:
    java = tool("java")
    jars = [Path(jar) for jar in spark_jars("kafka")]
    class_path = os.pathsep.join(map(str, jars))
    found = archive_for(java, jars)
    assert found is not None
    main = ("-cp", class_path, "org.apache.kafka.common.utils.AppInfoParser")  # any class will do; it has no main

    def start(*options: str) -> str:
        done = subprocess.run([java, *options, *main], capture_output=True, text=True, check=False)
        return done.stdout + done.stderr

    said = start()
    assert not found.there
    assert start(*found.options) == said
    assert "org/apache/kafka/common/utils/AppInfoParser" in found.noted.read_text()
    assert make_archive(java, found.file, found.noted, class_path)
    assert os.listdir(folder) == [found.file.name]  # nothing else is left
    loaded = start(*found.options, "-Xlog:class+load")
    assert "org.apache.kafka.common.utils.AppInfoParser source: shared objects file" in loaded
    found.file.write_bytes(b"no archive")
    assert start(*found.options) == said


def test_what_java_cannot_make_leaves_nothing_behind(tmp_path: Path, folder: Path) -> None:
    folder.mkdir()
    found = Archive(java=tool("false"), file=folder / "a.jsa")
    found.noted.write_text("java/lang/Object\n")
    assert not make_archive(found.java, found.file, found.noted, "a.jar")
    assert os.listdir(folder) == []
    found.noted.write_text("java/lang/Object\n")
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "core-site.xml").touch()
    assert make_in_background(found, f"a.jar{os.pathsep}{tmp_path / 'conf'}") is None
    assert os.listdir(folder) == []
    assert make_in_background(found, "a.jar") is None  # no classes were noted


def test_a_full_disk_and_a_folder_of_others_are_left_alone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=ROOM))
    assert Archive(java="java", file=folder / "a.jsa").options == ()
    folder.rmdir()
    folder.write_text("a file")
    assert Archive(java="java", file=folder / "a.jsa").options == ()


def test_only_the_newest_archives_are_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.mkdir()
    for number in range(6):
        (folder / f"{number}.jsa").touch()
        os.utime(folder / f"{number}.jsa", (number, number))
    (folder / "left.1.unfinished").touch()
    os.utime(folder / "left.1.unfinished", (1, 1))
    (folder / "going.2.classes").touch()
    made = Archive(java="java", file=folder / "new.jsa")
    made.noted.write_text("java/lang/Object\n")

    def dump(command: list[str], **_: Any) -> SimpleNamespace:
        (option,) = (word for word in command if word.startswith("-XX:SharedArchiveFile="))
        Path(option.partition("=")[2]).touch()
        return SimpleNamespace(returncode=0)

    monkeypatch.setattr("subprocess.run", dump)
    assert make_archive("java", made.file, made.noted, "a.jar")
    assert sorted(os.listdir(folder)) == ["3.jsa", "4.jsa", "5.jsa", "going.2.classes", "new.jsa"]


def test_of_several_runs_that_end_at_once_one_makes_the_archive(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.mkdir()
    begun, go = threading.Event(), threading.Event()
    dumps: list[str] = []

    def dump(command: list[str], **_: Any) -> SimpleNamespace:
        (option,) = (word for word in command if word.startswith("-XX:SharedArchiveFile="))
        Path(option.partition("=")[2]).touch()
        dumps.append(option)
        begun.set()
        assert go.wait(60)
        return SimpleNamespace(returncode=0)

    def make(number: int) -> bool:
        noted = folder / f"{number}.classes"
        noted.write_text("java/lang/Object\n")
        return make_archive("java", folder / "new.jsa", noted, "a.jar")

    monkeypatch.setattr("subprocess.run", dump)
    with ThreadPoolExecutor(3) as pool:
        made = [pool.submit(make, number) for number in range(3)]
        assert begun.wait(60)
        go.set()
        assert [one.result(60) for one in made] == [True] * 3
    assert len(dumps) == 1
    assert os.listdir(folder) == ["new.jsa"]


def test_an_archive_is_made_when_a_run_went_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyspark")
    from ixion.pipelines.pipeline import Pipeline
    from ixion.pipelines.spark import session
    from ixion.pipelines.spec import read_spec

    class Started:
        def __init__(self, *_: object, class_archive: str, **__: object) -> None:
            calls.append(class_archive)

        def session(self) -> None: ...

    text = 'name = "p"\n[source]\ntopics = ["t"]\n[format]\ntype = "bytes"\n[[sinks]]\ntype = "parquet"\npath = "out"\n'
    calls: list[str] = []
    monkeypatch.setattr(session, "Starting", Started)
    monkeypatch.setattr(session, "close_session", lambda _, make="no": calls.append(make))

    def run(text: str, *, make: bool, error: bool = False) -> list[str]:
        calls.clear()
        try:
            with Pipeline(read_spec(text, folder=tmp_path)).session(make_archive=make):
                if error:
                    raise KeyboardInterrupt
        except KeyboardInterrupt:
            pass
        return [*calls]

    assert run(text, make=True) == ["note", "later"]
    assert run(text, make=True, error=True) == ["note", "no"]
    assert run(text, make=False) == ["use", "later"]
    assert run(f"{text}[spark]\nclass_archive = false\n", make=True)[0] == "off"


def test_warm_runs_an_example_and_touches_nothing_else(
    spark: SparkSession, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ixion.cli.pipeline.warm import warm_up
    from ixion.pipelines.spark import session
    from ixion.pipelines.spec.template import template

    said: list[str] = []

    def start(*_: object, class_archive: str, **__: object) -> SparkSession:
        said.append(class_archive)
        return spark

    def close(_: SparkSession, *, make: str = "no") -> bool:
        said.append(make)
        return make == "now"

    monkeypatch.setattr(session, "open_session", start)
    monkeypatch.setattr(session, "close_session", close)
    file = tmp_path / "orders.toml"
    file.write_text(template("orders"))
    assert warm_up(file, [], "", False).startswith(f"Spark starts with the archive in {folder} from now on")
    assert said == ["note", "now"]
    assert os.listdir(tmp_path) == ["orders.toml"]
    file.write_text(f"{file.read_text()}[spark]\nclass_archive = false\n")
    with pytest.raises(PipelineError, match=r"switched off: \[spark\] class_archive is false"):
        warm_up(file, [], "", False)
