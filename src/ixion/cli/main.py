"""`ixion`: the command line's entry point.

Only what is asked for is imported: help, completion and the version need the tables of the commands, a command what it
works with.
"""

from __future__ import annotations

import sys


def build_kind() -> str:
    """What an import of a hot module would find, found without importing it."""
    from importlib.machinery import PathFinder

    import ixion

    found = PathFinder.find_spec("mutex", [f"{ixion.__path__[0]}/timer"])
    return "interpreted" if found is None or str(found.origin).endswith(".py") else "compiled"


def version_line() -> str:
    from ixion import __version__

    return f"ixion {__version__} ({build_kind()})"


def run() -> None:
    try:
        from ixion.cli.streams import prepare_streams

        prepare_streams()
        from ixion.cli.app import execute

        code = execute(sys.argv[1:])
    except KeyboardInterrupt:  # while the command was being imported
        code = 130
    sys.exit(code)
