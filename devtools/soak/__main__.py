from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from devtools.soak.broken import FAULTS
from devtools.soak.run import CLIENTS, Soak


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m devtools.soak", description="Clients at work while all is killed.")
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--keep", metavar="DIR", help="leave data and histories here")
    parser.add_argument("--broken", choices=FAULTS, help="serve by a broker with this fault, which must be found")
    parser.add_argument("--clients", choices=CLIENTS, default="confluent", help="whose clients write, copy and read")
    options = parser.parse_args()
    print(f"seed {options.seed}")
    with tempfile.TemporaryDirectory(prefix="ixion-soak-") as temporary:
        soak = Soak(Path(options.keep or temporary), options.seconds, options.seed, options.broken, options.clients)
        anomalies = soak.run()
    for anomaly in anomalies[:50]:
        print(f"{anomaly.kind}: {anomaly.detail}")
    found = Counter(anomaly.kind for anomaly in anomalies)
    print(f"{len(anomalies)} anomalies: {dict(found)}" if found else "no anomalies")
    if options.broken is None:
        sys.exit(1 if anomalies else 0)
    fault = FAULTS[options.broken]
    is_found = not fault.shows_as.isdisjoint(found)
    print(f"{'found' if is_found else 'NOT FOUND'}: a broker that {fault.what}; shows as {sorted(fault.shows_as)}")
    sys.exit(0 if is_found else 1)


main()
