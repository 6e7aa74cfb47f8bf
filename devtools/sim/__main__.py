"""The command line of the simulator; see the package."""

from __future__ import annotations

import os
import sys

if os.environ.get("PYTHONHASHSEED") != "0":  # the order of sets is part of a run
    os.execve(
        sys.executable, [sys.executable, "-m", "devtools.sim", *sys.argv[1:]], {**os.environ, "PYTHONHASHSEED": "0"}
    )

from devtools.sim import patches

patches.install()  # before anything of ixion is imported

from devtools.sim.command import main  # noqa: E402 - after the clock was replaced

sys.exit(main(sys.argv[1:]))
