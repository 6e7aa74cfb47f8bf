"""Installing as pip does it: isolated; compiled where that is possible, interpreted where anything is in the way."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from devtools.dist import FEW, ROOT, check_sdist, clean_environment, empty_venv, install, try_out
from devtools.parts import do_without, need_package_index
from ixion.cli.main import build_kind

pytestmark = pytest.mark.skipif(build_kind() == "interpreted", reason="the same in both runs; done in the compiled one")

SINCE_3_14 = ("annotationlib", "compression")  # of the standard library
SMALL = "timer/mutex.py"  # one file to compile, so that a build takes seconds


def hook(name: str, checkout: Path, out: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """One question of pip to the build, asked without isolation: what the tests run on has all that it needs."""
    code = f"import sys; from setuptools import build_meta; build_meta.{name}(sys.argv[1])"
    return subprocess.run(
        [sys.executable, "-c", code, str(out)],
        cwd=checkout,
        env=clean_environment(**variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=250,
    )


def copied(tmp_path: Path, folder: str, *files: str) -> Path:
    """A checkout with one folder of the sources and some files; beside it, a folder for what is built."""
    copy = tmp_path / "checkout"
    shutil.copytree(ROOT / folder, copy / folder, ignore=shutil.ignore_patterns("*.egg-info", "__pycache__"))
    for name in ("CHANGELOG.md", "LICENSE", "MANIFEST.in", "README.md", "pyproject.toml", "setup.py", *files):
        shutil.copy(ROOT / name, copy / name)
    (tmp_path / "out").mkdir()
    return copy


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    return copied(tmp_path, "src")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The timer only, and what it imports: copying and packing the rest takes longer than compiling."""
    return copied(
        tmp_path, "src/ixion/timer", *(f"src/ixion/{name}" for name in ("__init__.py", "_native.py", "py.typed"))
    )


def compiled_files(out: Path) -> list[str]:
    (wheel,) = out.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert "ixion/timer/mutex.py" in archive.namelist()
        return [name for name in archive.namelist() if name.endswith((".so", ".pyd"))]


@pytest.mark.timeout(900)  # it downloads and compiles
def test_pip_installs_the_sdist_compiled_in_an_isolated_build(whole: Path, tmp_path: Path) -> None:
    """An empty environment, and a build that sees only what [build-system] asks for."""
    need_package_index()
    out = tmp_path / "out"
    made = hook("build_sdist", whole, out)
    assert made.returncode == 0, made.stdout
    (sdist,) = out.glob("*.tar.gz")
    check_sdist(sdist)
    python = empty_venv(tmp_path / "venv")
    install(python, sdist, IXION_COMPILE=FEW, IXION_REQUIRE_COMPILED=shutil.which("cc") or "")
    assert "5 records written and read" in try_out(python, "compiled" if shutil.which("cc") else "interpreted")


def test_a_wheel_is_compiled_where_there_is_a_compiler(checkout: Path, tmp_path: Path) -> None:
    if shutil.which("cc") is None:
        do_without("a C compiler", "cc is not installed")
    ended = hook("build_wheel", checkout, tmp_path / "out", IXION_COMPILE=SMALL, IXION_REQUIRE_COMPILED="1")
    assert ended.returncode == 0, ended.stdout
    assert len(compiled_files(tmp_path / "out")) == 2, "the module, and the library that it is in"


def no_compiler(checkout: Path) -> dict[str, str]:
    return {"CC": str(checkout / "no-such-compiler")}


def no_mypyc(checkout: Path) -> dict[str, str]:
    return instead_of_mypyc(checkout, "raise ImportError('no mypyc')")


def newer_mypyc(checkout: Path) -> dict[str, str]:
    return instead_of_mypyc(checkout, "def mypycify(paths): ...")


def crashing_mypyc(checkout: Path) -> dict[str, str]:
    return instead_of_mypyc(checkout, "def mypycify(*args, **named): raise AssertionError('a bug')")


def type_error(checkout: Path) -> dict[str, str]:
    with (checkout / "src/ixion" / SMALL).open("a") as source:
        source.write("\n_NOT_A_NUMBER: int = 'x'\n")
    return {}


def broken_c(checkout: Path) -> dict[str, str]:
    return {"CFLAGS": "-include no-such-header.h"}


FAULTS = [no_compiler, no_mypyc, newer_mypyc, crashing_mypyc, type_error, broken_c]


def instead_of_mypyc(checkout: Path, code: str) -> dict[str, str]:
    stub = checkout / "stub" / "mypyc"
    stub.mkdir(parents=True)
    (stub / "__init__.py").touch()
    (stub / "build.py").write_text(f"{code}\n")
    return {"PYTHONPATH": str(stub.parent)}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_whatever_keeps_it_from_compiling_it_installs_interpreted(
    checkout: Path, tmp_path: Path, fault: object
) -> None:
    assert callable(fault)
    variables = fault(checkout) | {"IXION_COMPILE": SMALL}
    ended = hook("build_wheel", checkout, tmp_path / "out", **variables)
    assert ended.returncode == 0, ended.stdout
    assert "installing interpreted, because compiling failed" in ended.stdout
    assert compiled_files(tmp_path / "out") == []
    required = hook("build_wheel", checkout, tmp_path / "out", **variables, IXION_REQUIRE_COMPILED="1")
    assert required.returncode != 0, "an interpreted wheel must not pass for a compiled one"


def test_interpreted_on_request(checkout: Path, tmp_path: Path) -> None:
    ended = hook("build_wheel", checkout, tmp_path / "out", IXION_PURE="1")
    assert ended.returncode == 0, ended.stdout
    assert [wheel.name[-12:] for wheel in (tmp_path / "out").glob("*.whl")] == ["none-any.whl"]


def test_metadata_needs_no_compiler(checkout: Path, tmp_path: Path) -> None:
    """pip asks for requirements and metadata first; each would cost half a minute of mypyc."""
    variables = instead_of_mypyc(checkout, "raise SystemExit('mypyc was asked')") | {"IXION_REQUIRE_COMPILED": "1"}
    for name in ("build_sdist", "prepare_metadata_for_build_wheel"):
        ended = hook(name, checkout, tmp_path / "out", **variables)
        assert ended.returncode == 0, ended.stdout


def test_the_build_requires_what_the_compiled_packages_import() -> None:
    """mypyc checks their types; one that is missing makes every stranger's installation an interpreted one."""
    # Nothing that is compiled imports these.
    interpreted = ("broker/startup", "broker/web", "cli", "pipelines", "spark", "testing")
    optional = {"cryptography", "jwt", "pyarrow"}  # of extras: the build goes on without their types
    imported: set[str] = set()
    for path in (ROOT / "src" / "ixion").rglob("*.py"):
        if not path.relative_to(ROOT / "src" / "ixion").as_posix().startswith(interpreted):
            imported |= imports_of(ast.parse(path.read_text()))
    foreign = imported - optional - set(sys.stdlib_module_names) - {"ixion", "mypy_extensions", *SINCE_3_14}
    required = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    assert "--disable-error-code=import-not-found" in (ROOT / "setup.py").read_text()
    assert foreign <= {"re2" if name.startswith("google-re2") else re.split(r"[^\w]", name)[0] for name in required}


def imports_of(tree: ast.AST) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").partition(".")[0])
    return found
