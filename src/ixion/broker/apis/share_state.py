"""Requests to the share coordinator (83-87): each names share partitions of one group by topic id and number.

They come from other brokers. With access rules they need ClusterAction; without, the listener between brokers. Each
share partition is answered by itself; the response is sent when all are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ixion.broker.acl.numbers import CLUSTER_ACTION
from ixion.broker.apis.begin import respond_in_turns
from ixion.broker.apis.call import Call, Handle
from ixion.broker.apis.guards.guard import Guard
from ixion.broker.apis.guards.shapes import NO_CLUSTER, in_cluster, refused_topics
from ixion.broker.apis.services import Services
from ixion.broker.replica.share_persister import SharePartitionKey
from ixion.config.listeners import listeners
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.notation import Struct
from ixion.language.wire.answer import LATER, Later
from ixion.timer.turns import Steps

Answered = Callable[[Struct], None]


class Shape(NamedTuple):
    """How the answers of one of these APIs are made."""

    fault: Callable[[int, ErrorCode], Struct]  # the result of a partition that has an error
    topic: Callable[[bytes, tuple[Any, ...]], Struct]
    answer: Callable[[tuple[Any, ...]], Struct]


def brokers_only(shape: Shape) -> Guard:
    return in_cluster(CLUSTER_ACTION, lambda request, _: refused(request, shape, NO_CLUSTER))


def serve(services: Services, shape: Shape, act: Callable[[SharePartitionKey, Any, Answered], None]) -> Handle:
    """`act` is called for each partition of the request, and gives its result to the callback."""
    known = listeners(services.config.current)
    of_brokers = {known.inter_broker, known.control_plane, *known.internal_writers}

    def handle(call: Call) -> Steps[Struct | Later]:
        request: Any = call.body
        if call.rights is None and call.listener not in of_brokers:
            return (yield from refused(request, shape, NO_CLUSTER))
        results: list[tuple[bytes, list[Struct | None]]] = []
        left = 1  # partitions that are not answered, plus one until all are asked

        def done() -> None:
            nonlocal left
            left -= 1
            if left == 0:
                respond_in_turns(call, gathered(shape, results))

        def place(line: list[Struct | None], index: int) -> Answered:
            def answered(result: Struct) -> None:
                line[index] = result
                done()

            return answered

        for topic in request.topics:
            line: list[Struct | None] = []
            results.append((topic.topic_id, line))
            for part in topic.partitions:
                left += 1
                line.append(None)
                key = SharePartitionKey(request.group_id, topic.topic_id, part.partition)
                act(key, part, place(line, len(line) - 1))
                yield
        done()
        return LATER

    return handle


def gathered(shape: Shape, results: list[tuple[bytes, list[Struct | None]]]) -> Steps[Struct]:
    topics: list[Struct] = []
    for topic_id, line in results:
        topics.append(shape.topic(topic_id, tuple(line)))
        yield
    return shape.answer(tuple(topics))


def refused(request: Any, shape: Shape, code: ErrorCode) -> Steps[Struct]:
    topics = yield from refused_topics(
        request.topics,
        lambda part: shape.fault(part.partition, code),
        lambda topic, lines: shape.topic(topic.topic_id, lines),
    )
    return shape.answer(tuple(topics))
