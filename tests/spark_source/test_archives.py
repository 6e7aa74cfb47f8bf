"""Spark's own archives are read once in a worker; those of the user as often as Spark asks for it."""

from __future__ import annotations

import importlib
import sys
import zipimport
from pathlib import Path
from zipfile import ZipFile

import pytest

from ixion.spark.archives import is_of_spark, spare_archives

SPARKS = ("pyspark.zip", "py4j-0.10.9.9-src.zip", "spark-core_2.13-4.0.0.jar")


def archive(path: Path, package: str) -> str:
    with ZipFile(path, "w") as file:
        file.writestr(f"{package}/__init__.py", "")
        file.writestr(f"{package}/later.py", "FOUND = True")
    return str(path)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The archives whose directories were read."""
    found: list[str] = []
    original = zipimport._read_directory  # type: ignore[attr-defined]

    def read(path: str) -> object:
        found.append(Path(path).name)
        return original(path)

    monkeypatch.setattr(zipimport, "_read_directory", read)
    return found


def test_the_next_task_does_not_read_them_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reads: list[str]
) -> None:
    monkeypatch.setattr(sys, "path_importer_cache", dict(sys.path_importer_cache))
    for number, name in enumerate((*SPARKS, "mine.zip")):
        monkeypatch.syspath_prepend(archive(tmp_path / name, f"archived{number}"))
    packages = [f"archived{number}" for number in range(4)]
    for package in packages:
        importlib.import_module(package)
    try:
        spare_archives()
        reads.clear()
        importlib.invalidate_caches()
        assert set(reads) <= {"mine.zip"}
        for package in packages:
            assert importlib.import_module(f"{package}.later").FOUND
        assert set(reads) <= {"mine.zip"}
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] in packages]:
            del sys.modules[name]


def test_archives_of_the_user_are_no_concern_of_ours() -> None:
    assert all(is_of_spark(f"/opt/spark/{name}") for name in SPARKS)
    assert not any(
        is_of_spark(f"/opt/{name}") for name in ("mine.zip", "mine.jar", "my-pyspark.zip", "pyspark.zip.egg")
    )
