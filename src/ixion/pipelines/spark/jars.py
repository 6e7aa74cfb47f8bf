"""Which jars a pipeline needs, and where they are found.

Spark itself comes with pyspark; its Kafka connector and the table formats do not. They are looked for in this order:

1. `--jars` (or `jars` in the pipeline file): used as they are;
2. the local Maven repository (~/.m2/repository, or the one of settings.xml): the jar and, by its POM, its dependencies
   that Spark does not have. If the jar of this Spark is missing, one of the same line is used: the connector of 4.0.0
   works with 4.0.5;
3. the files that Spark downloaded for an earlier start, if all of them still exist;
4. Spark's own resolution (`spark.jars.packages`), which downloads from Maven Central. It takes seconds and uses the
   network even if nothing is missing, so its files are noted for the next start.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as Xml

from ixion.pipelines.errors import PipelineError

SCALA: Final = "2.13"
TESTED: Final = "4.0.0"  # its connector is in every mirror of Maven Central that we have met
_POM: Final = "{http://maven.apache.org/POM/4.0.0}"
# By Spark's first two numbers. Table formats are published apart from Spark and follow it with a delay.
_DELTA: Final = {"4.0": "4.0.0"}
_ICEBERG: Final = {"4.0": "1.10.1"}


@dataclass(frozen=True, slots=True, order=True)
class Coordinate:
    group: str
    artifact: str
    version: str

    def __str__(self) -> str:
        return f"{self.group}:{self.artifact}:{self.version}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Jars:
    files: tuple[str, ...] = ()  # for spark.jars
    packages: tuple[str, ...] = ()  # for spark.jars.packages


_DRIVERS: Final = {  # of catalogs in a database, by the second word of their JDBC address
    "postgresql": Coordinate("org.postgresql", "postgresql", "42.7.4"),
}


# What pipelines that read by `format("ixion")` ask about topics with: the version that the connector of 4.0.0 brings.
_CLIENTS: Final = Coordinate("org.apache.kafka", "kafka-clients", "3.9.0")


def needed(spark_version: str, formats: Iterable[str], *, connector: bool = True) -> list[Coordinate]:
    """The connector follows the installed Spark; FORMATS are those of tables and records, and databases of catalogs."""
    line = ".".join(spark_version.split(".")[:2])
    wanted = [Coordinate("org.apache.spark", f"spark-sql-kafka-0-10_{SCALA}", spark_version) if connector else _CLIENTS]
    for name in sorted(set(formats)):
        if name == "avro":
            wanted.append(Coordinate("org.apache.spark", f"spark-avro_{SCALA}", spark_version))
        elif name == "delta":
            wanted.append(Coordinate("io.delta", f"delta-spark_{SCALA}", _matching(_DELTA, line, "Delta")))
        elif name == "iceberg":
            version = _matching(_ICEBERG, line, "Iceberg")
            wanted.append(Coordinate("org.apache.iceberg", f"iceberg-spark-runtime-{line}_{SCALA}", version))
        elif name in _DRIVERS:
            wanted.append(_DRIVERS[name])
    return wanted


def find(wanted: Iterable[Coordinate], given: Iterable[str], carried: Path, repository: Path | None = None) -> Jars:
    """GIVEN are the jars named by the user, CARRIED is the directory of those that come with pyspark."""
    files = tuple(given)
    for file in files:
        if "://" not in file and not os.path.isfile(file):
            raise PipelineError(f"there is no jar {file}", hint="--jars takes paths, separated by commas")
    named = {re.sub(r"-[\d.]+\.jar$", "", os.path.basename(file)) for file in files}
    missing = [coordinate for coordinate in wanted if coordinate.artifact not in named]
    with_spark = {re.sub(r"-\d[\w.]*\.jar$", "", jar.name) for jar in carried.glob("*.jar")}
    found: dict[str, Path] = {}
    packages: list[str] = []
    for coordinate in missing:
        known = repository or local_repository()
        closure = _closure(coordinate, known, with_spark) or _neighbour(coordinate, known, with_spark)
        if closure is None:
            packages.append(str(coordinate))
        else:
            found.update(closure)
    noted = noted_files(packages)
    if noted:
        packages = []
    return Jars(files=(*files, *map(str, found.values()), *noted), packages=tuple(packages))


def note_files(packages: Iterable[str], files: Iterable[str]) -> None:
    """Note the FILES that Spark downloaded for PACKAGES. Failing to write the note is harmless."""
    note = _note(packages)
    try:
        note.parent.mkdir(parents=True, exist_ok=True)
        unfinished = note.with_suffix(f".{os.getpid()}")
        unfinished.write_text(json.dumps([file.removeprefix("file://").removeprefix("file:") for file in files]))
        unfinished.replace(note)
    except OSError:
        pass


def noted_files(packages: Iterable[str]) -> tuple[str, ...]:
    """The files noted for PACKAGES; none if one of them is gone or the note cannot be read."""
    try:
        files = json.loads(_note(packages).read_text())
    except (OSError, ValueError):
        return ()
    if not isinstance(files, list) or not all(isinstance(file, str) and os.path.isfile(file) for file in files):
        return ()
    return tuple(files)


def _note(packages: Iterable[str]) -> Path:
    name = hashlib.sha256("\n".join(sorted(packages)).encode()).hexdigest()[:16]
    return cache_folder() / "jars" / f"{name}.json"


def cache_folder() -> Path:
    """The user's folder for data that can be created again."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ixion"


def local_repository() -> Path:
    home = Path.home() / ".m2"
    settings = home / "settings.xml"
    if settings.is_file():
        match = re.search(r"<localRepository>\s*([^<]+?)\s*</localRepository>", settings.read_text("utf-8"))
        if match:
            return Path(match[1].replace("${user.home}", str(Path.home())))
    return home / "repository"


def how_to_get(coordinates: Iterable[str]) -> str:
    commands = "\n".join(f"mvn dependency:get -Dartifact={coordinate}" for coordinate in coordinates)
    return (
        f"fetch them once with Maven:\n{commands}\nor download the jars and name them: --jars a.jar,b.jar\n"
        f'or, if your mirror lacks them, take the Spark we test with: pip install "pyspark=={TESTED}"'
    )


def _closure(root: Coordinate, repository: Path, with_spark: set[str]) -> dict[str, Path] | None:
    """Artifact -> jar for ROOT and its run-time dependencies; None if any of them is not in REPOSITORY."""
    found: dict[str, Path] = {}
    waiting = [root]
    while waiting:
        coordinate = waiting.pop()
        if coordinate.artifact in found or coordinate.artifact in with_spark:
            continue
        folder = repository.joinpath(*coordinate.group.split("."), coordinate.artifact, coordinate.version)
        stem = f"{coordinate.artifact}-{coordinate.version}"
        jar, pom = folder / f"{stem}.jar", folder / f"{stem}.pom"
        if not jar.is_file() or not pom.is_file():
            return None
        found[coordinate.artifact] = jar
        waiting.extend(_dependencies(pom))
    return found


def _neighbour(wanted: Coordinate, repository: Path, with_spark: set[str]) -> dict[str, Path] | None:
    """The newest of Spark's own jars of the same line that is in REPOSITORY with its dependencies."""
    if wanted.group != "org.apache.spark":
        return None
    line = ".".join(wanted.version.split(".")[:2])
    folder = repository.joinpath(*wanted.group.split("."), wanted.artifact)
    numbers = [
        int(place.name.removeprefix(f"{line}.")) for place in folder.glob(f"{line}.*") if _is_release(place.name)
    ]
    for number in sorted(numbers, reverse=True):
        found = _closure(Coordinate(wanted.group, wanted.artifact, f"{line}.{number}"), repository, with_spark)
        if found is not None:
            return found
    return None


def _is_release(version: str) -> bool:
    return re.fullmatch(r"\d+\.\d+\.\d+", version) is not None


def _dependencies(pom: Path) -> list[Coordinate]:
    """The run-time dependencies. These projects publish plain versions; a version by property would match no file."""
    coordinates = []
    for dependency in Xml.parse(pom).getroot().iterfind(f"{_POM}dependencies/{_POM}dependency"):  # noqa: S314 - local
        text = {child.tag.removeprefix(_POM): (child.text or "").strip() for child in dependency}
        at_run_time = text.get("scope", "compile") in ("compile", "runtime")
        if at_run_time and text.get("optional") != "true" and text.get("type", "jar") == "jar":
            coordinates.append(Coordinate(text["groupId"], text["artifactId"], text.get("version", "")))
    return coordinates


def _matching(versions: dict[str, str], line: str, name: str) -> str:
    if line not in versions:
        known = ", ".join(versions)
        # Not even with jars that the user names: Iceberg 1.11 commits in Spark 4.1 what is only to be staged, so that
        # rows come twice.
        hint = f'pip install "pyspark=={known}.*"; or write parquet'
        raise PipelineError(f"{name} tables are tested with Spark {known}, not with {line}", hint=hint)
    return versions[line]
