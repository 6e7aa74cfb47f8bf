"""A broker that wants to stop asks the controller to move its leaders away.

Version 0 has a request header of its own, without a client id.
"""

from ixion.language.protocol.notation import BrokerId, Int16, Int32, Int64, Struct, TopicName, field


class ControlledShutdownRequest(Struct):
    broker_id: BrokerId
    broker_epoch: Int64 = field("2+", default=-1, ignorable=True)


class RemainingPartition(Struct):
    topic_name: TopicName
    partition_index: Int32


class ControlledShutdownResponse(Struct):
    error_code: Int16
    remaining_partitions: tuple[RemainingPartition, ...]
