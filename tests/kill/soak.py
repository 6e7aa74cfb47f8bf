"""The same for longer: `python -m tests.kill.soak --rounds 20`, or `make soak-kill`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.kill.rounds import FAULTS, live_through

MODES: dict[str, dict[str, Any]] = {
    "acks=1": {"acks": 1},
    "acks=all": {"acks": "all"},
    "idempotent": {"enable.idempotence": True},
    "idempotent, zstd": {"enable.idempotence": True, "compression.type": "zstd"},
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20, help="lives of each broker")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    worst = 0
    for mode, settings in MODES.items():
        for name, fault in FAULTS.items():
            print(f"{mode}, fault: {name}", flush=True)
            with tempfile.TemporaryDirectory() as path:
                history, failed = live_through(
                    Path(path), given.rounds, settings, fault, seed=given.seed, said=lambda line: print(f"  {line}")
                )
            problems = [*failed, *history.problems("enable.idempotence" in settings)]
            told, found = len(history.told), len(history.found)
            print(f"  {told} acknowledged, {found} found, {len(problems)} problems", flush=True)
            for problem in problems[:20]:
                print(f"    {problem}")
            worst = max(worst, len(problems))
    return min(worst, 1)


if __name__ == "__main__":
    sys.exit(main())
