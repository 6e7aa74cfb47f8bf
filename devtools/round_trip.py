"""An installation works: a broker starts, `ixion produce` writes a record in each codec, `ixion consume` reads them.

    empty-venv/bin/python devtools/round_trip.py [compiled | interpreted]

The file needs nothing but an installed ixion, so that it runs in an environment that has nothing else: those of
`make dist`, of the tests and of cibuildwheel. With a word, the installation must be of that kind.
"""

from __future__ import annotations

import subprocess
import sys

from ixion.cli.main import build_kind
from ixion.testing import Broker

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def ixion(bootstrap: str, *words: str, said: str | None = None) -> str:
    command = [sys.executable, "-m", "ixion", *words, "-b", bootstrap]
    return subprocess.run(command, input=said, check=True, stdout=subprocess.PIPE, text=True, timeout=60).stdout


def main() -> None:
    wanted = sys.argv[1] if len(sys.argv) > 1 else build_kind()
    if build_kind() != wanted:
        sys.exit(f"ixion is installed {build_kind()}, not {wanted}")
    with Broker() as broker:
        for codec in CODECS:
            ixion(broker.bootstrap, "produce", "trip", "--compression", codec, said=f"by {codec}\n")
        read = ixion(broker.bootstrap, "consume", "trip", "--exit-at-end")
    assert sorted(read.splitlines()) == sorted(f"by {codec}" for codec in CODECS), read
    print(f"python {sys.version.split()[0]}, ixion {build_kind()}: {len(CODECS)} records written and read")


if __name__ == "__main__":
    main()
