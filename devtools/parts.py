"""What a test says when it needs something real.

    classpath = need("kafka-3.9.1")     # a set of jars, see devtools/jars.py
    kcat = need("kcat")                 # a program, see devtools/programs.py
    need_module("pyspark")              # a Python package
    need_package_index()                # PyPI or what stands in for it, for a test that runs pip

At home a test whose part cannot be had is skipped and says why; with CI=true it fails, so that nothing is left
untested unseen. `make quick` and the interpreted pass of `make test` skip every test that asks for a JVM.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from typing import NoReturn

import pytest

from devtools import jars
from devtools.programs import PartMissing, tool

JAVA = ("java", "javac", "mvn")
jvm_asked: list[str] = []  # JVMs that the current test asked for; read by tests/shares.py


def left_out(kind: str) -> str:
    """Why `make quick` skips a test."""
    return f"{kind}: left to make test"


def need(part: str, *, in_both_passes: bool = False) -> str:
    """The class path of a set of jars, or the path of a program.

    IN_BOTH_PASSES is for tests that the interpreted pass of `make test` must not skip although they need a JVM.
    """
    if part in jars.SETS or part in JAVA:
        if os.environ.get("IXION_QUICK"):
            pytest.skip(left_out("jvm"))
        if os.environ.get("IXION_AGAIN") and not in_both_passes:
            pytest.skip("a JVM takes seconds: once is enough, compiled")
        jvm_asked.append(part)
    try:
        return _bring(part)
    except PartMissing as missing:
        do_without(part, str(missing))


def need_module(name: str) -> None:
    """It can be imported."""
    if find_spec(name) is None:
        do_without(name, f"{name} is not installed")


def need_package_index() -> None:
    """pip can download from its package index."""
    with tempfile.TemporaryDirectory() as place:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", place, "setuptools"]
        ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if ended.returncode:
        do_without("a package index", ended.stdout.strip().rpartition("\n")[2])


def do_without(part: str, why: str) -> NoReturn:
    """Skips the test that runs now; with CI=true it fails."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"needs {part}: {why}", pytrace=False)
    pytest.skip(f"needs {part}: {why}")


def _bring(part: str) -> str:
    if part in jars.SETS:
        tool("java")
        return jars.classpath(part)
    return tool(part)
