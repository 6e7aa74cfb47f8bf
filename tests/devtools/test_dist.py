"""`make dist` refuses to publish what is not whole."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from devtools.dist import WHEEL, UnsoundError, check_wheel, clean_environment, sources

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
