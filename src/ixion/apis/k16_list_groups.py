"""ListGroups (16), versions 0 to 5: the groups that this broker coordinates.

From version 4 by states (KIP-518), from 5 by types (KIP-848). Case does not matter; an unknown name matches no group.
"""

from __future__ import annotations

from typing import cast

from ixion.apis.call import Call, Handle
from ixion.apis.services import Services
from ixion.apis.sliced import sliced
from ixion.protocol.messages.k16_list_groups import ListGroupsRequest, ListGroupsResponse
from ixion.timer.turns import Steps


def make(services: Services) -> Handle:
    admin = services.groups.admin

    def handle(call: Call) -> Steps[ListGroupsResponse]:
        request = cast(ListGroupsRequest, call.body)
        code, groups = yield from admin.list(request.states_filter, request.types_filter)
        return ListGroupsResponse(error_code=code, groups=groups)

    return sliced(handle)
