"""The metrics, family by family, read from the parts of the broker when `/metrics` is requested.

With very many partitions the page is long; the loop gets its turn between portions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ixion.broker.schedules.figures import BOUNDS_MS
from ixion.broker.web.exposition import Exposition, Labels
from ixion.broker.web.membership import membership
from ixion.broker.web.process import process
from ixion.broker.web.shares import shares
from ixion.language.protocol.registry import ApiKey
from ixion.timer.turns import in_turns

if TYPE_CHECKING:
    from ixion.broker.acl.authorizer import Authorizer
    from ixion.broker.coordinators.loader import Loader
    from ixion.broker.log.log import Log
    from ixion.broker.log.manager import LogManager
    from ixion.broker.metadata.image import ClusterImage
    from ixion.broker.network import NetworkSnapshot
    from ixion.broker.network.request_times import RequestTimes
    from ixion.broker.replica.manager import ReplicaManager
    from ixion.broker.schedules.schedules import Schedules
    from ixion.broker.schedules.state import State
    from ixion.broker.share.manager import ShareManager
    from ixion.broker.web.membership import Membership
    from ixion.purgatory.purgatory import DelayedOperationPurgatory
    from ixion.timer.stall_watch import StallWatch
    from ixion.timer.timer import Timer
    from ixion.timer.turns import Steps

PORTION: Final = 200  # partitions written before the loop gets its turn; some 2 ms


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    info: Mapping[str, str]
    network: Callable[[], NetworkSnapshot]
    times: RequestTimes
    bounds_ns: Iterable[int]
    timer: Timer
    stalls: StallWatch
    replicas: ReplicaManager
    schedules: Schedules
    shares: ShareManager | None  # None: no share group has fetched yet
    clock_ms: Callable[[], int]
    logs: LogManager
    image: ClusterImage
    purgatories: tuple[DelayedOperationPurgatory, ...]
    groups: Callable[[], Steps[Mapping[str, int]]]  # number of groups, by state
    transactions: Callable[[], Steps[Mapping[str, int]]]
    loading: Mapping[str, Loader]  # the loader of each coordinator, by its internal topic
    throttled: Mapping[str, int]  # number of throttled requests, by quota
    authorizer: Authorizer | None = None
    membership: Callable[[], Membership | None] = lambda: None  # None: this broker is alone


async def metrics(sources: Sources) -> str:
    page = Exposition()
    page.gauge("ixion_info", "Version and ids of this broker.", [(sources.info, 1)])
    requests(page, sources)
    network(page, sources.network())
    waiting(page, sources)
    stalls(page, sources.stalls)
    page.counter("ixion_throttled_total", "Responses with a throttle time, by quota.", of("quota", sources.throttled))
    if sources.authorizer is not None:
        rules(page, sources.authorizer)
    replicas(page, sources.replicas, sources.image)
    membership(page, sources.membership())
    schedules(page, sources.schedules, sources.clock_ms())
    shares(page, sources.shares)
    await coordinators(page, sources)
    await logs(page, sources.logs)
    process(page)
    return page.text()


async def coordinators(page: Exposition, sources: Sources) -> None:
    groups = await in_turns(sources.groups())
    page.gauge("ixion_groups", "Groups coordinated here, by state.", of("state", groups))
    transactions = await in_turns(sources.transactions())
    page.gauge("ixion_transactions", "Transactional ids coordinated here, by state.", of("state", transactions))
    page.counter(
        "ixion_coordinator_records_skipped_total",
        "Records of internal topics that could not be read when their partition was loaded.",
        [({"topic": topic}, loader.skipped) for topic, loader in sources.loading.items()],
    )
    page.gauge(
        "ixion_coordinator_partition_failed",
        "1 for a partition of an internal topic that cannot be loaded; its groups or transactions are unavailable.",
        [
            ({"topic": topic, "partition": str(partition)}, 1)
            for topic, loader in sources.loading.items()
            for partition in loader.failed
        ],
    )


def requests(page: Exposition, sources: Sources) -> None:
    by_api = [({"api": api_name(key)}, times) for key, times in sources.times.by_key().items()]
    page.histogram(
        "ixion_request_seconds",
        "Time from the last byte of a request to the last byte of its response, including waits.",
        [bound / 1e9 for bound in sources.bounds_ns],
        [(labels, times.buckets, int(times.sum_ns) / 1e9) for labels, times in by_api],
    )
    page.counter(
        "ixion_requests_failed_total",
        "Requests that could not be decoded or whose handler failed; their connections were closed.",
        [(labels, times.failed) for labels, times in by_api],
    )


def rules(page: Exposition, authorizer: Authorizer) -> None:
    from ixion.language.model.acl_names import Operation, ResourceKind

    page.gauge("ixion_acls", "ACL rules.", authorizer.rules.count)
    page.counter(
        "ixion_authorization_refused_total",
        "Refusals by the authorizer.",
        [
            ({"operation": Operation(operation).title, "resource": ResourceKind(kind).title}, times)
            for (operation, kind), times in authorizer.audit.refused.items()
        ],
    )


def network(page: Exposition, now: NetworkSnapshot) -> None:
    page.gauge("ixion_connections", "Open connections.", of("listener", now.connections))
    page.gauge("ixion_connection_addresses", "Client addresses with an open connection.", now.addresses)
    page.counter("ixion_connections_accepted_total", "Connections accepted.", now.accepted)
    page.counter("ixion_connections_closed_total", "Connections closed, by reason.", of("reason", now.closed))
    page.counter("ixion_requests_total", "Requests read.", now.requests)
    page.counter("ixion_responses_total", "Responses sent.", now.responses)
    bytes_moved = {"in": now.bytes_in, "out": now.bytes_out}
    page.counter("ixion_network_bytes_total", "Bytes received and sent on all listeners.", of("direction", bytes_moved))
    page.counter("ixion_busy_polls_total", "Busy-poll spins after a response.", now.busy_polls)
    page.counter("ixion_busy_polls_in_vain_total", "Busy-poll spins that saw no next request.", now.busy_polls_in_vain)
    channels = now.channels
    page.gauge(
        "ixion_request_queue_size",
        "Requests that wait for a handler.",
        of("plane", {each.name: each.queued for each in channels}),
    )
    page.gauge(
        "ixion_request_queue_waiting_connections",
        "Connections that wait for room in the queue.",
        of("plane", {each.name: each.waiting for each in channels}),
    )
    page.gauge(
        "ixion_busy_handlers",
        "Handlers that wait for work elsewhere, such as on a thread.",
        of("plane", {each.name: each.busy for each in channels}),
    )
    page.gauge("ixion_response_queue_size", "Responses that wait to be sent.", now.queued_responses)
    page.gauge("ixion_memory_pool_bytes", "Limit of memory for requests; negative: no limit.", now.pool_size)
    page.gauge("ixion_memory_pool_used_bytes", "Memory used by requests.", now.pool_used)
    page.gauge("ixion_memory_pool_waiting_connections", "Connections that wait for memory.", now.pool_waiting)
    page.gauge("ixion_slow_readers", "Connections with a response that is not sent yet.", now.slow_readers)
    page.gauge("ixion_unsent_bytes", "Bytes of responses that are not sent yet.", now.unsent_bytes)


def waiting(page: Exposition, sources: Sources) -> None:
    purgatories = [({"purgatory": each.name}, each.snapshot()) for each in sources.purgatories]
    page.gauge("ixion_purgatory_delayed", "Waiting operations.", [(name, now.delayed) for name, now in purgatories])
    page.gauge("ixion_purgatory_watched", "Entries in watch lists.", [(name, now.watched) for name, now in purgatories])
    page.gauge("ixion_purgatory_keys", "Watched keys.", [(name, now.keys) for name, now in purgatories])
    page.counter(
        "ixion_purgatory_completed_total",
        "Operations completed at once or by an event; the others timed out.",
        [
            sample
            for name, now in purgatories
            for sample in (
                ({**name, "by": "first_try"}, now.completed_at_once),
                ({**name, "by": "event"}, now.completed_by_check),
            )
        ],
    )
    timer = sources.timer.snapshot()
    page.gauge("ixion_timer_tasks", "Tasks waiting in the timing wheel.", timer.size)
    page.gauge("ixion_timer_queued_buckets", "Buckets of the timing wheel that have tasks.", timer.queued_buckets)
    moves = {"added": timer.added, "expired": timer.expired, "cancelled": timer.cancelled}
    page.counter("ixion_timer_tasks_total", "Timer tasks added, expired and cancelled.", of("what", moves))
    page.counter("ixion_timer_falls_total", "Moves from a level of the wheel to a finer one.", timer.fell)
    page.counter("ixion_timer_failures_total", "Timer tasks that raised an exception.", timer.failed)


def stalls(page: Exposition, watch: StallWatch) -> None:
    page.counter(
        "ixion_loop_stalls_total",
        "Turns of the event loop of more than 50 ms, by wall clock and by processor time.",
        of("clock", {"wall": int(watch.stalls), "processor": int(watch.busy_stalls)}),
    )
    page.gauge(
        "ixion_loop_longest_stall_seconds",
        "The longest turn of the event loop since the start, if above 50 ms.",
        [
            ({"clock": "wall"}, int(watch.longest_ns) / 1e9),
            ({"clock": "processor"}, int(watch.longest_busy_ns) / 1e9),
        ],
    )


def replicas(page: Exposition, here: ReplicaManager, image: ClusterImage) -> None:
    counters = here.counters
    page.counter("ixion_messages_in_total", "Records appended from producers.", counters.messages_in)
    page.counter("ixion_bytes_in_total", "Bytes appended from producers, as stored.", counters.bytes_in)
    page.counter("ixion_bytes_out_total", "Bytes of records fetched.", counters.bytes_out)
    page.counter("ixion_fetches_total", "Fetches answered.", counters.fetches)
    page.counter(
        "ixion_replication_bytes_total",
        "Bytes of records copied between brokers: in as a follower, out to followers.",
        of("direction", {"in": counters.copied_in, "out": counters.copied_out}),
    )
    page.counter(
        "ixion_isr_changes_total",
        "Changes of the ISR by leaders on this broker.",
        of("what", {"shrink": counters.isr_shrinks, "expand": counters.isr_expands}),
    )
    page.counter(
        "ixion_failed_produces_total",
        "Partitions in produce responses with an error.",
        of("error", {code.name: count for code, count in counters.failed_produces.items()}),
    )
    page.counter(
        "ixion_failed_fetches_total",
        "Partitions in fetch responses with an error.",
        of("error", {code.name: count for code, count in counters.failed_fetches.items()}),
    )
    partitions = [each for each in here.partitions.values() if each.covers is None]  # without siblings
    led = [partition for partition in partitions if partition.leads]
    page.gauge("ixion_topics", "Topics of the cluster.", len(image.topics))
    page.gauge("ixion_partitions", "Replicas on this broker.", len(partitions))
    page.gauge("ixion_leaders", "Partitions that this broker leads.", len(led))
    page.gauge(
        "ixion_under_replicated_partitions",
        "Partitions led by this broker with fewer in-sync replicas than replicas.",
        sum(len(partition.isr) < len(partition.replicas) for partition in led),
    )
    page.gauge(
        "ixion_under_min_isr_partitions",
        "Partitions led by this broker with too few in-sync replicas for acks=all.",
        sum(len(partition.isr) < partition.min_isr for partition in led),
    )
    page.gauge(
        "ixion_offline_partitions",
        "Partitions of the cluster without a leader.",
        sum(partition.leader < 0 for topic in image.topics.values() for partition in topic.partitions),
    )
    page.gauge("ixion_offline_replicas", "Replicas on this broker whose disk has failed.", len(here.offline))
    page.gauge(
        "ixion_delayed_records",
        "Records of a partition with delayed delivery that are not due yet.",
        [({"topic": topic, "partition": number}, count) for (topic, number), count in here.delays.pending().items()],
    )
    page.counter(
        "ixion_clock_jumps_total", "Jumps of the wall clock seen by delayed delivery.", here.delays.clock_jumps
    )


def schedules(page: Exposition, here: Schedules, now_ms: int) -> None:
    """Records with a delivery delay of their own."""
    figures = here.figures
    states = [(each, each.state) for each in here]
    labels: list[tuple[Labels, State]] = [
        ({"topic": each.partition.topic, "partition": each.partition.number}, state)
        for each, state in states
        if state is not None
    ]
    page.gauge("ixion_schedule_pending", "Delayed records.", [(at, state.count) for at, state in labels])
    page.gauge("ixion_schedule_pending_bytes", "Bytes of delayed records.", [(at, state.size) for at, state in labels])
    page.gauge(
        "ixion_schedule_near",
        "Delayed records in memory: those due in the current hour of the clock.",
        [(at, state.pending.near) for at, state in labels],
    )
    page.gauge(
        "ixion_schedule_oldest_overdue_seconds",
        "How long the first delayed record is overdue.",
        [(at, state.pending.overdue_ms(now_ms) / 1e3) for at, state in labels],
    )
    page.histogram(
        "ixion_schedule_lateness_seconds",
        "Time from due time to delivery.",
        [bound / 1e3 for bound in BOUNDS_MS],
        [({}, figures.lateness, figures.lateness_sum_ms / 1e3)],
    )
    for name, meaning, count in (
        ("accepted", "Records accepted for later delivery.", figures.accepted),
        ("delivered", "Records delivered when they were due.", figures.delivered),
        ("cancelled", "Records cancelled before they were due.", figures.cancelled),
        ("superseded", "Records replaced by one with the same schedule id.", figures.superseded),
        ("aborted", "Records whose transaction was aborted.", figures.aborted),
        ("rejected", "Records refused in topics with delivery.delay.mode=record.", figures.rejected),
        ("dropped", "Delayed records of deleted topics.", figures.dropped),
        ("orphaned", "Delayed records dropped at a start because their batch was not written.", figures.orphaned),
        ("failures", "Deliveries that failed and were retried.", figures.failures),
        ("clock_jumps", "Jumps of the wall clock while records waited.", figures.clock_jumps),
    ):
        page.counter(f"ixion_schedule_{name}_total", meaning, count)
    page.gauge(
        "ixion_schedule_longest_step_seconds", "The longest step of a delivery so far.", figures.longest_step_ns / 1e9
    )


async def logs(page: Exposition, manager: LogManager) -> None:
    states = [directory.state for directory in manager.directories]
    page.gauge(
        "ixion_log_directory_offline",
        "1 for a log directory that has failed.",
        [({"directory": state.path}, int(state.offline)) for state in states],
    )
    page.gauge(
        "ixion_log_directory_full",
        "1 for a log directory whose disk is full: appends are refused.",
        [({"directory": state.path}, int(state.full)) for state in states],
    )
    page.gauge("ixion_unreadable_partitions", "Partition folders that could not be loaded.", len(manager.unreadable))
    every: list[Log] = sorted(manager.logs.values(), key=lambda log: (log.topic, log.partition))
    labels: list[Labels] = [{"topic": log.topic, "partition": log.partition} for log in every]
    families: tuple[tuple[str, str, Callable[[Log], int]], ...] = (
        ("ixion_log_size_bytes", "Bytes of a partition's segments.", lambda log: log.size),
        ("ixion_log_segments", "Segments of a partition.", lambda log: len(log.segments)),
        ("ixion_log_start_offset", "First offset that can be read.", lambda log: log.log_start),
        ("ixion_log_end_offset", "Offset of the next record.", lambda log: log.end_offset),
        ("ixion_high_watermark", "First offset that consumers cannot read yet.", lambda log: log.high_watermark),
    )
    for name, meaning, value in families:
        page.gauge(name, meaning, [])
        for portion in portions(len(every)):
            page.more(name, [(labels[index], value(every[index])) for index in portion if not every[index].closed])
            await asyncio.sleep(0)


def portions(count: int) -> Iterator[range]:
    for start in range(0, count, PORTION):
        yield range(start, min(start + PORTION, count))


def of(label: str, values: Mapping[str, int]) -> list[tuple[Labels, int]]:
    return [({label: name}, value) for name, value in values.items()]


def api_name(key: int) -> str:
    try:
        return ApiKey(key).title
    except ValueError:
        return str(key)
