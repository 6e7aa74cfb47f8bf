"""Sends requests about many things to the brokers that can answer them, and repeats them for what has moved.

A `Route` groups keys (topics, partitions, groups …) by the broker to ask; `spread` asks all of these brokers at the
same time. After a retriable fault the request is repeated, with fresh metadata and after a pause, until the time is up.
Then the remaining keys fail with a TimedOutError, and the others keep their results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple, TypeVar

from ixion.clients.admin.plan import ANY, CONTROLLER, Ask, Call, Plan
from ixion.clients.admin.results import Results
from ixion.clients.core.connection import ANY_VERSION
from ixion.clients.faults import GarbledError, TimedOutError, UnknownTopicError, UnreachableError, error_code
from ixion.clients.metadata import ClusterMetadata, Topic, TopicPartition, read_metadata
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.messages.k03_metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ixion.language.protocol.notation import Struct
from ixion.language.protocol.registry import ApiKey

K = TypeVar("K")
V = TypeVar("V")
S = TypeVar("S", bound=Struct)

GROUP: Final = 0
TRANSACTION: Final = 1
NO_CREATION_FROM: Final = 4  # the first version of Metadata that can leave a missing topic uncreated
LAST_OF_ONE: Final = 3  # later versions of FindCoordinator ask for several keys at once

# Groups keys by node id; a key without a broker gets a fault. `True`: this is a retry, so metadata may be stale.
Routed = Plan[tuple[dict[int, list[K]], dict[K, KafkaError]]]
Route = Callable[[Call, Sequence[K], bool], Routed[K]]


class Spread(NamedTuple):
    """How `spread` asks: one API, in these versions, repeated for retriable codes except `final` ones.

    `already` is the code of a change that is done already: after a lost answer it means that we did it.
    """

    api: ApiKey
    oldest: int = 0
    newest: int = ANY_VERSION
    final: tuple[ErrorCode, ...] = ()
    already: ErrorCode | None = None


def spread(
    call: Call,
    how: Spread,
    keys: Iterable[K],
    route: Route[K],
    make: Callable[[list[K], int], Struct],
    read: Callable[[Struct], Mapping[K, V | KafkaError]],
    done_already: Callable[[K], V] | None = None,
) -> Plan[Results[K, V]]:
    """`make` builds the request about some keys, in a version; `read` takes an answer apart."""
    results: Results[K, V] = Results()
    left = list(dict.fromkeys(keys))
    lost: set[K] = set()
    is_again = False
    try:
        while left:
            targets, refused = yield from route(call, left, is_again)
            again: list[K] = []
            for key, fault in refused.items():
                _settle(call, how, results, again, key, fault)
            asks = [Ask(target, how.api, partial(make, led), how.oldest, how.newest) for target, led in targets.items()]
            outcomes = yield asks
            for led, outcome in zip(targets.values(), outcomes, strict=True):
                if isinstance(outcome, KafkaError):
                    if may_pass(outcome):
                        lost.update(led)
                    for key in led:
                        _settle(call, how, results, again, key, outcome)
                    continue
                try:
                    found = read(outcome)
                except (LookupError, ValueError) as error:  # a number that means nothing
                    found = dict.fromkeys(led, GarbledError(f"the broker's answer is invalid: {error}"))
                for key in led:
                    value = found.get(key, GarbledError(f"the broker left out {key}"))
                    is_ours = key in lost and isinstance(value, KafkaError) and value.code == how.already
                    if is_ours and done_already is not None:
                        results.done[key] = done_already(key)
                    else:
                        _settle(call, how, results, again, key, value)
            left = again
            is_again = True
            if left:
                yield call.pause_s()
    except TimedOutError as late:
        for key in left:
            if key not in results:
                results.faults[key] = late
    return results


def _settle(call: Call, how: Spread, results: Results[K, V], again: list[K], key: K, value: V | KafkaError) -> None:
    if not isinstance(value, KafkaError):
        results.done[key] = value
    elif may_pass(value) and value.code not in how.final and not isinstance(value, UnknownTopicError):
        call.reason = value
        again.append(key)
    else:
        results.faults[key] = value


def may_pass(fault: KafkaError) -> bool:
    """Whether a retry can help."""
    return fault.code.retriable or isinstance(fault, UnreachableError)


def fault_of(code: int, message: str | None, about: object) -> KafkaError | None:
    """The fault of a part of an answer, if it has one; `about` names the part."""
    if code == 0:
        return None
    found = error_code(code)
    return KafkaError(found, f"{about}: {message or found.explanation}")


def one(
    call: Call,
    target: int,
    api: ApiKey,
    make: Callable[[int], Struct],
    kind: type[S],
    *,
    oldest: int = 0,
    newest: int = ANY_VERSION,
    check: Callable[[S], KafkaError | None] | None = None,
) -> Plan[S]:
    """Send one request, and repeat it until it is answered; `check` finds the fault of the whole answer."""
    while True:
        if target == CONTROLLER and call.cluster.controller not in call.cluster.nodes:
            yield from metadata(call, ())
        (outcome,) = yield [Ask(target, api, make, oldest, newest)]
        fault = outcome if isinstance(outcome, KafkaError) else None
        if isinstance(outcome, kind):
            fault = None if check is None else check(outcome)
            if fault is None:
                return outcome
        assert fault is not None
        if not may_pass(fault):
            raise fault
        call.reason = fault
        yield call.pause_s()
        if target >= 0 or target == CONTROLLER:
            yield from metadata(call, ())


def metadata(call: Call, topics: Sequence[str] | None, *, create: bool = False) -> Plan[ClusterMetadata]:
    """Fresh metadata from a broker; of all topics if None."""
    wanted = None if topics is None else tuple(MetadataRequestTopic(name=name) for name in topics)
    request = MetadataRequest(topics=wanted, allow_auto_topic_creation=create)
    oldest = 1 if create else NO_CREATION_FROM
    answer = yield from one(call, ANY, ApiKey.METADATA, lambda _: request, MetadataResponse, oldest=oldest)
    found = read_metadata(answer)
    if found.nodes:
        call.client.learn(found, list(found.topics) if topics is None else topics, call.now_s)
    return found


def nodes(call: Call) -> Plan[list[int]]:
    """The ids of all brokers."""
    if not call.cluster.nodes:
        yield from metadata(call, ())
    return sorted(call.cluster.nodes)


def to_controller(call: Call, keys: Sequence[K], is_again: bool) -> Routed[K]:
    if is_again or call.cluster.controller not in call.cluster.nodes:
        yield from metadata(call, ())
    return {CONTROLLER: list(keys)}, {}


def to_broker(broker_of: Callable[[K], int]) -> Route[K]:
    """Routes each key to its broker."""

    def route(call: Call, keys: Sequence[K], is_again: bool) -> Routed[K]:
        if is_again or not call.cluster.nodes:
            yield from metadata(call, ())
        known = call.cluster.nodes
        targets: dict[int, list[K]] = {}
        refused: dict[K, KafkaError] = {}
        for key in keys:
            broker = broker_of(key)
            if broker in known or broker == ANY:
                targets.setdefault(broker, []).append(key)
            else:
                there = ", ".join(map(str, sorted(known)))
                text = f"there is no broker {broker}, only {there}"
                refused[key] = KafkaError(ErrorCode.RESOURCE_NOT_FOUND, text)
        return targets, refused

    return route


def to_leaders(call: Call, keys: Sequence[TopicPartition], is_again: bool) -> Routed[TopicPartition]:
    """Routes each partition to its leader. A topic that may have grown is looked up again."""
    known = call.cluster.topics
    faults: dict[str, KafkaError] = {}
    missing = sorted(
        {
            place.topic
            for place in keys
            if is_again or place.topic not in known or place.partition >= len(known[place.topic].partitions)
        }
    )
    if missing:
        faults = yield from look_up(call, missing)
    targets: dict[int, list[TopicPartition]] = {}
    refused: dict[TopicPartition, KafkaError] = {}
    for place in keys:
        topic = call.cluster.topics.get(place.topic)
        if topic is None:
            refused[place] = faults.get(place.topic) or KafkaError(
                ErrorCode.LEADER_NOT_AVAILABLE, f"{place}: no metadata"
            )
            continue
        try:
            targets.setdefault(leader_in(topic, place), []).append(place)
        except KafkaError as fault:
            refused[place] = fault
    return targets, refused


def look_up(call: Call, names: Sequence[str]) -> Plan[dict[str, KafkaError]]:
    """Fetch fresh metadata of topics. Returns the faults; an unknown topic is reported with the closest name."""
    found = yield from metadata(call, names)
    unknown = [name for name in names if unknown_in(found, name)]
    others: list[str] = []
    if unknown:
        everything = yield from metadata(call, None)
        others = list(everything.topics)
    faults: dict[str, KafkaError] = {}
    for name in names:
        code = found.faults.get(name)
        if name in unknown:
            faults[name] = UnknownTopicError(name, others)
        elif code is not None:
            faults[name] = KafkaError(code, f"topic {name!r}: {code.explanation}")
    return faults


def unknown_in(found: ClusterMetadata, name: str) -> bool:
    code = found.faults.get(name)
    return name not in found.topics and (code is None or code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def leader_in(topic: Topic, place: TopicPartition) -> int:
    known = topic.partitions
    if not 0 <= place.partition < len(known):
        text = f"topic {place.topic!r} has partitions 0 to {len(known) - 1}, not {place.partition}"
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, text)
    leader = known[place.partition].leader
    if leader < 0:
        raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"{place} has no leader at the moment")
    return leader


def to_coordinators(kind: int) -> Route[str]:
    """Routes each group, or transactional id, to its coordinator."""

    def route(call: Call, keys: Sequence[str], is_again: bool) -> Routed[str]:
        if is_again or not call.cluster.nodes:
            yield from metadata(call, ())
        found = yield from find_coordinators(kind, keys)
        what = "group" if kind == GROUP else "transactional id"
        targets: dict[int, list[str]] = {}
        refused: dict[str, KafkaError] = {}
        for key in keys:
            code, node_id, message = found.get(key, (int(ErrorCode.COORDINATOR_NOT_AVAILABLE), -1, None))
            fault = fault_of(code, message, f"the coordinator of {what} {key!r}")
            if fault is None:
                targets.setdefault(node_id, []).append(key)
            else:
                refused[key] = fault
        return targets, refused

    return route


def find_coordinators(kind: int, keys: Sequence[str]) -> Plan[dict[str, tuple[int, int, str | None]]]:
    """Error code, node id and message of each: in one request, or one by one if the broker is too old."""
    from ixion.language.protocol.messages.k10_find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse

    api = ApiKey.FIND_COORDINATOR
    request = FindCoordinatorRequest(key_type=kind, coordinator_keys=tuple(keys))
    (outcome,) = yield [Ask(ANY, api, lambda _: request, oldest=LAST_OF_ONE + 1)]
    if isinstance(outcome, FindCoordinatorResponse):
        return {each.key: (each.error_code, each.node_id, each.error_message) for each in outcome.coordinators}
    found: dict[str, tuple[int, int, str | None]] = {}
    if isinstance(outcome, KafkaError) and outcome.code != ErrorCode.UNSUPPORTED_VERSION:
        return dict.fromkeys(keys, (int(outcome.code), -1, outcome.message))
    outcomes = yield [
        Ask(ANY, api, partial(of_one, FindCoordinatorRequest(key=key, key_type=kind)), newest=LAST_OF_ONE)
        for key in keys
    ]
    for key, each in zip(keys, outcomes, strict=True):
        if isinstance(each, FindCoordinatorResponse):
            found[key] = (each.error_code, each.node_id, each.error_message)
        elif isinstance(each, KafkaError):
            found[key] = (int(each.code), -1, each.message)
    return found


def of_one(request: Struct, _: int) -> Struct:
    return request


def every_node(
    call: Call,
    api: ApiKey,
    make: Callable[[int], Struct],
    kind: type[S],
    check: Callable[[S], KafkaError | None] | None = None,
) -> Plan[dict[int, S]]:
    """The answers of all brokers. A broker that has left the metadata is skipped; any other must answer."""
    found: dict[int, S] = {}
    left = yield from nodes(call)
    while left:
        outcomes = yield [Ask(node, api, make) for node in left]
        again = False
        for node, outcome in zip(left, outcomes, strict=True):
            fault = outcome if isinstance(outcome, KafkaError) else None
            if isinstance(outcome, kind):
                fault = None if check is None else check(outcome)
                if fault is None:
                    found[node] = outcome
                    continue
            assert fault is not None
            if not may_pass(fault):
                raise fault
            call.reason = fault
            again = True
        if again:
            yield call.pause_s()
            yield from metadata(call, ())
        left = [node for node in sorted(call.cluster.nodes) if node not in found] if again else []
    return found


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, partition in partitions:
        found.setdefault(topic, []).append(partition)
    return found
