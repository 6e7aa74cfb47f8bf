from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from devtools.soak.run import Soak


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m devtools.soak", description="Clients at work while all is killed.")
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--keep", metavar="DIR", help="leave data and histories here")
    options = parser.parse_args()
    print(f"seed {options.seed}")
    with tempfile.TemporaryDirectory(prefix="ixion-soak-") as temporary:
        soak = Soak(Path(options.keep or temporary), options.seconds, options.seed)
        anomalies = soak.run()
    for anomaly in anomalies[:50]:
        print(f"{anomaly.kind}: {anomaly.detail}")
    print(f"{len(anomalies)} anomalies")
    sys.exit(1 if anomalies else 0)


main()
