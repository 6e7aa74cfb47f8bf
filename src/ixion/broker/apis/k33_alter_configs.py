"""AlterConfigs, 0 to 2: replace all settings of topics, brokers and groups; a setting that is left out is unset.

Clients prefer the newer IncrementalAlterConfigs, which does not undo changes of others. AlterConfigs cannot change the
levels of loggers. A client that sets delivery.delay.target needs the right to write to that topic.
"""

from __future__ import annotations

from typing import Final, cast

from ixion.broker.acl.numbers import ALTER_CONFIGS
from ixion.broker.apis.call import Call, Handle
from ixion.broker.apis.config_edit import ConfigEditor, Edit, Outcome
from ixion.broker.apis.guards.resources import altered, on_resources
from ixion.broker.apis.repeats import twice
from ixion.broker.apis.services import Services
from ixion.language.model.resource_type import ResourceType
from ixion.language.protocol.messages.k33_alter_configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from ixion.language.protocol.messages.k33_alter_configs import AlterConfigsResourceResponse as AlterResult
from ixion.timer.turns import in_turns, map_steps

REPEATS: Final = {"resources": twice("resource_type", "resource_name", configs=twice("name"))}
RIGHTS: Final = on_resources(ALTER_CONFIGS, "responses", altered(AlterResult), ResourceType.BROKER_LOGGER)


def make(services: Services) -> Handle:
    editor = ConfigEditor(services)

    async def handle(call: Call) -> AlterConfigsResponse:
        request = cast(AlterConfigsRequest, call.body)
        outcomes = await editor.edit(
            request.resources, edit_of, replace=True, validate_only=request.validate_only, rights=call.rights
        )
        answers = await in_turns(map_steps(answer, outcomes))
        return AlterConfigsResponse(responses=tuple(answers))

    return handle


def edit_of(config: AlterableConfig) -> Edit:
    return Edit(name=config.name, value=config.value)


def answer(outcome: Outcome) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=outcome.code,
        error_message=outcome.message,
        resource_type=outcome.kind,
        resource_name=outcome.name,
    )
