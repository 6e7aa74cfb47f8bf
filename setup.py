"""Compiles the hot packages with mypyc. Whatever stands in the way, the same files are installed and run interpreted.

Environment variables:
  IXION_PURE              install interpreted, without trying to compile
  IXION_REQUIRE_COMPILED  fail instead of installing interpreted
  IXION_COMPILE           the packages and files to compile, separated by spaces, instead of those marked
  IXION_OPTIMIZE          the C compiler's level, 0 to 3, instead of 3: make test takes 1
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

# What is compiled says so in a line of its own: a module for itself, the `__init__.py` of a package for all of it. That
# is what every request, record, task and operation goes through: the timer and the purgatory; the language; of the
# broker, the way of a request, a produce and a fetch by network, apis, replica and log, recovery and compaction, the
# rules of groups (transactions would gain 10 % only) and delayed records; of the clients, all that decides. The rest is
# start-up and glue, where compiling buys nothing.
MARK = re.compile(r"^# (This module is|The modules of this package are) compiled: see setup\.py\.$", re.MULTILINE)
SOURCE = Path("src/ixion")

# setuptools runs this file once for each question of pip (requirements, metadata, sdist, wheel). Only these commands
# need the extensions; mypyc takes half a minute to make them. An editable installation stays interpreted.
BUILDING = {"bdist_wheel", "build", "build_ext", "install"}

# The build checks types, without which there is no compiling, but not our style rules: a newer mypy may have more of
# these, and a stranger's installation is not the place to learn that. `make check` is.
# What is missing there (pyarrow, which is an extra) has no types then.
FLAGS = (
    *("--config-file=", "--explicit-package-bases"),
    *("--disable-error-code=import-untyped", "--disable-error-code=import-not-found"),
)


def hot_modules() -> list[str]:
    """A name in IXION_COMPILE is a package, all of it, or one file."""
    names = os.environ.get("IXION_COMPILE", "").split() or marked()
    files = [
        path
        for name in names
        for path in (SOURCE.glob(name) if name.endswith(".py") else SOURCE.glob(f"{name}/**/*.py"))
    ]
    return sorted({str(path) for path in files if path.name != "__init__.py"})


def marked() -> list[str]:
    files = [path.relative_to(SOURCE) for path in SOURCE.rglob("*.py") if MARK.search(path.read_text("utf-8"))]
    return [(path.parent if path.name == "__init__.py" else path).as_posix() for path in files]


def give_up(error: BaseException) -> None:
    """Go on interpreted after `error`, unless the caller wants a compiled build or nothing."""
    if os.environ.get("IXION_REQUIRE_COMPILED"):
        raise error
    print(f"ixion: installing interpreted, because compiling failed: {error!r}", file=sys.stderr)


class OptionalBuild(build_ext):
    """A compiler that is missing or fails leaves a working, interpreted installation."""

    def finalize_options(self) -> None:
        super().finalize_options()
        # One large module has all the code, a hundred small ones lead to it: they are compiled beside it.
        self.parallel = self.parallel or os.cpu_count()

    def run(self) -> None:
        try:
            super().run()
        except Exception as error:
            give_up(error)
            for extension in self.extensions:
                Path(self.get_ext_fullpath(extension.name)).unlink(missing_ok=True)
            self.extensions = []


def extensions() -> Sequence[Extension]:
    if os.environ.get("IXION_PURE") or BUILDING.isdisjoint(sys.argv):
        return []
    os.environ["MYPYPATH"] = "src"
    try:
        from mypyc.build import mypycify

        level = os.environ.get("IXION_OPTIMIZE") or "3"
        # One C file a module: gcc takes a third of the time that one file with everything takes, which is not faster.
        built = mypycify(
            [*FLAGS, *hot_modules()],
            opt_level=level,
            debug_level="0",
            group_name="ixion",
            multi_file=True,
        )
    except (Exception, SystemExit) as error:  # mypyc ends the process when mypy finds an error
        give_up(error)
        return []
    modules = [module for module in built if isinstance(module, Extension)]
    for module in modules:
        # mypyc asks for -Werror; a newer compiler has newer warnings, and those are no reason to run interpreted.
        module.extra_compile_args = [arg for arg in module.extra_compile_args if arg != "-Werror"]
        if sys.platform != "win32":
            # Functions that nobody outside can replace are inlined and called directly, not through a jump table.
            module.extra_compile_args.append("-fvisibility=hidden")
    return modules


setup(ext_modules=extensions(), cmdclass={"build_ext": OptionalBuild})
