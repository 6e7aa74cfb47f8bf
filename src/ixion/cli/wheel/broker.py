"""`ixion wheel --broker`: the wheel of a running broker, from its page `/wheel`, with the delayed records on it."""

from __future__ import annotations

import http.client
import json
import time
from collections import deque
from typing import Any, Final

from ixion.cli.command import UsageError
from ixion.cli.wheel.reading import WINDOW_SECONDS, LevelReading, Reading
from ixion.timer import LevelSnapshot, TimerSnapshot

PORT: Final = 9644
TIMEOUT_S: Final = 10
SHOWN: Final = 8  # partitions with delayed records


def address_of(text: str) -> tuple[str, int]:
    host, colon, port = text.removeprefix("http://").rstrip("/").rpartition(":")
    if not colon:
        return port, PORT
    if not port.isdigit() or not 0 < int(port) < 65_536:
        raise UsageError(f"--broker {text}: give the address of its metrics, such as 127.0.0.1:{PORT}")
    return host.strip("[]"), int(port)


class BrokerObserver:
    """Samples the page. Keeps the first sample, for the summary, and the last few seconds of them, for the view."""

    def __init__(self, address: str) -> None:
        self._host, self._port = address_of(address)
        self._started = time.monotonic()
        self.page: dict[str, Any] = {}
        self._first = self._sample()
        self._recent = deque([self._first])

    @property
    def title(self) -> str:
        return str(self.page["title"])

    @property
    def elapsed_seconds(self) -> float:
        return time.monotonic() - self._started

    def reading(self) -> Reading:
        sample = self._sample()
        self._recent.append(sample)
        while sample[0] - self._recent[1][0] >= WINDOW_SECONDS:
            self._recent.popleft()
        return read_pages(self._recent[0], sample)

    def summary(self) -> Reading:
        return read_pages(self._first, self._sample())

    def _sample(self) -> tuple[float, dict[str, Any]]:
        connection = http.client.HTTPConnection(self._host, self._port, timeout=TIMEOUT_S)
        where = f"http://{self._host}:{self._port}/wheel"
        try:
            connection.request("GET", "/wheel")
            answer = connection.getresponse()
            data = answer.read()
            if answer.status != 200:
                raise UsageError(f"{where} answers {answer.status}: is that the metrics address of an ixion broker?")
            self.page = json.loads(data)
            timer_of(self.page)
        except (OSError, http.client.HTTPException) as error:
            raise UsageError(f"{where} cannot be read: {error}") from error
        except (ValueError, KeyError, TypeError) as error:
            raise UsageError(f"{where} is not the page of an ixion broker") from error
        finally:
            connection.close()
        return self.elapsed_seconds, self.page

    def lines(self) -> list[str]:
        """The partitions with the most delayed records, one line each."""
        found = sorted(self.page["schedules"], key=lambda each: -each["waiting"])
        made = [line_of(each) for each in found[:SHOWN]]
        if len(found) > SHOWN:
            made.append(f"and {len(found) - SHOWN} partitions more")
        return made or ["no partition here has delayed records"]


def line_of(each: dict[str, Any]) -> str:
    state = "none waits"
    if each["overdue_ms"]:
        state = f"overdue by {each['overdue_ms'] / 1000:,.1f} s"
    elif each["next_ms"] is not None:
        state = f"next look in {each['next_ms'] / 1000:,.1f} s"
    name = f"{each['topic']}-{each['partition']}"
    return f"{name}: {each['waiting']:,} wait, {each['near']:,} in memory, {each['bytes'] / 1e6:,.1f} MB, {state}"


def timer_of(page: dict[str, Any]) -> TimerSnapshot:
    timer = dict(page["timer"])
    levels = tuple(LevelSnapshot(**{**each, "counts": tuple(each["counts"])}) for each in timer.pop("levels"))
    return TimerSnapshot(**timer, levels=levels)


def read_pages(older: tuple[float, dict[str, Any]], newer: tuple[float, dict[str, Any]]) -> Reading:
    """Rates between two samples; lateness is that of delayed records."""
    seconds = max(newer[0] - older[0], 1e-9)
    before, now = timer_of(older[1]), timer_of(newer[1])
    bounds = newer[1]["lateness"]["bounds_ms"]
    late = [b - a for a, b in zip(older[1]["lateness"]["counts"], newer[1]["lateness"]["counts"], strict=True)]

    def rate(old: float, new: float) -> float:
        return max(0.0, (new - old) / seconds)

    def percentile(share: float) -> float:
        left = sum(late) * share
        for count, bound in zip(late, [*bounds, bounds[-1]], strict=True):
            left -= count
            if count and left <= 0:
                return float(bound)
        return 0.0

    earlier = {state.level: state for state in before.levels}
    return Reading(
        elapsed_seconds=newer[0],
        timer=now,
        levels=tuple(
            LevelReading(
                state=state,
                arrived=rate(earlier[state.level].arrived if state.level in earlier else 0, state.arrived),
                fell_in=rate(earlier[state.level].fell_in if state.level in earlier else 0, state.fell_in),
            )
            for state in now.levels
        ),
        added=rate(before.added, now.added),
        ran=rate(before.expired, now.expired),
        cancelled=rate(before.cancelled, now.cancelled),
        fell=rate(before.fell, now.fell),
        late_p50_ms=percentile(0.5),
        late_p99_ms=percentile(0.99),
        late_max_ms=percentile(1.0),
        cpu_percent=100 * rate(older[1]["cpu_seconds"], newer[1]["cpu_seconds"]),
        memory_bytes=newer[1]["memory_bytes"],
    )
