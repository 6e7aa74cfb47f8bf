"""What a caller must have the right to, before an endpoint or a view looks at anything.

Each endpoint declares one of these, as each API of the protocol declares its guard (`broker.apis.guards`), and the same
rules decide, with the same audit log:

- a `Need`: an operation on the cluster, or on the resource that the path names; without it the answer is 403, whether
  or not there is such a resource;
- `EACH`: it leaves out what the caller may not see (`Caller.sees`), as lists of topics and groups do;
- `OPEN`: nobody has to log in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeVar

from ixion.broker.acl.numbers import CLUSTER, DESCRIBE, DESCRIBE_CONFIGS, GROUP, READ, TOPIC, WRITE
from ixion.broker.web.response import Outlet, RefusedError
from ixion.language.model.acl_names import CLUSTER_NAME
from ixion.timer.turns import Steps

if TYPE_CHECKING:
    from ixion.broker.web.console.caller import Caller

T = TypeVar("T")


class Need(NamedTuple):
    operation: int
    kind: int
    at: str = ""  # the segment of the path with the name of the resource; empty: the cluster


EACH: Final = "each"
OPEN: Final = "open"
Needs = Need | Literal["each", "open"]

SEE_CLUSTER: Final = Need(DESCRIBE, CLUSTER)
SEE_SETTINGS: Final = Need(DESCRIBE_CONFIGS, CLUSTER)
SEE_TOPIC: Final = Need(DESCRIBE, TOPIC, "topic")
READ_TOPIC: Final = Need(READ, TOPIC, "topic")
WRITE_TOPIC: Final = Need(WRITE, TOPIC, "topic")
SEE_GROUP: Final = Need(DESCRIBE, GROUP, "group")
CHANGE_GROUP: Final = Need(READ, GROUP, "group")


def demand(caller: Caller, needs: Needs, at: Mapping[str, str]) -> None:
    """RefusedError without the right."""
    if isinstance(needs, Need):
        caller.demand(needs.operation, needs.kind, at[needs.at] if needs.at else CLUSTER_NAME)


def has(caller: Caller, needs: Needs) -> bool:
    """Whether a link to it leads anywhere, as far as that is known without a name."""
    return not isinstance(needs, Need) or bool(needs.at) or caller.sees(needs.operation, needs.kind, CLUSTER_NAME)


def seen(
    caller: Caller, operation: int, kind: int, found: Iterable[T], name: Callable[[T], str] = str
) -> Steps[list[T]]:
    """Those of `found` that the caller has the right to."""
    kept: list[T] = []
    for each in found:
        if caller.sees(operation, kind, name(each)):
            kept.append(each)
        if caller.rights is not None:
            yield
    return kept


class Watched:
    """The outlet of a stream that ends with the session or the right of its caller."""

    def __init__(self, outlet: Outlet, allowed: Callable[[], bool]) -> None:
        self._outlet = outlet
        self._allowed = allowed

    async def send(self, data: bytes) -> None:
        if not self._allowed():
            raise RefusedError(403, "the session or the right has ended")
        await self._outlet.send(data)
