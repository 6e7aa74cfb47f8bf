"""A broker asks the controller for a block of producer ids."""

from ixion.language.protocol.notation import BrokerId, Int16, Int32, Int64, ProducerId, Struct


class AllocateProducerIdsRequest(Struct):
    broker_id: BrokerId
    broker_epoch: Int64 = -1


class AllocateProducerIdsResponse(Struct):
    throttle_time_ms: Int32 = 0
    error_code: Int16
    producer_id_start: ProducerId
    producer_id_len: Int32
