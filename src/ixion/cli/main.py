"""`ixion`: the command line's entry point.

Only what is asked for is imported: `ixion --version` needs neither typer nor any package of ours, `ixion serve` no
typer, a command only its own module.
"""

from __future__ import annotations

import sys


def build_kind() -> str:
    from ixion.timer import mutex

    return "compiled" if not str(mutex.__file__).endswith(".py") else "interpreted"


def version_line() -> str:
    from ixion import __version__

    return f"ixion {__version__} ({build_kind()})"


def run() -> None:
    words = sys.argv[1:]
    if words == ["--version"]:
        print(version_line())
        return
    if words[:1] == ["serve"]:
        from ixion.cli.serve import main

        sys.exit(main(words[1:]))
    from ixion.cli.app import execute

    sys.exit(execute(words))
