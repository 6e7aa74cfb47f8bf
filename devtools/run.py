"""`make run`: a broker from this checkout. It is served interpreted until there is a compiled build of these sources.

A compiled build takes minutes, so the first run does not wait for it: the compiler works in the background, at the
lowest priority, and stops together with the broker. Once it has finished, the next `make run` serves compiled.
The Makefile runs this in the root of the checkout.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

BUILT: Final = ".venv/.built"  # the target of the Makefile
BUILD_LOG: Final = ".venv/build.log"


def is_built() -> bool:
    """Whether the installed copy was built from the sources as they are now."""
    return subprocess.run(["make", "--question", BUILT], env=own_make(), capture_output=True).returncode == 0


def own_make() -> dict[str, str]:
    """The environment without what the outer make left for its children: flags and a job server."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}


@contextmanager
def building() -> Iterator[None]:
    """Run `make build` meanwhile. It is a session of its own, so that the compiler's processes all stop with it."""
    with Path(BUILD_LOG).open("wb") as log:
        build = subprocess.Popen(
            ["nice", "-n", "19", "make", BUILT],
            env=own_make(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield
    finally:
        try:
            os.killpg(build.pid, signal.SIGTERM)
        except ProcessLookupError:
            pass  # it has finished
        build.wait()


def serve(words: list[str]) -> int:
    """`ixion serve` from src/ until it ends. Ctrl-C reaches it from the terminal; a SIGTERM is passed on."""
    signal.signal(signal.SIGINT, lambda *_: None)  # a function and not SIG_IGN, which the broker would inherit
    broker = subprocess.Popen(
        [sys.executable, "-m", "ixion", "serve", *words], env=os.environ | {"PYTHONPATH": str(Path("src").resolve())}
    )
    signal.signal(signal.SIGTERM, lambda *_: broker.terminate())
    return broker.wait()


def main(words: list[str]) -> int:
    if is_built():
        os.execv(sys.executable, [sys.executable, "-m", "ixion", "serve", *words])
    if shutil.which("cc") is None:
        print("running interpreted: there is no C compiler (cc)", flush=True)
        return serve(words)
    print(f"running interpreted; compiling in the background for the next make run ({BUILD_LOG})", flush=True)
    with building():
        return serve(words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
