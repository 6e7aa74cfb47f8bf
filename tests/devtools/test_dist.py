"""`make dist` refuses to publish what is not whole."""

from __future__ import annotations

import ast
import runpy
import subprocess
import sys
import zipfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from unittest.mock import patch

import pytest

from devtools.dist import (
    FEW,
    ROOT,
    WHEEL,
    UnsoundError,
    absolute,
    check_metadata,
    check_wheel,
    clean_environment,
    prepare,
    sources,
)

INFO = "ixion-1.dist-info"
NATIVE = {"ixion__mypyc.cpython-311.so", "ixion/timer/wheel.cpython-311.so"}


def wheel_of(folder: Path, names: set[str]) -> Path:
    path = folder / "ixion-1-cp311-cp311-linux_x86_64.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(f"{INFO}/{name}" if name in WHEEL else name, "")
    return path


WHOLE = sources() | WHEEL | NATIVE


def test_a_whole_wheel_passes(tmp_path: Path) -> None:
    check_wheel(wheel_of(tmp_path, WHOLE))


@pytest.mark.parametrize(
    ("names", "why"),
    [
        (WHOLE - {"ixion/py.typed"}, r"lacks \['ixion/py.typed'\]"),
        (WHOLE - {"licenses/LICENSE"}, r"lacks \['licenses/LICENSE'\]"),
        (WHOLE | {"tests/test_install.py"}, r"has \['tests/test_install.py'\] too much"),
        (WHOLE - NATIVE, "0 compiled libraries"),
        (WHOLE | {"ixion/gone.cpython-311.so"}, r"other compiled modules.*ixion/gone"),
    ],
)
def test_what_is_missing_or_too_much_is_named(tmp_path: Path, names: set[str], why: str) -> None:
    with pytest.raises(UnsoundError, match=why):
        check_wheel(wheel_of(tmp_path, names))


def test_an_installation_sees_nothing_of_the_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "src")
    monkeypatch.setenv("IXION_PURE", "1")
    seen = clean_environment(IXION_COMPILE="timer")
    assert "PYTHONPATH" not in seen
    assert {name: value for name, value in seen.items() if name.startswith("IXION_")} == {"IXION_COMPILE": "timer"}


SRC = ROOT / "src"
STANDARD = sys.stdlib_module_names | {"annotationlib", "compression"}  # the last two since 3.14


@cache
def imports_of(path: Path) -> set[str]:
    found = set[str]()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def foreign_packages(files: Iterable[Path]) -> set[str]:
    """What is imported by FILES, by what they import of ours, and so on, as mypy follows them."""
    left, seen, found = list(files), set[Path](), set[str]()
    while left:
        path = left.pop()
        if path in seen or not path.is_file():
            continue
        seen.add(path)
        for name in imports_of(path):
            first, *rest = name.split(".")
            if first != "ixion":
                found.add(first)
                continue
            above = [SRC.joinpath(first, *rest[:depth]) for depth in range(len(rest) + 1)]
            left += (place for each in above for place in (each.with_suffix(".py"), each / "__init__.py"))
    return found - STANDARD


def test_few_files_lead_to_every_package_that_a_whole_build_meets(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = foreign_packages(hot_modules(monkeypatch))
    assert whole >= {"cramjam", "pyarrow", "re2"}
    monkeypatch.setenv("IXION_COMPILE", FEW)
    assert foreign_packages(hot_modules(monkeypatch)) == whole


def hot_modules(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("IXION_PURE", "1")
    with patch("setuptools.setup"):
        return [ROOT / name for name in runpy.run_path("setup.py")["hot_modules"]()]


def test_the_description_has_absolute_links_only() -> None:
    readme = "[a](docs/cli.md) ![p](docs/p.svg) [k](https://kafka.apache.org/)\n```\n[c](docs/x.md)\n```\n"
    there = "https://example.org/ixion"
    assert absolute(readme, there).splitlines()[0] == (
        f"[a]({there}/blob/main/docs/cli.md) ![p]({there}/raw/main/docs/p.svg) [k](https://kafka.apache.org/)"
    )
    assert absolute(readme, "").splitlines() == ["a  [k](https://kafka.apache.org/)", "```", "[c](docs/x.md)", "```"]


@pytest.mark.parametrize("repository", ["", "https://example.org/ixion"])
def test_metadata_of_what_is_prepared(repository: str, tmp_path: Path) -> None:
    """As setuptools writes it, without compiling."""
    source = tmp_path / "source"
    source.mkdir()
    prepare(source, repository)
    code = "from setuptools import build_meta; print(build_meta.prepare_metadata_for_build_wheel('.'))"
    environment = clean_environment(IXION_PURE="1")
    subprocess.run([sys.executable, "-c", code], cwd=source, env=environment, check=True, capture_output=True)
    wheel = tmp_path / "ixion-1-py3-none-any.whl"
    (metadata,) = source.glob("*.dist-info/METADATA")
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("ixion-1.dist-info/METADATA", metadata.read_text())
    check_metadata(wheel, repository)
    with pytest.raises(UnsoundError, match="the repository is"):
        check_metadata(wheel, "" if repository else "https://example.org")
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("ixion-1.dist-info/METADATA", f"{metadata.read_text()}\n[x](docs/gone.md)\n")
    with pytest.raises(UnsoundError, match="lead nowhere"):
        check_metadata(wheel, repository)
