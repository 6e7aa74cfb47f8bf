"""Places in a topic, as options name them. `ixion.clients.admin.starts` resolves them."""

from __future__ import annotations

from ixion.cli.command import UsageError
from ixion.clients.starts import Start, parse_start


def place(text: str) -> Start:
    try:
        return parse_start(text)
    except ValueError as error:
        raise UsageError(str(error)) from None
