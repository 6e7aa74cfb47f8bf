"""Whose work a request is, when the time of worker threads is shared out (`replica.fair_workers`)."""

from __future__ import annotations

from ixion.broker.apis.call import Call
from ixion.broker.security.principal import ANONYMOUS


def owner_of(call: Call) -> str:
    """The principal's, or, of clients without a login, the address's."""
    principal = call.request.connection.principal
    return principal if principal != ANONYMOUS else call.address
