"""Compares what producers got acknowledged with what readers found.

An acknowledged record must be found once, at the offset of the acknowledgement. One that was not acknowledged may be
there or not, unless it failed for good. What is checked:

    lost            acknowledged and not found
    moved           found, but not at the offset that the acknowledgement named
    duplicate       one value at two offsets (an error only for idempotent producers: others may retry)
    disordered      of one producer and partition, a later record before an earlier one (idempotent producers only)
    invented        found, but never sent
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class History:
    sent: dict[bytes, int] = field(default_factory=dict)  # value -> its number among all that this producer sent
    told: dict[bytes, tuple[int, int]] = field(default_factory=dict)  # value -> (partition, offset)
    found: list[tuple[int, int, bytes]] = field(default_factory=list)  # partition, offset, value; in order of offsets

    def problems(self, idempotent: bool) -> list[str]:
        places: dict[bytes, list[tuple[int, int]]] = {}
        for partition, offset, value in self.found:
            places.setdefault(value, []).append((partition, offset))
        found = [f"lost: {value!r}, told {place}" for value, place in self.told.items() if value not in places]
        found += [
            f"moved: {value!r} from {place} to {places[value]}"
            for value, place in self.told.items()
            if value in places and place not in places[value]
        ]
        found += [f"invented: {value!r}" for value in places if value not in self.sent]
        if idempotent:
            found += [f"duplicate: {value!r} at {where}" for value, where in places.items() if len(where) > 1]
            found += self._disordered()
        return found

    def _disordered(self) -> list[str]:
        latest: dict[int, int] = {}
        found = []
        for partition, offset, value in self.found:
            number = self.sent.get(value, -1)
            if number < latest.get(partition, -1):
                found.append(f"disordered: {value!r} at {partition}:{offset} after number {latest[partition]}")
            latest[partition] = max(number, latest.get(partition, -1))
        return found
