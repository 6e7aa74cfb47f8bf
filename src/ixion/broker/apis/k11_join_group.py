"""JoinGroup (11), versions 0 to 9: a member joins a classic group, or rejoins in a rebalance.

Version 0 has one timeout for everything. From version 4 a new member first gets an id and joins again with it
(KIP-394). From 5 members may be static (KIP-345); from 9 a static leader that returns to a stable group does not assign
again (KIP-814). The reason of version 8 is logged by the broker (KIP-800). The response is sent when every member has
joined.
"""

from __future__ import annotations

from typing import Final, cast

from ixion.broker.apis.call import Call, Handle
from ixion.broker.apis.guards.shapes import in_group
from ixion.broker.apis.repeats import first
from ixion.broker.apis.services import Services
from ixion.broker.coordinators.group.caller import Caller
from ixion.broker.coordinators.group.classic.answers import join_error
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k11_join_group import JoinGroupRequest, JoinGroupResponse
from ixion.language.protocol.notation import Struct
from ixion.language.wire.answer import LATER, Later

REPEATS: Final = {"protocols": first("name")}

NO_PROTOCOL_FROM: Final = 7  # before, "no protocol" is an empty name


def make(services: Services) -> Handle:
    classic = services.groups.classic

    def handle(call: Call) -> Later:
        def respond(answer: JoinGroupResponse) -> None:
            if answer.protocol_name is None and call.version < NO_PROTOCOL_FROM:
                answer = answer.replace(protocol_name="")
            call.respond(answer)

        caller = Caller(version=call.version, client_id=call.client_id, host=f"/{call.address}")
        classic.join(cast(JoinGroupRequest, call.body), caller, respond)
        call.wait_for_others()
        return LATER

    return handle


def _refused_join(code: ErrorCode, version: int) -> Struct:
    answer = join_error(code)
    return answer.replace(protocol_name="") if version < NO_PROTOCOL_FROM else answer


RIGHTS: Final = in_group(_refused_join)
