"""Python files beside a pipeline file, for the workers of Spark, which may be on other machines.

A function in a step is sent to the workers by the name of its module, so they must be able to import it, and what it
imports in turn. All modules that were imported from the folder of the pipeline file are sent: files as they are,
packages as archives. Installed packages are not: these the workers must have.
"""

from __future__ import annotations

import atexit
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_shipped: set[tuple[str, str]] = set()  # application, path


def ship_modules(folder: Path, spark: SparkSession) -> None:
    """Sends what was imported from FOLDER, once in the life of a Spark: this is called for every batch."""
    context = spark.sparkContext
    for path in _imported_from(folder.absolute()):
        key = (str(context.applicationId), str(path))
        if key not in _shipped:
            _shipped.add(key)
            context.addPyFile(str(path if path.is_file() else _archive(path)))


def _imported_from(folder: Path) -> list[Path]:
    """Files and packages directly in FOLDER."""
    names = {name.partition(".")[0] for name, module in list(sys.modules.items()) if _is_in(module, folder)}
    found = (path for name in sorted(names) for path in (folder / f"{name}.py", folder / name))
    return [path for path in found if path.is_file() or path.joinpath("__init__.py").is_file()]


def _is_in(module: ModuleType, folder: Path) -> bool:
    """A folder may hold a virtual environment; what is installed there is not in the folder."""
    file = getattr(module, "__file__", None)
    return file is not None and Path(file).is_relative_to(folder) and "site-packages" not in Path(file).parts


def _archive(package: Path) -> Path:
    """In a folder that stays as long as this process: executors fetch the file from there when they need it."""
    folder = Path(tempfile.mkdtemp(prefix="ixion-ship-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    target = folder / f"{package.name}.zip"
    with zipfile.ZipFile(target, "w") as archive:
        for path in sorted(package.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                archive.write(path, path.relative_to(package.parent))
    return target
