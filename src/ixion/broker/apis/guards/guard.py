"""Checks the rights of a client before the handler of its request, and filters the response after it.

A guard does one of three things:

- refuse the whole request: it returns a response, and the handler is not called;
- refuse a part: it removes that part (`Call.narrow`), and sets `Call.amend` to add the refusals to the response;
- accept the request, and set `Call.amend` to remove topics and groups that the client may not describe.

The module of each API declares its guard beside its handler, as `RIGHTS`, or `make_guard(services)` if the guard needs
parts of the broker. Instead of a guard, `RIGHTS` may be

- `IN_HANDLER`: the handler checks `Call.rights`. Few do: Produce and Fetch, where every copy counts, and those that
  would leak a name if their result were filtered later;
- `EVERYBODY`: no right is needed.

Guards are steps (`ixion.timer.turns`): a request with 100,000 names is checked in turns of the loop.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from ixion.broker.apis.call import Begin, Call, Outcome
from ixion.broker.apis.long_request import settle
from ixion.language.protocol.notation import Struct
from ixion.language.wire.answer import LATER
from ixion.timer.turns import Steps, run_turn

if TYPE_CHECKING:
    from ixion.broker.acl.authorizer import Authorizer
    from ixion.broker.acl.rights import Rights

Guard = Callable[[Call, "Rights"], Steps[Struct | None]]

IN_HANDLER: Final = "in the handler"
EVERYBODY: Final = "everybody"


def guarded(handle: Begin, guard: Guard | None, authorizer: Authorizer) -> Begin:
    """`handle` with its guard. None: the handler checks `Call.rights` itself, or the API needs no right."""

    def start(call: Call) -> Outcome:
        rights = call.rights = rights_of(call, authorizer)
        if guard is None:
            return handle(call)
        steps = guard(call, rights)
        result = run_turn(steps)
        if result is None:
            job = call.request.lane.run(steps, partial(_checked, call, handle))
            if job.pending:
                call.on_gone(job.cancel)
            return LATER
        return handle(call) if result[0] is None else result[0]

    return start


def rights_of(call: Call, authorizer: Authorizer) -> Rights:
    connection = call.request.connection
    rights = connection.rights
    if rights is None:
        rights = connection.rights = authorizer.rights_of(connection.principal, connection.address)
    return rights


def _checked(call: Call, handle: Begin, answer: Struct | None, error: Exception | None) -> None:
    """Called when a check that took several turns is done."""
    request = call.request
    request.on_gone(None)
    if error is not None:
        request.fail(error)
        return
    try:
        settle(call, handle(call) if answer is None else answer)
    except Exception as failure:
        request.fail(failure)
