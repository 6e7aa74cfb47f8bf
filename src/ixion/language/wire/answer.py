"""The result of a handler: the buffers of a response, None, or LATER for a response that comes later."""

from __future__ import annotations

from typing import Final

from ixion.language.protocol.codec.sink import Part


class Later:
    """The type of `LATER`."""


# Returned by a handler that will respond itself: its operation waits in a purgatory.
LATER: Final = Later()

Answer = list[Part] | Later | None
