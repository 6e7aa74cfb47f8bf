"""The command line of the simulator; see the package."""

from __future__ import annotations

import os
import sys
from pathlib import Path

SOURCES = str(Path(__file__).parents[2] / "src")
# A compiled class cannot be changed, so a broken broker runs from the sources.
NEEDS_SOURCES = ("--mutant", "--mutants", "--quick", "--sources")


def wanted() -> dict[str, str]:
    """The environment of a run. The order of sets is part of it."""
    paths = [each for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each]
    if any(argument.split("=")[0] in NEEDS_SOURCES for argument in sys.argv[1:]) and SOURCES not in paths:
        paths.insert(0, SOURCES)
    return {**os.environ, "PYTHONHASHSEED": "0", "PYTHONPATH": os.pathsep.join(paths)}


if wanted() != {**os.environ, "PYTHONPATH": os.environ.get("PYTHONPATH", "")}:
    os.execve(sys.executable, [sys.executable, "-m", "devtools.sim", *sys.argv[1:]], wanted())

from devtools.sim import patches  # noqa: E402 - as the right process only

patches.install()  # before anything of ixion is imported

from devtools.sim.command import main  # noqa: E402 - after the clock was replaced

sys.exit(main(sys.argv[1:]))
