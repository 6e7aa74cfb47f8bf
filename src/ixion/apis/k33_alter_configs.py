"""AlterConfigs, 0 to 2: settings of topics, brokers and groups are replaced; what is left out is set no more.

Older than IncrementalAlterConfigs, which clients prefer because it cannot undo what others have set. Levels of loggers
are not changed this way.
"""

from __future__ import annotations

from typing import cast

from ixion.apis.call import Call, Handle
from ixion.apis.config_edit import ConfigEditor, Edit
from ixion.apis.services import Services
from ixion.apis.unhurried import unhurried
from ixion.protocol.messages.k33_alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)


def make(services: Services) -> Handle:
    editor = ConfigEditor(services)

    async def handle(call: Call) -> AlterConfigsResponse:
        request = cast(AlterConfigsRequest, call.body)
        resources = [
            (each.resource_type, each.resource_name, [Edit(name=to.name, value=to.value) for to in each.configs])
            for each in request.resources
        ]
        outcomes = await editor.edit(resources, replace=True, validate_only=request.validate_only)
        return AlterConfigsResponse(
            throttle_time_ms=0,
            responses=tuple(
                AlterConfigsResourceResponse(
                    error_code=code, error_message=message, resource_type=kind, resource_name=name
                )
                for (kind, name, _), (code, message) in zip(resources, outcomes, strict=True)
            ),
        )

    return unhurried(handle)
