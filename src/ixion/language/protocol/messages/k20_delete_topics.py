"""Delete topics, by name or by id."""

from ixion.language.protocol.notation import Int16, Int32, String, Struct, TopicName, Uuid, field


class DeleteTopicState(Struct):
    name: TopicName | None = None
    topic_id: Uuid


class DeleteTopicsRequest(Struct):
    topics: tuple[DeleteTopicState, ...] = field("6+")
    topic_names: tuple[TopicName, ...] = field("1-5", ignorable=True)
    timeout_ms: Int32


class DeletableTopicResult(Struct):
    name: TopicName | None = field(nullable="6+")
    topic_id: Uuid = field("6+", ignorable=True)
    error_code: Int16
    error_message: String | None = field("5+", default=None, ignorable=True)


class DeleteTopicsResponse(Struct):
    throttle_time_ms: Int32 = 0
    responses: tuple[DeletableTopicResult, ...]
