"""DeleteShareGroupState (86), version 0: delete the state of share partitions; deleting nothing succeeds."""

from __future__ import annotations

from typing import Final, cast

from ixion.broker.apis.call import Handle
from ixion.broker.apis.repeats import once
from ixion.broker.apis.services import Services
from ixion.broker.apis.share_state import Answered, Shape, brokers_only, serve
from ixion.broker.replica.share_persister import SharePartitionKey
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k86_delete_share_group_state import (
    DeleteShareGroupStateResponse,
    DeleteStateResult,
    PartitionData,
    PartitionResult,
)
from ixion.language.protocol.notation import Struct

REPEATS: Final = {"topics": once("topic_id", partitions=once("partition"))}


def fault(partition: int, code: ErrorCode) -> PartitionResult:
    return PartitionResult(partition=partition, error_code=code)


SHAPE: Final = Shape(
    fault,
    lambda topic_id, lines: DeleteStateResult(topic_id=topic_id, partitions=lines),
    lambda topics: DeleteShareGroupStateResponse(results=topics),
)
RIGHTS: Final = brokers_only(SHAPE)


def make(services: Services) -> Handle:
    shares = services.shares

    def act(key: SharePartitionKey, asked: Struct, done: Answered) -> None:
        part = cast(PartitionData, asked)
        shares.delete(key, lambda code: done(fault(part.partition, code)))

    return serve(services, SHAPE, act)
