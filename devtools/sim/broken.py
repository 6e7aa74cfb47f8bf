"""What a check raises."""

from __future__ import annotations


class Broken(Exception):  # noqa: N818 - it names what was found
    """An invariant does not hold."""

    def __init__(self, invariant: str, text: str) -> None:
        super().__init__(f"{invariant}: {text}")
        self.invariant = invariant
