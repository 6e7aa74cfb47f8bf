"""`make dist` refuses to publish what is not whole."""

from __future__ import annotations

import ast
import sys
import zipfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest

from devtools.dist import FEW, ROOT, WHEEL, UnsoundError, check_wheel, clean_environment, sources

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


def hot(names: Iterable[str]) -> list[Path]:
    """As setup.py reads HOT."""
    return [
        path
        for name in names
        for path in SRC.glob(f"ixion/{name}" if name.endswith(".py") else f"ixion/{name}/**/*.py")
    ]


def test_few_files_lead_to_every_package_that_a_whole_build_meets() -> None:
    tree = ast.parse((ROOT / "setup.py").read_text())
    (names,) = (
        eval(compile(ast.Expression(node.value), "setup.py", "eval"))  # ours, and no literal: it has comprehensions
        for node in tree.body
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "HOT"
    )
    whole = foreign_packages(hot(names))
    assert whole >= {"cramjam", "pyarrow", "re2"}
    assert foreign_packages(hot(FEW.split())) == whole
