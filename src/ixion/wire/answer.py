"""The mark of an answer that comes later."""

from __future__ import annotations

from typing import Final


class Later:
    """The type of `LATER`."""


# Returned by a handler that will answer by itself: what was asked for waits in a purgatory.
LATER: Final = Later()
