"""`make dist`: builds the sdist and, from it, a wheel for this machine, then proves that both install and work.

    make dist ARGS="python3.12 python3.13"      # tries the sdist with these as well
    make dist IXION_REPOSITORY=https://…        # where the project is published: the metadata gets its addresses

Both are built as pip builds them: isolated, with what `[build-system]` in pyproject.toml asks for and nothing else.
cibuildwheel (pyproject.toml, .github/workflows/wheels.yml) does the same for every platform.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Sequence
from email.parser import Parser
from pathlib import Path

from devtools.site import LINK

ROOT = Path(__file__).resolve().parent.parent
ROUND_TRIP = ROOT / "devtools" / "round_trip.py"

# Few files to compile. mypy follows their imports and checks what it finds, and through k12_heartbeat it meets every
# foreign package that it meets in a whole build (a test follows them as well): enough to prove an isolated build.
FEW = (
    "timer/mutex.py language/records/crc.py language/records/codec_*.py language/records/batch.py "
    "broker/apis/k12_heartbeat.py"
)

# Besides the package itself. Tests, benchmarks and tools stay in the repository.
SDIST = {"CHANGELOG.md", "LICENSE", "MANIFEST.in", "PKG-INFO", "README.md", "pyproject.toml", "setup.cfg", "setup.py"}
WHEEL = {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "top_level.txt", "licenses/LICENSE"}


class UnsoundError(Exception):
    """What was built is not what should be published."""


def clean_environment(**variables: str) -> dict[str, str]:
    """As in a terminal that was just opened: nothing of ours is set, and no checkout is on the path."""
    return {name: value for name, value in os.environ.items() if not re.match("IXION_|PYTHON", name)} | variables


def empty_venv(place: Path, python: str = sys.executable) -> str:
    """A new environment of PYTHON without even pip; returns its Python."""
    subprocess.run([python, "-m", "venv", "--without-pip", str(place)], env=clean_environment(), check=True)
    return str(place / "bin" / "python")


def install(python: str, what: Path, **variables: str) -> None:
    """`pip install WHAT` for PYTHON. What pip printed is in the error if it fails."""
    command = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", str(what)]
    ended = subprocess.run(
        command, env=clean_environment(**variables), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if ended.returncode:
        raise UnsoundError(f"pip could not install {what.name}:\n{ended.stdout}")


def try_out(python: str, kind: str) -> str:
    """A round trip through an installation that must be compiled or interpreted; returns what it printed."""
    with tempfile.TemporaryDirectory() as elsewhere:
        return subprocess.check_output(
            [python, "-I", str(ROUND_TRIP), kind], env=clean_environment(), cwd=elsewhere, text=True, timeout=300
        )


def sources() -> set[str]:
    """Of every package: ixion with the files of its page, and pyspark_ixion, which Spark looks for by its name."""
    page = (ROOT / "src/ixion/broker/web/console/static").iterdir()
    files = {str(path.relative_to(ROOT / "src")) for path in [*(ROOT / "src").rglob("*.py"), *page]}
    return files | {"ixion/py.typed"}


def check_sdist(sdist: Path) -> None:
    """It holds every source and nothing that is not needed for an installation."""
    with tarfile.open(sdist) as tar:
        names = {member.name.partition("/")[2] for member in tar.getmembers() if member.isfile()}
    names = {name for name in names if not name.startswith("src/ixion.egg-info/")}
    compare(sdist, names, SDIST | {f"src/{name}" for name in sources()})


def check_wheel(wheel: Path) -> None:
    """It holds every source, its compiled twin where there is one, and what pip needs."""
    with zipfile.ZipFile(wheel) as archive:
        names = {re.sub(r"^ixion-[^/]*\.dist-info/", "", name) for name in archive.namelist()}
    native = {name for name in names if name.endswith((".so", ".pyd"))}
    compare(wheel, names - native, sources() | WHEEL)
    library = [name for name in native if "__mypyc" in name]
    if len(library) != 1:
        raise UnsoundError(f"{wheel.name} has {len(library)} compiled libraries instead of one")
    alone = {name for name in native - set(library) if f"{name.partition('.')[0]}.py" not in names}
    if alone or "ixion/timer/wheel" not in {name.partition(".")[0] for name in native}:
        raise UnsoundError(f"{wheel.name} has other compiled modules than those of setup.py: {sorted(alone)}")


def absolute(readme: str, repository: str) -> str:
    """The README as the description of a package: its links lead to the repository, or are plain text without one."""

    def change(found: re.Match[str]) -> str:
        picture, label, link = found.groups()
        if "://" in link:
            return found[0]
        if not repository:
            return "" if picture else label
        return f"{picture}[{label}]({repository}/{'raw' if picture else 'blob'}/main/{link})"

    parts = re.split(r"(^```.*?^```$)", readme, flags=re.MULTILINE | re.DOTALL)
    return "".join(part if part.startswith("```") else LINK.sub(change, part) for part in parts)


def prepare(place: Path, repository: str) -> None:
    """Copy what a build needs, with the addresses of the project in its metadata."""
    for name in ("CHANGELOG.md", "LICENSE", "MANIFEST.in", "setup.py"):
        shutil.copy(ROOT / name, place / name)
    shutil.copytree(ROOT / "src", place / "src", ignore=shutil.ignore_patterns("*.egg-info", "__pycache__"))
    (place / "README.md").write_text(absolute((ROOT / "README.md").read_text(), repository))
    text = (ROOT / "pyproject.toml").read_text()
    if repository:
        changes = f"{repository}/blob/main/CHANGELOG.md"
        urls = f'[project.urls]\nRepository = "{repository}"\nChangelog = "{changes}"\n\n[project.scripts]'
        text = text.replace("[project.scripts]", urls)
    (place / "pyproject.toml").write_text(text)


def check_metadata(wheel: Path, repository: str) -> None:
    """Every link of the description is absolute, and the addresses of the project are there if they are known."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (each for each in archive.namelist() if each.endswith(".dist-info/METADATA"))
        metadata = Parser().parsestr(archive.read(name).decode())
    description = str(metadata.get_payload())
    prose = re.sub(r"^```.*?^```$", "", description, flags=re.MULTILINE | re.DOTALL)
    relative = [link for _, _, link in LINK.findall(prose) if "://" not in link]
    if relative:
        raise UnsoundError(f"{wheel.name} describes itself with links that lead nowhere: {relative}")
    urls = metadata.get_all("Project-URL") or []
    if bool(urls) != bool(repository):
        raise UnsoundError(f"{wheel.name} has the addresses {urls}; the repository is {repository or 'not known'}")


def compare(built: Path, names: set[str], expected: set[str]) -> None:
    if names != expected:
        raise UnsoundError(f"{built.name} lacks {sorted(expected - names)} and has {sorted(names - expected)} too much")


def prove(wheel: Path, sdist: Path, pythons: Sequence[str]) -> None:
    """Install into empty environments: the wheel, and the sdist compiled and interpreted, for each Python."""
    cases = [(sys.executable, wheel, "compiled", {"IXION_REQUIRE_COMPILED": "1"})]
    for python in (sys.executable, *pythons):
        cases.append((python, sdist, "compiled", {"IXION_REQUIRE_COMPILED": "1", "IXION_COMPILE": FEW}))
        cases.append((python, sdist, "interpreted", {"IXION_PURE": "1"}))
    for python, built, kind, variables in cases:
        with tempfile.TemporaryDirectory() as temporary:
            installed = empty_venv(Path(temporary) / "venv", python)
            install(installed, built, **variables)
            print(f"{built.name}: {try_out(installed, kind)}", end="", flush=True)


def main() -> None:
    """The words of the command line are further Pythons to try the sdist with."""
    out = ROOT / "dist"
    shutil.rmtree(out, ignore_errors=True)
    print("building; compiling takes minutes")
    repository = os.environ.get("IXION_REPOSITORY", "").rstrip("/")
    with tempfile.TemporaryDirectory() as temporary:
        prepare(Path(temporary), repository)
        command = [sys.executable, "-m", "uv", "build", "--quiet", "--python", sys.executable]
        subprocess.run(
            [*command, "--out-dir", str(out), temporary],
            env=clean_environment(IXION_REQUIRE_COMPILED="1"),
            check=True,
        )
    (sdist,), (wheel,) = out.glob("*.tar.gz"), out.glob("*.whl")
    check_metadata(wheel, repository)
    check_sdist(sdist)
    check_wheel(wheel)
    prove(wheel, sdist, sys.argv[1:])


if __name__ == "__main__":
    main()
