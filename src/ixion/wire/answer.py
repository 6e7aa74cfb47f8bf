"""What a handler returns: the buffers of a response, nothing, or the mark of an answer that comes later."""

from __future__ import annotations

from typing import Final

from ixion.protocol.codec.sink import Part


class Later:
    """The type of `LATER`."""


# Returned by a handler that will answer by itself: the operation waits in a purgatory.
LATER: Final = Later()

Answer = list[Part] | Later | None
