"""The installed pyspark, which is not imported."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path


def pyspark() -> tuple[Path, str] | None:
    """Its folder and version; None if it is not installed."""
    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None:
        return None
    home = Path(found.origin).parent
    version = re.search(r"""__version__.*["']([\d.]+)""", (home / "version.py").read_text())
    assert version is not None, f"{home} has no version"
    return home, version[1]


def spark_line() -> tuple[int, int] | None:
    """(4, 0) for Spark 4.0.5; None if pyspark is not installed."""
    found = pyspark()
    if found is None:
        return None
    major, minor = found[1].split(".")[:2]
    return int(major), int(minor)
