"""The log directories of a broker and the partitions in them."""

from ixion.language.protocol.notation import Bool, Int16, Int32, Int64, String, Struct, TopicName, field


class DescribableLogDirTopic(Struct):
    topic: TopicName
    partitions: tuple[Int32, ...]


class DescribeLogDirsRequest(Struct):
    topics: tuple[DescribableLogDirTopic, ...] | None


class DescribeLogDirsPartition(Struct):
    partition_index: Int32
    partition_size: Int64
    offset_lag: Int64
    is_future_key: Bool


class DescribeLogDirsTopic(Struct):
    name: TopicName
    partitions: tuple[DescribeLogDirsPartition, ...]


class DescribeLogDirsResult(Struct):
    error_code: Int16
    log_dir: String
    topics: tuple[DescribeLogDirsTopic, ...]
    total_bytes: Int64 = field("4+", default=-1, ignorable=True)
    usable_bytes: Int64 = field("4+", default=-1, ignorable=True)
    is_cordoned: Bool = field("5+", default=False, ignorable=True)


class DescribeLogDirsResponse(Struct):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = field("3+", ignorable=True)
    results: tuple[DescribeLogDirsResult, ...]
