"""Java for tests and benchmarks: compiles small programs, runs them."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Sequence
from pathlib import Path

from devtools.cache import made_once
from devtools.programs import tool

# For a JVM that lives for seconds: its second compiler and the threads of its collector cost twice what they save, and
# a fifth of Spark's start is spent on verifying classes that are released jars. Nothing that is measured is run so.
QUICK = (
    *("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto"),
    *("-XX:+UnlockDiagnosticVMOptions", "-XX:-BytecodeVerificationRemote"),
)


def compile_java(source: Path, classpath: str = "") -> Path:
    """The directory with the classes of one source file; compiled again only when source or class path changed."""
    text = source.read_bytes()
    digest = hashlib.sha256(text + b"\0" + classpath.encode()).hexdigest()[:12]

    def make(directory: Path) -> None:
        quick = [f"-J{option}" for option in QUICK]
        command = [tool("javac"), *quick, "-nowarn", "-d", str(directory), "-cp", classpath or ".", str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"javac could not compile {source.name}:\n{done.stderr}")

    return made_once("classes", f"{source.stem}-{digest}", make)


def java_command(main: str, *arguments: str, classpath: str | Path, options: Sequence[str] = ()) -> list[str]:
    """The command line that runs class MAIN."""
    return [tool("java"), *options, "-cp", str(classpath), main, *arguments]


def run_java(
    main: str, *arguments: str, classpath: str | Path, options: Sequence[str] = (), timeout_s: float = 600
) -> str:
    """What class MAIN printed; an exit code other than 0 is an error that shows its last words."""
    command = java_command(main, *arguments, classpath=classpath, options=[*QUICK, *options])
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
    if done.returncode:
        raise RuntimeError(f"{main} ended with {done.returncode}:\n{(done.stdout + done.stderr)[-2000:]}")
    return done.stdout
