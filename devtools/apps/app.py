"""What an application is: how it is brought, and the command that does its scenario."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from devtools.cache import made_once
from devtools.programs import PartMissing, tool

PROGRAMS: Final = Path(__file__).parent / "programs"
TIMEOUT_S: Final = 180.0


@dataclass(frozen=True, slots=True)
class App:
    name: str
    scenario: str
    run: Callable[[str, Path], None]  # bootstrap address, an empty folder; raises if the scenario fails


def execute(command: Sequence[str], bootstrap: str, folder: Path, timeout_s: float = TIMEOUT_S) -> str:
    """What the command printed; RuntimeError with the end of it if it fails."""
    environment = {**os.environ, "BOOTSTRAP": bootstrap, "FOLDER": str(folder)}
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=timeout_s, check=False
        )
    except subprocess.TimeoutExpired as late:
        said = late.stderr or late.stdout or b""
        raise RuntimeError(f"not done after {timeout_s:.0f} s: {said.decode(errors='replace')[-2000:]}") from None
    if done.returncode:
        raise RuntimeError(f"exit code {done.returncode}: {(done.stdout + done.stderr)[-2000:]}")
    return done.stdout


def python_app(name: str, scenario: str, *packages: str) -> App:
    """A program under `programs/`, in a virtual environment of its own."""

    def run(bootstrap: str, folder: Path) -> None:
        home = made_once("venvs", "-".join((name, *packages)).replace("[", "_").replace("]", ""), bring)
        program = PROGRAMS / f"with_{name}.py"
        execute([str(home / "bin" / "python"), str(program)], bootstrap, folder)

    def bring(target: Path) -> None:
        subprocess.run([sys.executable, "-m", "venv", str(target)], check=True)
        pip = [str(target / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        done = subprocess.run([*pip, *packages], capture_output=True, text=True, check=False)
        if done.returncode:
            raise PartMissing(f"pip could not install {' '.join(packages)}: {done.stderr[-500:]}")

    return App(name, scenario, run)


def go_app(name: str, scenario: str, module: str) -> App:
    """A Go program under `programs/NAME/main.go`; `module` is what it is built on, at its version."""

    def run(bootstrap: str, folder: Path) -> None:
        built = made_once("go", module.replace("/", "_").replace("@", "-"), bring)
        execute([str(built / "app")], bootstrap, folder)

    def bring(target: Path) -> None:
        go = tool("go")
        shutil.copy(PROGRAMS / name / "main.go", target / "main.go")
        for words in (["mod", "init", "app"], ["get", module], ["mod", "tidy"], ["build", "-o", "app", "."]):
            done = subprocess.run([go, *words], cwd=target, capture_output=True, text=True, check=False)
            if done.returncode:
                raise PartMissing(f"go {' '.join(words)} failed: {done.stderr[-500:]}")

    return App(name, scenario, run)


def node_app(name: str, scenario: str, package: str) -> App:
    def run(bootstrap: str, folder: Path) -> None:
        home = made_once("node", package.replace("/", "_").replace("@", "-"), bring)
        shutil.copy(PROGRAMS / name / "main.js", home / "main.js")
        execute([tool("node"), str(home / "main.js")], bootstrap, folder)

    def bring(target: Path) -> None:
        npm = tool("npm")
        command = [npm, "install", "--silent", "--no-fund", "--no-audit", "--prefix", str(target), package]
        done = subprocess.run(command, cwd=target, capture_output=True, text=True, check=False)
        if done.returncode:
            raise PartMissing(f"npm could not install {package}: {done.stderr[-500:]}")

    return App(name, scenario, run)
