"""The transaction coordinator asks partition leaders to write the markers that end transactions."""

from ixion.language.protocol.notation import Bool, Int8, Int16, Int32, ProducerId, Struct, TopicName, field


class WritableTxnMarkerTopic(Struct):
    name: TopicName
    partition_indexes: tuple[Int32, ...]


class WritableTxnMarker(Struct):
    producer_id: ProducerId
    producer_epoch: Int16
    transaction_result: Bool
    topics: tuple[WritableTxnMarkerTopic, ...]
    coordinator_epoch: Int32
    transaction_version: Int8 = field("2+", default=0, ignorable=True)


class WriteTxnMarkersRequest(Struct):
    markers: tuple[WritableTxnMarker, ...]


class WritableTxnMarkerPartitionResult(Struct):
    partition_index: Int32
    error_code: Int16


class WritableTxnMarkerTopicResult(Struct):
    name: TopicName
    partitions: tuple[WritableTxnMarkerPartitionResult, ...]


class WritableTxnMarkerResult(Struct):
    producer_id: ProducerId
    topics: tuple[WritableTxnMarkerTopicResult, ...]


class WriteTxnMarkersResponse(Struct):
    markers: tuple[WritableTxnMarkerResult, ...]
