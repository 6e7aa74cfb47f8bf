"""Checks for a new enough Java before Spark is started."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

from ixion.pipelines.errors import PipelineError

OLDEST: Final = 17  # of Spark 4
_HINT: Final = (
    "Debian, Ubuntu: apt-get install openjdk-17-jre-headless · Fedora: dnf install java-17-openjdk-headless · "
    "macOS: brew install openjdk@17 · or set JAVA_HOME to one you have"
)


def need_java() -> str:
    """The java program that Spark will use."""
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if java is None or not os.path.exists(java):
        where = f"JAVA_HOME is {home}, and there is no bin/java in it" if home else "no java was found"
        raise PipelineError(f"Spark needs Java {OLDEST} or newer, and {where}", hint=_HINT)
    version = _version(java)
    if version is not None and version < OLDEST:
        raise PipelineError(f"Spark needs Java {OLDEST} or newer, and {java} is Java {version}", hint=_HINT)
    return java


def _version(java: str) -> int | None:
    """The major version; None if it is unknown: then Spark will find out.

    Every Java has it in a file. Asking the program itself takes as long as starting it, a tenth of a second.
    """
    try:
        found = re.search(
            r'JAVA_VERSION="(?:1\.)?(\d+)', Path(java).resolve().parents[1].joinpath("release").read_text()
        )
    except (OSError, UnicodeDecodeError):
        found = None
    if found:
        return int(found[1])
    done = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)  # noqa: S603 - the user's own
    found = re.search(r'version "(?:1\.)?(\d+)', done.stderr)
    return int(found[1]) if found else None
