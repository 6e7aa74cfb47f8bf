"""DeleteTopics, 1 to 6: by name, from version 6 on by name or by id (KIP-516).

A topic that is in the request twice (a repeated name or id, or a name and its id) is refused: such a request is
probably a mistake. The settings of the topics are deleted too. If delete.topic.enable is false, all are refused; before
version 3 the code for that was INVALID_REQUEST. A broker that is not the controller knows no topic for certain, and
answers NOT_CONTROLLER. From version 5 on, a topic above the quota on changes gets
THROTTLING_QUOTA_EXCEEDED (KIP-599).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, cast

from ixion.broker.acl.numbers import DELETE, DESCRIBE, TOPIC
from ixion.broker.apis.call import Call, Handle
from ixion.broker.apis.controller_calls import in_time
from ixion.broker.apis.guards.guard import Guard
from ixion.broker.apis.guards.shapes import NO_TOPIC, appended, sorted_out
from ixion.broker.apis.repeats import twice
from ixion.broker.apis.services import Services
from ixion.broker.controller.topics import TopicOutcome
from ixion.broker.metadata.image import ClusterImage, TopicImage
from ixion.config.cluster_settings import DELETE_TOPIC_ENABLE
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.model.ids import ZERO_ID, id_text
from ixion.language.protocol.messages.k20_delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from ixion.language.protocol.notation import Struct
from ixion.timer.turns import Steps, in_turns

if TYPE_CHECKING:
    from ixion.broker.acl.rights import Rights

REPEATS: Final = {"topics": twice("name", "topic_id"), "topic_names": twice()}


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
        else:
            try:
                await in_time(timer, request.timeout_ms, controller.topics.caught_up())
            except KafkaError as error:
                refused = error
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

    return handle


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


def make_guard(services: Services) -> Guard:
    """DELETE on the topic. The response has the name of a topic id if the client may describe the topic."""

    image, config = services.image, services.config

    def guard(call: Call, rights: Rights) -> Steps[Struct | None]:
        request = cast(DeleteTopicsRequest, call.body)
        if not config.current[DELETE_TOPIC_ENABLE]:
            return None

        refused: list[Struct] = []

        def keep(name: str | None, topic_id: bytes) -> bool:
            found = name
            if name is None:
                known = image.ids.get(topic_id)
                if known is None:
                    return True
                found = known.name
            assert found is not None
            if rights.may(DELETE, TOPIC, found):
                return True
            shown = found if name is not None or rights.sees(DESCRIBE, TOPIC, found) else None
            refused.append(
                DeletableTopicResult(
                    name=shown, topic_id=topic_id, error_code=NO_TOPIC, error_message=NO_TOPIC.explanation
                )
            )
            return False

        states, _ = yield from sorted_out(request.topics, lambda state: keep(state.name, state.topic_id))
        names, _ = yield from sorted_out(request.topic_names, lambda name: keep(name, ZERO_ID))
        if refused:
            call.narrow(request.replace(topics=tuple(states), topic_names=tuple(names)))
            call.amend = appended("responses", refused)
        return None

    return guard
