"""The command line of `make soak-features`; see the package."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Final

from devtools.soak.features.covering import Row, cover
from devtools.soak.features.factors import allows, factors
from devtools.soak.features.faults import DIRECTORIES
from devtools.soak.features.phase import Phase
from devtools.soak.proxy import Proxies
from devtools.soak.small_machine import BROKERS, Machine

MINUTES: Final = 60.0
LEAST_S: Final = 8.0  # with faults
TOGETHER: Final = 6  # cases at a time
SETTINGS: Final = {
    "log.cleaner.backoff.ms": 1_000,
    "log.cleaner.min.compaction.lag.ms": 0,
    "log.retention.check.interval.ms": 2_000,
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 1_000,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 500,
    "offsets.topic.num.partitions": 3,
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
    "log.segment.delete.delay.ms": 1_000,
    "controlled.shutdown.enable": "true",
}


class Featured(Machine):
    """Each broker has two log directories, and is in a rack of its own."""

    def _log_dirs(self, broker: int) -> str:
        return ",".join(str(self.data(broker) / name) for name in DIRECTORIES)

    def _words(self, broker: int) -> list[str]:
        return [*super()._words(broker), "--set", f"broker.rack=r{broker}"]


def run(directory: Path, brokers: int, seconds: float, seed: int, only: set[str]) -> int:
    chance = random.Random(seed)
    rows = cover(factors(brokers), chance, allows)
    by_fault: dict[str, dict[int, Row]] = defaultdict(dict)
    for number, row in enumerate(rows):
        if not only or row["fault"] in only:
            by_fault[row["fault"]][number] = row
    groups = [
        (fault, dict(list(cases.items())[first : first + TOGETHER]))
        for fault, cases in by_fault.items()
        for first in range(0, len(cases), TOGETHER)
    ]
    share_s = max(seconds / len(groups), LEAST_S)
    print(f"{brokers} broker(s): {len(rows)} cases have all pairs; seed {seed}", flush=True)
    (directory / "histories").mkdir(parents=True)
    names = BROKERS if brokers > 1 else BROKERS[:1]
    faults = 0
    with Proxies() as proxies:
        machine = Featured(directory, proxies, None, names, SETTINGS)
        try:
            machine.start()
            for fault, cases in groups:
                begun_s = time.monotonic()
                verdict = Phase(machine, proxies, directory, cases).run(fault, share_s)
                took_s = time.monotonic() - begun_s
                told = f"{verdict.acknowledged} acknowledged, {verdict.read} read, {verdict.struck} times"
                print(f"{fault}: {len(cases)} cases, {told}, {took_s:.0f} s", flush=True)
                kinds = Counter(each.kind for each in verdict.anomalies)
                for anomaly in verdict.anomalies[:20]:
                    print(f"  {anomaly.kind}: {anomaly.detail}", flush=True)
                if kinds:
                    print(f"  {dict(kinds)}", flush=True)
                faults += len(verdict.anomalies)
            machine.stop_brokers()
        finally:
            machine.close()
    for log in sorted(directory.glob("broker-*.log")):
        tracebacks = log.read_text(errors="replace").count("\nTraceback (most recent call last)")
        if tracebacks:
            print(f"  {log.name} has {tracebacks} tracebacks", flush=True)
            faults += tracebacks
    return faults


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m devtools.soak.features", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--minutes", type=float, default=MINUTES, help="with faults, in all; half for each machine")
    parser.add_argument("--brokers", type=int, choices=(1, 3), help="only one broker, or only three")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--faults", default="", help="only cases with these, by comma")
    parser.add_argument("--keep", metavar="DIR", help="leave data, logs and histories here")
    given = parser.parse_args()
    machines = (1, 3) if given.brokers is None else (given.brokers,)
    only = {each for each in given.faults.split(",") if each}
    found = 0
    for brokers in machines:
        with tempfile.TemporaryDirectory(prefix="ixion-features-") as folder:
            directory = Path(given.keep or folder) / f"brokers-{brokers}"
            found += run(directory, brokers, given.minutes * 60 / len(machines), given.seed, only)
    print(f"{found} anomalies" if found else "no anomalies")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
