"""Prometheus' text format, version 0.0.4: families of samples, written line by line.

    # HELP ixion_connections Open connections.
    # TYPE ixion_connections gauge
    ixion_connections{listener="PLAINTEXT"} 3

Written by hand: importing prometheus-client takes 60 to 90 ms and 7 MB, this module 2 ms and 0.4 MB. It would also need
a second set of counters; here the page reads the counters of the broker's parts when it is requested.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

KIND: Final = "text/plain; version=0.0.4; charset=utf-8"

Number = int | float
Labels = Mapping[str, object]
Samples = Iterable[tuple[Labels, Number]]
NO_LABELS: Final[Labels] = {}


class Exposition:
    def __init__(self) -> None:
        self._lines: list[str] = []

    def counter(self, name: str, meaning: str, samples: Number | Samples) -> None:
        """The name of a counter ends in `_total`, by Prometheus' convention."""
        self._family(name, meaning, "counter", samples)

    def gauge(self, name: str, meaning: str, samples: Number | Samples) -> None:
        self._family(name, meaning, "gauge", samples)

    def more(self, name: str, samples: Samples) -> None:
        """Add samples to the last family, for a long one that is written in portions."""
        for labels, value in samples:
            self._sample(name, labels, value)

    def histogram(
        self, name: str, meaning: str, bounds: Sequence[float], samples: Iterable[tuple[Labels, Sequence[int], float]]
    ) -> None:
        """A sample: labels, the count of each bucket (not cumulative; one bucket more than bounds), and the sum."""
        self._begin(name, meaning, "histogram")
        for labels, buckets, total in samples:
            below = 0
            for bound, count in zip((*map(repr, bounds), "+Inf"), buckets, strict=True):
                below += count
                self._sample(f"{name}_bucket", {**labels, "le": bound}, below)
            self._sample(f"{name}_sum", labels, total)
            self._sample(f"{name}_count", labels, below)

    def text(self) -> str:
        return "\n".join([*self._lines, ""])

    def _family(self, name: str, meaning: str, kind: str, samples: Number | Samples) -> None:
        self._begin(name, meaning, kind)
        self.more(name, [(NO_LABELS, samples)] if isinstance(samples, (int, float)) else samples)

    def _begin(self, name: str, meaning: str, kind: str) -> None:
        self._lines.append(f"# HELP {name} {meaning}")
        self._lines.append(f"# TYPE {name} {kind}")

    def _sample(self, name: str, labels: Labels, value: Number) -> None:
        if labels:
            inside = ",".join([f'{label}="{escaped(text)}"' for label, text in labels.items()])
            self._lines.append(f"{name}{{{inside}}} {value}")
        else:
            self._lines.append(f"{name} {value}")


def escaped(text: object) -> str:
    return str(text).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
