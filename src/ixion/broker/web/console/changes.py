"""What happened between two looks at the broker, in plain words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import quote

from ixion.timer.turns import Steps

if TYPE_CHECKING:
    from ixion.broker.web.console.inside import Inside

MOST_GROUPS: Final = 10_000  # whose generations are compared
MOST_NAMED: Final = 3  # of many of a kind

# Why connections are closed without a client's wish. What is missing here is ordinary.
REASONS: Final = {
    "authentication": "the login failed",
    "excess": "over max.connections",
    "handler_failed": "a request failed",
    "idle": "idle for connections.max.idle.ms",
    "no_login": "no login in time",
    "slow_reader": "responses were not read",
    "slow_sender": "the rest of a request did not come",
    "http": "HTTP on a Kafka port",
    "tls": "TLS on a listener without it",
    "ssh": "SSH on a Kafka port",
    "negative_size": "not Kafka's protocol",
    "empty_frame": "not Kafka's protocol",
    "garbage": "not Kafka's protocol",
    "oversize": "a request over socket.request.max.bytes",
}
ORDINARY: Final = frozenset({"peer", "shutdown"})


class Change(NamedTuple):
    text: str
    link: str


class Look(NamedTuple):
    """What is compared."""

    topics: frozenset[str]
    topics_version: int
    brokers: frozenset[int]
    controller: int
    leaders: int
    under_replicated: int
    offline: int
    groups: Mapping[str, tuple[int, int]]  # generation and members
    closed: Mapping[str, int]
    refused: Mapping[str, int]  # produces and fetches, by error
    ailments: tuple[str, ...]
    stalls: int
    longest_stall_ms: int
    isr_shrinks: int
    isr_expands: int
    clock_jumps: int
    schedule_failures: int


def look(inside: Inside, before: Look | None) -> Steps[Look]:
    """`before` is the last look: names that have not changed since are taken from it, not copied again."""
    replicas, image = inside.replicas, inside.image
    led = under = offline = 0
    for partition in list(replicas.partitions.values()):
        if partition.leads and partition.covers is None:
            led += 1
            under += len(partition.isr) < len(partition.replicas)
        yield
    for topic in list(image.topics.values()):
        for state in topic.partitions:
            offline += state.leader < 0
        yield
    groups = yield from generations(inside)
    counters = replicas.counters
    refused = {f"produces: {code.name}": count for code, count in counters.failed_produces.items()}
    refused |= {f"fetches: {code.name}": count for code, count in counters.failed_fetches.items()}
    return Look(
        topics=before.topics if before and before.topics_version == image.version else frozenset(image.topics),
        topics_version=image.version,
        brokers=frozenset(image.brokers),
        controller=image.controller_id,
        leaders=led,
        under_replicated=under,
        offline=offline,
        groups=groups,
        closed=dict(inside.network().closed),
        refused=refused,
        ailments=tuple(inside.ailments()),
        stalls=int(inside.stalls.busy_stalls),
        longest_stall_ms=int(inside.stalls.longest_busy_ns) // 1_000_000,
        isr_shrinks=counters.isr_shrinks,
        isr_expands=counters.isr_expands,
        clock_jumps=inside.schedules.figures.clock_jumps,
        schedule_failures=inside.schedules.figures.failures,
    )


def generations(inside: Inside) -> Steps[dict[str, tuple[int, int]]]:
    coordinator = inside.groups()
    found: dict[str, tuple[int, int]] = {}
    if coordinator is None:
        return found
    for shard in coordinator.shards:
        for group in [] if shard.loading else list(shard.groups.values()):
            if len(found) < MOST_GROUPS:
                generation = getattr(group, "generation", None)
                epoch = getattr(group, "assignment_epoch", 0) if generation is None else generation
                found[group.group_id] = (int(epoch), len(group.members))
            yield
    return found


def changes(before: Look, now: Look) -> Iterator[Change]:
    for text in now.ailments:
        if text not in before.ailments:
            yield Change(text, "/")
    for text in before.ailments:
        if text not in now.ailments:
            yield Change(f"over: {text}", "/")
    yield from of_cluster(before, now)
    if now.topics is not before.topics:
        yield from named("topic", "created", sorted(now.topics - before.topics), "/topics")
        yield from named("topic", "deleted", sorted(before.topics - now.topics), "/topics")
    yield from of_groups(before.groups, now.groups)
    for reason, count in now.closed.items():
        more = count - before.closed.get(reason, 0)
        if more > 0 and reason not in ORDINARY:
            what = "connection was" if more == 1 else "connections were"
            yield Change(f"{more:,} {what} closed: {REASONS.get(reason, reason.replace('_', ' '))}", "/connections")
    for reason, count in now.refused.items():
        more = count - before.refused.get(reason, 0)
        if more > 0:
            yield Change(f"{more:,} refused {reason}", "/")
    if now.stalls > before.stalls:
        times = "once" if now.stalls - before.stalls == 1 else f"{now.stalls - before.stalls} times"
        yield Change(f"the event loop was held up {times}; the longest turn so far took {now.longest_stall_ms} ms", "/")
    if now.clock_jumps > before.clock_jumps:
        yield Change("the wall clock jumped; due times of delayed records were checked again", "/schedules")
    if now.schedule_failures > before.schedule_failures:
        yield Change("a delivery of delayed records failed and is retried", "/schedules")


def of_cluster(before: Look, now: Look) -> Iterator[Change]:
    for number in sorted(now.brokers - before.brokers):
        yield Change(f"broker {number} joined the cluster", "/brokers")
    for number in sorted(before.brokers - now.brokers):
        yield Change(f"broker {number} left the cluster", "/brokers")
    if now.controller != before.controller:
        yield Change(
            f"broker {now.controller} is the controller" if now.controller >= 0 else "no controller", "/brokers"
        )
    if now.leaders != before.leaders and now.brokers != before.brokers:
        yield Change(f"this broker leads {now.leaders:,} partitions, {before.leaders:,} before", "/brokers")
    for what, old, new in (
        ("under-replicated", before.under_replicated, now.under_replicated),
        ("offline", before.offline, now.offline),
    ):
        if new != old:
            partitions = "partition is" if new == 1 else "partitions are"
            yield Change(f"{new:,} {partitions} {what}" if new else f"no partition is {what} any more", "/topics")
    if now.isr_shrinks > before.isr_shrinks:
        yield Change(f"{now.isr_shrinks - before.isr_shrinks:,} replicas fell behind and left the ISR", "/topics")
    if now.isr_expands > before.isr_expands:
        yield Change(f"{now.isr_expands - before.isr_expands:,} replicas caught up and joined the ISR", "/topics")


def of_groups(before: Mapping[str, tuple[int, int]], now: Mapping[str, tuple[int, int]]) -> Iterator[Change]:
    rebalanced = [name for name, (generation, _) in now.items() if before.get(name, (0, 0))[0] != generation]
    for name in rebalanced[:MOST_NAMED]:
        generation, members = now[name]
        who = "1 member" if members == 1 else f"{members:,} members"
        yield Change(f"group {name} rebalanced: generation {generation}, {who}", f"/groups/{quote(name, safe='')}")
    if len(rebalanced) > MOST_NAMED:
        yield Change(f"{len(rebalanced) - MOST_NAMED:,} more groups rebalanced", "/groups")
    gone = [name for name in before if name not in now]
    yield from named("group", "deleted", gone, "/groups")


def named(noun: str, verb: str, names: list[str], link: str) -> Iterator[Change]:
    for name in names[:MOST_NAMED]:
        yield Change(f"{noun} {name} was {verb}", link if verb == "deleted" else f"{link}/{quote(name, safe='')}")
    if len(names) > MOST_NAMED:
        yield Change(f"{len(names) - MOST_NAMED:,} more {noun}s were {verb}", link)
