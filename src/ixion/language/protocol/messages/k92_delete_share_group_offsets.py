"""Delete the start offsets of a share group."""

from ixion.language.protocol.notation import GroupId, Int16, Int32, String, Struct, TopicName, Uuid


class DeleteShareGroupOffsetsRequestTopic(Struct):
    topic_name: TopicName


class DeleteShareGroupOffsetsRequest(Struct):
    group_id: GroupId
    topics: tuple[DeleteShareGroupOffsetsRequestTopic, ...]


class DeleteShareGroupOffsetsResponseTopic(Struct):
    topic_name: TopicName
    topic_id: Uuid
    error_code: Int16
    error_message: String | None = None


class DeleteShareGroupOffsetsResponse(Struct):
    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: String | None = None
    responses: tuple[DeleteShareGroupOffsetsResponseTopic, ...]
