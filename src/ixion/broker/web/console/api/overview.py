"""The state of the broker at one look: is it well, what does it do, what happened."""

from __future__ import annotations

import time
from typing import Final, TypedDict

from ixion.broker.web.console.api.figures import in_short_turns, percentile
from ixion.broker.web.console.history import KEPT
from ixion.broker.web.console.inside import Inside
from ixion.broker.web.process import resident_bytes
from ixion.broker.web.request import HttpRequest
from ixion.language.protocol.registry import ApiKey
from ixion.timer.turns import Steps


class Api(TypedDict):
    api: str
    count: int
    p50_ms: float | None  # over the last minute; None: no request
    p99_ms: float | None
    failed: int


class Curve(TypedDict):
    name: str
    unit: str
    values: list[float]  # the oldest first, one for each `step_s`


class Event(TypedDict):
    id: int
    at_ms: int
    text: str
    link: str  # a page that shows more


class Overview(TypedDict):
    version: str
    node_id: int
    cluster_id: str
    now_ms: int
    up_ms: int
    problems: list[str]
    brokers: int
    topics: int
    partitions: int  # replicas on this broker
    leaders: int
    under_replicated: int
    offline: int
    connections: int
    memory_bytes: int | None
    processor: float  # of one core, over the last seconds
    log_bytes: int
    waiting: int  # tasks on the wheel
    delayed: int  # operations in purgatories
    stalls: int
    longest_stall_ms: float
    throttled: int
    past_s: int  # how far back the curves go
    step_s: int  # between two looks; a long history shows the largest of several
    curves: list[Curve]
    apis: list[Api]
    events: list[Event]


EVENTS_SHOWN: Final = 30


class Health(TypedDict):
    led: int
    replicas: int
    under_replicated: int
    offline: int
    log_bytes: int


def health(inside: Inside) -> Steps[Health]:
    led = replicas = under = size = offline = 0
    for partition in list(inside.replicas.partitions.values()):
        if partition.covers is None:
            replicas += 1
            if partition.leads:
                led += 1
                under += len(partition.isr) < len(partition.replicas)
        size += partition.log.size
        yield
    for topic in list(inside.image.topics.values()):
        for state in topic.partitions:
            offline += state.leader < 0
        yield
    return Health(led=led, replicas=replicas, under_replicated=under, offline=offline, log_bytes=size)


async def overview(inside: Inside, _request: HttpRequest) -> Overview:
    found = await inside.history.shared("health", lambda: in_short_turns(health(inside)))
    history = inside.history
    snapshot = inside.network()
    minute = history.times_of_the_last_minute()
    apis = [
        Api(
            api=title(key),
            count=times.count,
            p50_ms=in_ms(percentile(minute.get(key, ()), inside.bounds_ns, 0.5)),
            p99_ms=in_ms(percentile(minute.get(key, ()), inside.bounds_ns, 0.99)),
            failed=times.failed,
        )
        for key, times in inside.times.by_key().items()
    ]
    apis.sort(key=lambda each: -each["count"])
    return Overview(
        version=inside.version,
        node_id=inside.node_id,
        cluster_id=inside.cluster_id,
        now_ms=inside.clock_ms(),
        up_ms=int(time.monotonic() * 1000) - history.started_ms,
        problems=inside.ailments(),
        brokers=len(inside.image.brokers),
        topics=len(inside.image.topics),
        partitions=found["replicas"],
        leaders=found["led"],
        under_replicated=found["under_replicated"],
        offline=found["offline"],
        connections=sum(snapshot.connections.values()),
        memory_bytes=resident_bytes(),
        processor=history.last("processor"),
        log_bytes=found["log_bytes"],
        waiting=inside.timer.size,
        delayed=sum(each.delayed for each in inside.purgatories()),
        stalls=int(inside.stalls.busy_stalls),
        longest_stall_ms=int(inside.stalls.longest_busy_ns) / 1e6,
        throttled=sum(inside.throttled.values()),
        past_s=min(history.looks, KEPT) * history.step_s,
        step_s=history.step_s,
        curves=[Curve(name=name, unit=unit, values=values) for name, unit, values in history.curves()],
        apis=apis,
        events=[
            Event(id=each.id, at_ms=each.at_ms, text=each.text, link=each.link)
            for each in list(history.events)[-EVENTS_SHOWN:][::-1]
        ],
    )


def in_ms(ns: float | None) -> float | None:
    return None if ns is None else ns / 1e6


def title(key: int) -> str:
    try:
        return ApiKey(key).title
    except ValueError:
        return str(key)
