"""Programs that tests and benchmarks need: found on the PATH, or installed by the name of their package."""

from __future__ import annotations

import os
import shutil
import subprocess

from devtools.cache import locked

PACKAGES = {
    "java": "openjdk-17-jdk-headless",
    "javac": "openjdk-17-jdk-headless",
    "mvn": "maven",
    "openssl": "openssl",
    "redis-server": "redis-server",
    "rabbitmq-server": "rabbitmq-server",
    "chromium": "chromium",
    "kcat": "kcat",
    "zsh": "zsh",
    "fish": "fish",
    "go": "golang",
    "node": "nodejs",
    "npm": "npm",
    "valgrind": "valgrind",
}


class PartMissing(Exception):  # noqa: N818 - it names a state, and reads well where it is raised
    """A real part is not here and could not be brought; the message says what to install."""


def tool(name: str) -> str:
    """The path of a program; one of PACKAGES is installed when missing, on a Debian machine and as root."""
    found = shutil.which(name)
    if found is not None:
        return found
    if name not in PACKAGES:
        raise PartMissing(f"{name} is not installed")
    return _install(name, PACKAGES[name])


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
