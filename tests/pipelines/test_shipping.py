"""Python files beside a pipeline file are sent to the workers, with the modules and packages that they import."""

from __future__ import annotations

import importlib
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from ixion.pipelines.spark.shipped_modules import ship_modules


class FakeSpark:
    """A session and its context in one, with the names and the contents of what was sent."""

    applicationId = "app-1"  # noqa: N815 - Spark's name

    def __init__(self) -> None:
        self.sent: dict[str, list[str]] = {}

    @property
    def sparkContext(self) -> FakeSpark:  # noqa: N802
        return self

    def addPyFile(self, path: str) -> None:  # noqa: N802
        file = Path(path)
        assert file.name not in self.sent, "sent twice"
        self.sent[file.name] = zipfile.ZipFile(file).namelist() if file.suffix == ".zip" else []


def test_what_was_imported_beside_the_file_is_sent_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shipped_step.py").write_text("import shipped_helper\nimport shipped_package.inner\nimport json\n")
    (tmp_path / "shipped_helper.py").touch()
    (tmp_path / "shipped_unused.py").touch()
    for folder in (tmp_path / "shipped_package", tmp_path / "venv" / "site-packages" / "shipped_installed"):
        folder.mkdir(parents=True)
        (folder / "__init__.py").touch()
    (tmp_path / "shipped_package" / "inner.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.syspath_prepend(str(tmp_path / "venv" / "site-packages"))
    before = set(sys.modules)
    importlib.import_module("shipped_step")
    importlib.import_module("shipped_installed")
    spark: Any = FakeSpark()
    ship_modules(tmp_path, spark)
    ship_modules(tmp_path, spark)  # of the next batch
    for name in set(sys.modules) - before:
        del sys.modules[name]
    assert sorted(spark.sent) == ["shipped_helper.py", "shipped_package.zip", "shipped_step.py"]
    assert spark.sent["shipped_package.zip"] == ["shipped_package/__init__.py", "shipped_package/inner.py"]
