"""A plan: one call of an administrator, as a generator that does no I/O.

    def cluster_id(call: Call) -> Plan[str]:
        (answer,) = yield [Ask(ANY, ApiKey.DESCRIBE_CLUSTER, lambda version: DescribeClusterRequest(...))]
        ...

It yields requests, which are sent at the same time, and gets their outcomes in the same order: answers, or the fault
instead. It may also yield a number, which is a pause in seconds, or a `Work`, which is long computing. When the time of
a call is up, a TimedOutError is raised where the plan waits.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from ixion.clients.core.connection import ANY_VERSION
from ixion.language.model.errors import KafkaError
from ixion.language.protocol.notation import Struct
from ixion.language.protocol.registry import ApiKey

if TYPE_CHECKING:
    from ixion.clients.core.client import Client
    from ixion.clients.core.cluster import ClusterState

ANY: Final = -1  # in place of a node id: some broker
CONTROLLER: Final = -2  # the controller


class Ask(NamedTuple):
    """A request to a broker; `make` builds it for the version that both sides speak."""

    target: int
    api: ApiKey
    make: Callable[[int], Struct]
    oldest: int = 0
    newest: int = ANY_VERSION


class Work(NamedTuple):
    """Milliseconds of computing, which an event loop leaves to a thread. The computing object keeps its result, and
    raises its error again when the plan asks for the result."""

    act: Callable[[], object]


Outcome = Struct | KafkaError
T = TypeVar("T")
Step = list[Ask] | float | Work
Plan = Generator[Step, list[Outcome], T]


class Call:
    """What a plan may look at: the known cluster, and the remaining time."""

    def __init__(self, client: Client, deadline_s: float, timeout_s: float, now: Callable[[], float]) -> None:
        self.client = client
        self.deadline_s = deadline_s
        self.timeout_s = timeout_s
        self.reason: KafkaError | None = None  # of the last retry
        self._now = now
        self._failures = 0

    @property
    def cluster(self) -> ClusterState:
        return self.client.cluster

    @property
    def now_s(self) -> float:
        return self._now()

    @property
    def left_ms(self) -> int:
        """The timeout for a request, which ends before we close the connection."""
        left_s = min(self.deadline_s - self._now(), self.client.settings.request_timeout_s)
        return max(int(left_s * 1000), 1)

    def pause_s(self) -> float:
        """Before the next attempt."""
        self._failures += 1
        return self.client.retry.pause_s(self._failures)


def check_lists(plan: Callable[..., object], args: tuple[object, ...], more: dict[str, object]) -> None:
    """TypeError for a text in place of a list: its letters are not what the caller means."""
    code = getattr(plan, "__code__")  # noqa: B009  a compiled function has none, a plan is not compiled
    names = code.co_varnames[1 : code.co_argcount]
    for name, value in (*zip(names, args, strict=False), *more.items()):
        if isinstance(value, str | bytes) and str(plan.__annotations__.get(name, "")).startswith("Iterable["):
            raise TypeError(f"{name} must be a list, not {value!r}")
