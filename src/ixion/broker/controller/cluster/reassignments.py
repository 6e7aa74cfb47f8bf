"""Moves of replicas that clients ask for (AlterPartitionReassignments, ListPartitionReassignments)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ixion.broker.controller.cluster import reassignment
from ixion.broker.controller.cluster.term import Term
from ixion.broker.controller.reassignments import Moving, Target
from ixion.broker.metadata.topic_node import Replicas
from ixion.language.model.errors import KafkaError
from ixion.language.model.topic_partition import TopicPartition
from ixion.timer.turns import Steps


class ClusterReassignments:
    def __init__(self, active: Callable[[], Term]) -> None:
        self._active = active

    async def alter(
        self, targets: Mapping[TopicPartition, Target], any_factor: bool
    ) -> dict[TopicPartition, KafkaError | None]:
        """Returns an error for each, or None. A target of None cancels the move of that partition."""
        term = self._active()
        return await term.run(lambda: alter(term, targets, any_factor))

    def moving(self) -> Steps[Moving]:
        cluster = self._active().cluster
        found: Moving = []
        for topic in list(cluster.topics.values()):
            yield
            for number, replicas in topic.partitions.items():
                if reassignment.is_moving(replicas):
                    found.append(((topic.name, number), replicas))
        return found


async def alter(
    term: Term, targets: Mapping[TopicPartition, Target], any_factor: bool
) -> dict[TopicPartition, KafkaError | None]:
    outcomes: dict[TopicPartition, KafkaError | None] = {}
    begun: dict[TopicPartition, Replicas] = {}
    for key, target in targets.items():
        try:
            begun[key] = reassignment.check(term, key, target, any_factor)
            outcomes[key] = None
        except KafkaError as error:
            outcomes[key] = error
    for key, during in begun.items():
        await reassignment.begin(term, key, during)
    return outcomes
