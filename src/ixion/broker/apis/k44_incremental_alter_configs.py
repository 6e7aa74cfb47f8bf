"""IncrementalAlterConfigs, 0 to 1: change single settings of topics, brokers, loggers and groups (KIP-339).

SET and DELETE apply to every setting, APPEND and SUBTRACT to lists; they start from the default if nothing is set. A
broker's name is its id, or empty for all brokers. Levels of loggers (KIP-412) are lost when the process ends. A
client that sets delivery.delay.target needs the right to write to that topic.
"""

from __future__ import annotations

from typing import Final, cast

from ixion.broker.acl.numbers import ALTER_CONFIGS
from ixion.broker.apis.call import Call, Handle
from ixion.broker.apis.config_edit import ConfigEditor, Edit, Outcome
from ixion.broker.apis.guards.resources import altered, on_resources
from ixion.broker.apis.repeats import twice
from ixion.broker.apis.services import Services
from ixion.language.protocol.messages.k44_incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from ixion.language.protocol.messages.k44_incremental_alter_configs import (
    AlterConfigsResourceResponse as IncrementalResult,
)
from ixion.timer.turns import in_turns, map_steps

REPEATS: Final = {"resources": twice("resource_type", "resource_name", configs=twice("name"))}
RIGHTS: Final = on_resources(ALTER_CONFIGS, "responses", altered(IncrementalResult))


def make(services: Services) -> Handle:
    editor = ConfigEditor(services)

    async def handle(call: Call) -> IncrementalAlterConfigsResponse:
        request = cast(IncrementalAlterConfigsRequest, call.body)
        outcomes = await editor.edit(
            request.resources, edit_of, replace=False, validate_only=request.validate_only, rights=call.rights
        )
        answers = await in_turns(map_steps(answer, outcomes))
        return IncrementalAlterConfigsResponse(responses=tuple(answers))

    return handle


def edit_of(config: AlterableConfig) -> Edit:
    return Edit(name=config.name, value=config.value, operation=config.config_operation)


def answer(outcome: Outcome) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=outcome.code,
        error_message=outcome.message,
        resource_type=outcome.kind,
        resource_name=outcome.name,
    )
