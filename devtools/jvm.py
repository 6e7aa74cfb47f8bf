"""Java for tests and benchmarks: finds or installs it, compiles small programs, runs them."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from devtools.cache import locked, made_once

# For a JVM that lives for seconds: its second compiler and the threads of its collector cost twice what they save.
# Nothing that is measured is run so.
QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")
PACKAGES = {"java": "openjdk-17-jdk-headless", "javac": "openjdk-17-jdk-headless", "mvn": "maven"}


class PartMissing(Exception):  # noqa: N818 - it names a state, and reads well where it is raised
    """A real part is not here and could not be brought; the message says what to install."""


def tool(name: str) -> str:
    """The path of `java`, `javac` or `mvn`; on a Debian machine and as root it is installed when missing."""
    return shutil.which(name) or _install(name, PACKAGES[name])


def _install(name: str, package: str) -> str:
    apt = shutil.which("apt-get")
    if apt is None or os.geteuid() != 0:
        raise PartMissing(f"{name} is not installed; on Debian or Ubuntu: apt-get install {package}")
    with locked("apt"):
        for arguments in (["update"], ["install", "--yes", "--no-install-recommends", package]):
            if shutil.which(name):
                break
            done = subprocess.run(
                [apt, "-qq", *arguments],
                env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode:
                raise PartMissing(f"apt-get {' '.join(arguments)} failed: {done.stderr.strip()[-500:]}")
    found = shutil.which(name)
    if found is None:
        raise PartMissing(f"{package} was installed but brought no {name}")
    return found


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
