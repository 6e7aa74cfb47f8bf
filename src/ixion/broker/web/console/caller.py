"""On whose behalf the page acts, and how it asks this broker.

The page has no way of its own to change anything. It connects to a listener of the broker from within the process
(`SocketServer.connect_within`) and sends the requests that any Kafka client would send: the same handlers, guards,
quotas and limits of memory see them, under the address of the person at the browser.

    async with ask_broker(inside) as channel:
        answer = await channel.ask(ApiKey.PRODUCE, version, request)
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

from ixion.broker.acl.numbers import DESCRIBE, TOPIC
from ixion.broker.web.response import RefusedError
from ixion.clients.channel import Channel
from ixion.clients.faults import error_code
from ixion.language.model.acl_names import CLUSTER_NAME, Operation, ResourceKind
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.flaws import EncodeError

if TYPE_CHECKING:
    from ixion.broker.acl.rights import Rights
    from ixion.broker.security.gate import Gate
    from ixion.broker.web.console.inside import Inside
    from ixion.broker.web.console.sessions import Session

CLIENT_ID: Final = "ixion-page"
PATIENCE_S: Final = 40.0  # for an answer; a produce waits for its replicas for `PRODUCE_MS`
PRODUCE_MS: Final = 30_000

# What a client must not do, or not yet. All else is the fault of the request.
STATUS: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: 404,
    ErrorCode.GROUP_ID_NOT_FOUND: 404,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: 403,
    ErrorCode.GROUP_AUTHORIZATION_FAILED: 403,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: 403,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: 409,
    ErrorCode.NOT_COORDINATOR: 409,
    ErrorCode.UNKNOWN_MEMBER_ID: 409,
    ErrorCode.STALE_MEMBER_EPOCH: 409,
}


class Caller(NamedTuple):
    address: str = ""
    principal: str = ""  # empty: nobody has logged in, and nobody has to
    gate: Gate | None = None  # that this principal has passed
    rights: Rights | None = None  # of this principal; None: everything is allowed
    session: Session | None = None

    @property
    def scope(self) -> str:
        """For the names of results that are shared by callers that may see the same."""
        return "" if self.rights is None else f"{self.rights.principal} {self.rights.host} {self.rights.version} "

    def sees(self, operation: int, kind: int, name: str) -> bool:
        return self.rights is None or self.rights.sees(operation, kind, name)

    def describes(self, topic: str) -> bool:
        return self.sees(DESCRIBE, TOPIC, topic)

    def demand(self, operation: int, kind: int, name: str) -> None:
        """RefusedError without the right. The audit log has the refusal."""
        if self.rights is not None and not self.rights.may(operation, kind, name):
            what = f"{ResourceKind(kind).title.lower()} {name[:249]!r}" if name != CLUSTER_NAME else "the cluster"
            raise RefusedError(403, f"{self.principal} has no right to {Operation(operation).title} on {what}")


NOBODY: Final = Caller()


@asynccontextmanager
async def ask_broker(inside: Inside) -> AsyncIterator[Channel]:
    """A connection for the requests of one action. A fault of it becomes a refusal of the action."""
    caller = inside.caller

    async def reach(make: Callable[[], asyncio.Protocol]) -> None:
        ours = inside.connect(caller.address, caller.gate)
        # Not `create_connection`, which on uvloop takes sockets of the Internet only.
        await asyncio.get_running_loop().connect_accepted_socket(make, ours)

    channel = Channel(inside.address, CLIENT_ID, request_timeout_s=PATIENCE_S, reach=reach)
    try:
        yield channel
    except KafkaError as fault:
        raise refusal(fault.code, fault.message or fault.code.explanation) from fault
    except (EncodeError, UnicodeEncodeError) as fault:  # what no request has room for; half of a surrogate pair
        raise RefusedError(400, str(fault)[:300]) from fault
    finally:
        channel.close()


def refusal(code: int, text: str = "") -> RefusedError:
    """A code of the broker as a refusal over HTTP."""
    found = error_code(code)
    status = STATUS.get(found, 503 if found.retriable else 400)
    return RefusedError(status, text or found.explanation)
