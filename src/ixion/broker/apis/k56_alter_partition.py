"""AlterPartition, 2 to 3: a leader asks the controller to change the ISR (KIP-497).

Version 3 has the broker epochs with which the replicas fetched (KIP-903). The controller refuses a replica whose broker
has registered again since, because it may have lost its disk. Apache Kafka's leaders send -1, which is accepted.
Only brokers send it.
"""

from __future__ import annotations

from typing import Final, cast

from ixion.broker.acl.numbers import CLUSTER_ACTION
from ixion.broker.apis.between_brokers import BetweenBrokers
from ixion.broker.apis.call import Call, Handle
from ixion.broker.apis.controller_calls import translated
from ixion.broker.apis.guards.shapes import NO_CLUSTER, refused_with
from ixion.broker.apis.repeats import NUMBERS, once
from ixion.broker.apis.services import Services
from ixion.broker.controller.cluster.controller import ClusterController
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.messages.k56_alter_partition import AlterPartitionRequest, AlterPartitionResponse

REPEATS: Final = {
    "topics": once(
        "topic_id",
        partitions=once("partition_index", new_isr=NUMBERS, new_isr_with_epochs=once("broker_id")),
    )
}
RIGHTS: Final = refused_with(CLUSTER_ACTION, AlterPartitionResponse(error_code=NO_CLUSTER, topics=()))


def make(services: Services) -> Handle:
    controller = services.controller
    brokers = BetweenBrokers(services)

    async def handle(call: Call) -> AlterPartitionResponse:
        request = cast(AlterPartitionRequest, call.body)
        if not brokers.admits(call, "AlterPartition"):
            return refusal(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        assert isinstance(controller, ClusterController)  # only such a controller has other brokers
        try:
            return await translated(controller.isr.alter(request))
        except KafkaError as error:
            return refusal(error.code)

    return handle


def refusal(code: ErrorCode) -> AlterPartitionResponse:
    return AlterPartitionResponse(error_code=code, topics=())
