"""IncrementalAlterConfigs, 0 to 1: single settings of topics, brokers, loggers and groups are changed (KIP-339).

SET and DELETE are for every setting, APPEND and SUBTRACT for lists; they begin with the default where nothing is set.
A broker's name is its id, or empty for all brokers. Levels of loggers (KIP-412) hold until the process ends.
"""

from __future__ import annotations

from typing import cast

from ixion.apis.call import Call, Handle
from ixion.apis.config_edit import ConfigEditor, Edit
from ixion.apis.services import Services
from ixion.apis.unhurried import unhurried
from ixion.protocol.messages.k44_incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


def make(services: Services) -> Handle:
    editor = ConfigEditor(services)

    async def handle(call: Call) -> IncrementalAlterConfigsResponse:
        request = cast(IncrementalAlterConfigsRequest, call.body)
        resources = [
            (
                each.resource_type,
                each.resource_name,
                [Edit(name=to.name, value=to.value, operation=to.config_operation) for to in each.configs],
            )
            for each in request.resources
        ]
        outcomes = await editor.edit(resources, replace=False, validate_only=request.validate_only)
        return IncrementalAlterConfigsResponse(
            throttle_time_ms=0,
            responses=tuple(
                AlterConfigsResourceResponse(
                    error_code=code, error_message=message, resource_type=kind, resource_name=name
                )
                for (kind, name, _), (code, message) in zip(resources, outcomes, strict=True)
            ),
        )

    return unhurried(handle)
