"""DeleteTopics, 1 to 6: by name, from version 6 on by name or by id (KIP-516).

A topic that is in the request twice (a repeated name or id, or a name and its id) is refused: such a request is
probably a mistake. The settings of the topics are deleted too. If delete.topic.enable is false, all are refused; before
version 3 the code for that was INVALID_REQUEST. From version 5 on, a topic above the quota on changes gets
THROTTLING_QUOTA_EXCEEDED (KIP-599).
"""

from __future__ import annotations

from collections import Counter
from typing import cast

from ixion.apis.call import Call, Handle
from ixion.apis.controller_calls import in_time
from ixion.apis.own_task import in_own_task
from ixion.apis.services import Services
from ixion.config.cluster_settings import DELETE_TOPIC_ENABLE
from ixion.controller.topics import TopicOutcome
from ixion.metadata.image import ClusterImage, TopicImage
from ixion.model.errors import ErrorCode, KafkaError
from ixion.model.ids import ZERO_ID, id_text
from ixion.protocol.messages.k20_delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from ixion.timer.turns import Steps, in_turns


def make(services: Services) -> Handle:
    controller = services.controller
    config = services.config
    image = services.image
    timer = services.timer

    async def handle(call: Call) -> DeleteTopicsResponse:
        request = cast(DeleteTopicsRequest, call.body)
        refused: KafkaError | None = None
        if not config.current[DELETE_TOPIC_ENABLE]:
            code = ErrorCode.TOPIC_DELETION_DISABLED if call.version >= 3 else ErrorCode.INVALID_REQUEST
            refused = KafkaError(code, "topics cannot be deleted: delete.topic.enable is false")
        doomed, by_id, results = await in_turns(sort_out(image, request, refused))
        if doomed:
            try:
                work = controller.topics.delete(list(doomed), by_id, call.charge)
                outcomes = await in_time(timer, request.timeout_ms, work)
            except KafkaError as error:
                outcomes = [TopicOutcome(name=name, code=error.code, message=error.message) for name in doomed]
            results += [
                DeletableTopicResult(
                    name=outcome.name,
                    topic_id=doomed[outcome.name].topic_id,
                    error_code=outcome.code,
                    error_message=outcome.message,
                )
                for outcome in outcomes
            ]
        return DeleteTopicsResponse(responses=tuple(results))

    return in_own_task(handle)


def sort_out(
    image: ClusterImage, request: DeleteTopicsRequest, refused: KafkaError | None
) -> Steps[tuple[dict[str, TopicImage], dict[str, bytes], list[DeletableTopicResult]]]:
    """The topics to delete by name, the ids of those requested by id, and the results of all others."""
    times: Counter[tuple[str | None, bytes]] = Counter()
    meant: Counter[str] = Counter()
    for state in request.topics or request.topic_names:
        key = (state, ZERO_ID) if isinstance(state, str) else (state.name, state.topic_id)
        times[key] += 1
        topic = find(image, *key)
        if topic is not None and times[key] == 1:
            meant[topic.name] += 1
        yield
    doomed: dict[str, TopicImage] = {}
    by_id: dict[str, bytes] = {}
    results: list[DeletableTopicResult] = []
    for name, topic_id in times:
        yield
        if refused is not None:
            results.append(failed(name, topic_id, refused))
            continue
        try:
            if times[name, topic_id] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "the topic is in the request more than once")
            topic = check(image, name, topic_id)
            if meant[topic.name] > 1:
                name, topic_id = topic.name, topic.topic_id
                raise KafkaError(ErrorCode.INVALID_REQUEST, "the request has the topic by name and by id")
            doomed[topic.name] = topic
            if name is None:
                by_id[topic.name] = topic_id
        except KafkaError as error:
            results.append(failed(name, topic_id, error))
    return doomed, by_id, results


def find(image: ClusterImage, name: str | None, topic_id: bytes) -> TopicImage | None:
    return image.topics.get(name) if name is not None else image.ids.get(topic_id)


def check(image: ClusterImage, name: str | None, topic_id: bytes) -> TopicImage:
    if name is None and topic_id == ZERO_ID:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "neither a name nor an id is given")
    if name is not None and topic_id != ZERO_ID:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "both a name and an id are given; only one is allowed")
    topic = find(image, name, topic_id)
    if topic is not None:
        return topic
    if name is not None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic '{name}'")
    raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, f"there is no topic with id {id_text(topic_id)}")


def failed(name: str | None, topic_id: bytes, error: KafkaError) -> DeletableTopicResult:
    return DeletableTopicResult(name=name, topic_id=topic_id, error_code=error.code, error_message=error.message)
