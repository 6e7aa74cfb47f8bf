"""`ixion`: the command line's entry point.

It imports only what is needed: help, completion and the version need the tables of the commands; a command imports what
it works with.
"""

from __future__ import annotations

import sys


def build_kind() -> str:
    """Whether hot modules are compiled, without importing one."""
    from importlib.machinery import PathFinder

    import ixion

    found = PathFinder.find_spec("mutex", [f"{ixion.__path__[0]}/timer"])
    return "interpreted" if found is None or str(found.origin).endswith(".py") else "compiled"


def version_line() -> str:
    from ixion import __version__

    return f"ixion {__version__} ({build_kind()})"


def run() -> None:
    try:
        from ixion.cli.interrupt import raise_when_ended
        from ixion.cli.streams import prepare_streams

        raise_when_ended()
        prepare_streams()
        from ixion.cli.app import execute

        code = execute(sys.argv[1:])
    except KeyboardInterrupt as error:  # while the command was being imported
        code = 128 + getattr(error, "number", 2)
    sys.exit(code)
