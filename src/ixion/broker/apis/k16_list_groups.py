"""ListGroups (16), versions 0 to 5: the groups that this broker coordinates.

From version 4 by states (KIP-518), from 5 by types (KIP-848). Case does not matter; an unknown name matches no group.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from ixion.broker.acl.numbers import DESCRIBE, GROUP
from ixion.broker.apis.call import Call, Handle
from ixion.broker.apis.guards.shapes import filtered
from ixion.broker.apis.repeats import once
from ixion.broker.apis.services import Services
from ixion.language.protocol.messages.k16_list_groups import ListGroupsRequest, ListGroupsResponse
from ixion.language.protocol.notation import Struct
from ixion.timer.turns import Steps

if TYPE_CHECKING:
    from ixion.broker.acl.rights import Rights

REPEATS: Final = {"states_filter": once(), "types_filter": once()}


def make(services: Services) -> Handle:
    admin = services.groups.admin

    def handle(call: Call) -> Steps[ListGroupsResponse]:
        request = cast(ListGroupsRequest, call.body)
        code, groups = yield from admin.list(request.states_filter, request.types_filter)
        return ListGroupsResponse(error_code=code, groups=groups)

    return handle


def guard(call: Call, rights: Rights) -> Steps[Struct | None]:
    """The groups that the client may describe; all of them with DESCRIBE on the cluster."""
    yield
    if not rights.sees_in_cluster(DESCRIBE):
        call.amend = filtered("groups", lambda group: rights.sees(DESCRIBE, GROUP, group.group_id))
    return None


RIGHTS: Final = guard
