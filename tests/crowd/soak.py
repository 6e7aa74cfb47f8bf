"""Crowds, each with a broker of its own: `python -m tests.crowd.soak`.

Ten thousand idle connections and 500 slow readers: prints memory and delays. Ten thousand members, a hundred thousand
ids: the same, and fails where bounds are passed (see `soak_ids`). Ten thousand TLS handshakes that never end.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from tests.broker.served import Served
from tests.crowd.crowd import allow_many_files, delays_ms, fill, idle, p99, slow
from tests.crowd.half_open import soak as soak_half_open
from tests.crowd.soak_ids import soak as soak_ids
from tests.hostile.witness import memory_mb


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--idle", type=int, default=10_000)
    parser.add_argument("--slow", type=int, default=500)
    parser.add_argument("--produces", type=int, default=5_000)
    parser.add_argument("--handshakes", type=int, default=10_000)
    parser.add_argument("--members", type=int, default=10_000)
    parser.add_argument("--ids", type=int, default=100_000)
    given = parser.parse_args()
    files = allow_many_files()
    if given.idle:
        soak_connections(min(given.idle, files - 1000), given.slow, given.produces)
    if given.handshakes:
        soak_half_open(min(given.handshakes, files - 1000))
    if given.members:
        soak_ids(min(given.members, files - 1000), given.ids)


def soak_connections(count: int, slow_count: int, produces: int) -> None:
    with tempfile.TemporaryDirectory() as path, Served(Path(path)) as served:
        pid = served.process.pid
        fill(served.bootstrap)

        def report(what: str) -> None:
            delays = delays_ms(served.bootstrap, produces)
            middle = delays[len(delays) // 2]
            peak = memory_mb(pid, "VmHWM")
            print(
                f"{what:40} p50 {middle:6.2f} ms, p99 {p99(delays):7.2f} ms, worst {delays[-1]:7.1f} ms,"
                f" memory {memory_mb(pid)} MB (peak {peak})",
                flush=True,
            )

        report("alone")
        report("alone, again")
        begun = time.perf_counter()
        crowd = idle(served.bootstrap, count)
        print(f"{count} connections made in {time.perf_counter() - begun:.1f} s")
        report(f"with {count} idle connections")
        readers = slow(served.bootstrap, slow_count)
        report(f"and {slow_count} slow readers")
        report("the same, a little later")
        for each in [*crowd, *readers]:
            each.close()
        time.sleep(1)
        report("all gone")
        served.stop_without_stalls()


if __name__ == "__main__":
    main()
