"""`/brokers/topics/T`: the replicas of a topic; `…/partitions/0/state`: the leader and ISR of a partition.

`ixion_leftover_replicas`, `ixion_isr_epochs` and `ixion_eligible` are ours; Apache Kafka ignores them, and writes nodes
without them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ixion.broker.metadata.content import from_json, to_json
from ixion.language.model.ids import id_from_text, id_text


class Replicas(NamedTuple):
    """Broker ids, the preferred leader first. During a reassignment, `all` includes those added and removed."""

    all: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    leftover: tuple[int, ...] = ()  # no replicas any more, but they have not confirmed that they deleted their logs


class TopicNode(NamedTuple):
    topic_id: bytes | None  # None: created by a broker before 2.8
    partitions: Mapping[int, Replicas]


class PartitionState(NamedTuple):
    leader: int  # -1: none
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int  # of the controller that wrote it
    recovering: bool = False  # the leader was elected uncleanly and has not recovered yet
    isr_epochs: Mapping[int, int] = {}  # ISR or ELR member -> its broker epoch, as far as the controller knew it
    eligible: tuple[int, ...] = ()  # eligible leader replicas (ELR): not in the ISR, but they have what was committed


def encode_topic(node: TopicNode) -> bytes:
    partitions = sorted(node.partitions.items())
    members: dict[str, Any] = {
        "partitions": {str(number): replicas.all for number, replicas in partitions},
        "adding_replicas": {str(number): replicas.adding for number, replicas in partitions if replicas.adding},
        "removing_replicas": {str(number): replicas.removing for number, replicas in partitions if replicas.removing},
        "version": 3,
    }
    leftover = {str(number): replicas.leftover for number, replicas in partitions if replicas.leftover}
    if leftover:
        members["ixion_leftover_replicas"] = leftover
    if node.topic_id is not None:
        members["topic_id"] = id_text(node.topic_id)
    return to_json(members)


def decode_topic(topic: str, data: bytes) -> TopicNode:
    def read(members: dict[str, Any]) -> TopicNode:
        adding, removing = members.get("adding_replicas", {}), members.get("removing_replicas", {})
        leftover = members.get("ixion_leftover_replicas")
        leftover = leftover if isinstance(leftover, dict) else {}
        return TopicNode(
            topic_id=id_from_text(members["topic_id"]) if "topic_id" in members else None,
            partitions={
                int(number): Replicas(
                    all=tuple(replicas),
                    adding=tuple(adding.get(number, ())),
                    removing=tuple(removing.get(number, ())),
                    leftover=_others(tuple(replicas), leftover.get(number)),
                )
                for number, replicas in members["partitions"].items()
            },
        )

    return from_json(f"topic {topic}", data, read)


def encode_partition_state(state: PartitionState) -> bytes:
    members: dict[str, Any] = {
        "controller_epoch": state.controller_epoch,
        "leader": state.leader,
        "version": 1,
        "leader_epoch": state.leader_epoch,
        "isr": state.isr,
    }
    if state.recovering:
        members["leader_recovery_state"] = 1
    if state.isr_epochs:
        members["ixion_isr_epochs"] = {str(member): epoch for member, epoch in state.isr_epochs.items()}
    if state.eligible:
        members["ixion_eligible"] = state.eligible
    return to_json(members)


def decode_partition_state(topic: str, partition: int, data: bytes) -> PartitionState:
    def read(members: dict[str, Any]) -> PartitionState:
        isr = tuple(members["isr"])
        eligible = _others(isr, members.get("ixion_eligible"))
        return PartitionState(
            leader=members["leader"],
            leader_epoch=members["leader_epoch"],
            isr=isr,
            controller_epoch=members["controller_epoch"],
            recovering=members.get("leader_recovery_state", 0) == 1,
            isr_epochs=_isr_epochs((*isr, *eligible), members.get("ixion_isr_epochs")),
            eligible=eligible,
        )

    return from_json(f"the state of {topic}-{partition}", data, read)


def _others(known: tuple[int, ...], given: Any) -> tuple[int, ...]:
    """Brokers beside the known ones. Anything else is ignored: the controller can do without."""
    found = dict.fromkeys([each for each in given if type(each) is int]) if isinstance(given, list) else {}
    return tuple([broker for broker in found if broker not in known])


def _isr_epochs(replicas: tuple[int, ...], given: Any) -> dict[int, int]:
    """Anything but the epoch of one of these replicas is ignored: the controller can do without."""
    if not isinstance(given, dict):
        return {}
    found = {member: given.get(str(member)) for member in replicas}
    return {member: epoch for member, epoch in found.items() if type(epoch) is int}
