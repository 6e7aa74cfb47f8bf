from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from devtools.jvm import compile_java, run_java
from devtools.parts import need, need_module
from devtools.programs import PartMissing, tool

pytestmark = pytest.mark.skipif(
    os.environ.get("IXION_EXPECT") == "interpreted", reason="the same in both runs; done in the compiled one"
)


def test_a_program_is_compiled_once_and_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need("javac")
    monkeypatch.setenv("IXION_CACHE", str(tmp_path / "cache"))
    source = tmp_path / "Hello.java"
    source.write_text('class Hello { public static void main(String[] a) { System.out.println("hello " + a[0]); } }')
    classes = compile_java(source)
    assert compile_java(source) == classes
    assert run_java("Hello", "wheel", classpath=classes) == "hello wheel\n"

    source.write_text("class Hello { public static void main(String[] a) { System.exit(3); } }")
    assert compile_java(source) != classes
    with pytest.raises(RuntimeError, match="Hello ended with 3"):
        run_java("Hello", classpath=compile_java(source))


def test_a_program_that_does_not_compile_shows_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need("javac")
    monkeypatch.setenv("IXION_CACHE", str(tmp_path / "cache"))
    source = tmp_path / "Wrong.java"
    source.write_text("class Wrong { int x = y; }")
    with pytest.raises(RuntimeError, match="cannot find symbol"):
        compile_java(source)


def test_without_java_and_without_root_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(PartMissing, match="apt-get install openjdk-17-jdk-headless"):
        tool("java")


def test_a_missing_part_skips_at_home_and_fails_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no-such-program is not installed"):
        need("no-such-program")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="no-such-program is not installed"):
        need("no-such-program")


def test_so_does_a_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    need_module("pytest")
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no_such_package is not installed"):
        need_module("no_such_package")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="no_such_package is not installed"):
        need_module("no_such_package")
