from __future__ import annotations

from devtools.stalls import LIMIT_MS, stalls


def test_only_processor_time_over_the_limit_counts() -> None:
    long, short = LIMIT_MS + 1, LIMIT_MS
    fine = f"the event loop was held up for 900 ms ({short} ms of processor time) by a request of API key 3"
    bad = f"the event loop was held up for 900 ms ({long} ms of processor time) by a request of API key 3"
    rest = f"{fine}; before that 7 times, for {long} ms of processor time at most"
    ended = f"the event loop was held up 7 times, for {long} ms of processor time at most"
    log = "\n".join(["2026 WARNING ixion: something else took 99999 ms of processor time", fine, bad, rest, ended])
    assert stalls(log) == [bad, rest, ended]
