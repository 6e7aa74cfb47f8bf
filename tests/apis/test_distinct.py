"""Every list of every served API is reduced to distinct places before its handler sees it."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast, get_args, get_origin

import pytest

from ixion.broker import apis
from ixion.broker.apis.call import Call
from ixion.broker.apis.distinct import AS_SENT, FIRST, ONCE, STEP, TWICE, Rule, distinct, reduce, reduce_steps
from ixion.broker.apis.repeats import changing
from ixion.broker.apis.served import SERVED, api_of, repeats_of
from ixion.language.protocol.flaws import EncodeError
from ixion.language.protocol.messages.k01_fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from ixion.language.protocol.messages.k02_list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ixion.language.protocol.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from ixion.language.protocol.messages.k09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from ixion.language.protocol.messages.k19_create_topics import CreatableTopic, CreateTopicsRequest
from ixion.language.protocol.messages.k32_describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ixion.language.protocol.notation import Struct, StructMeta, empty
from ixion.language.protocol.registry import ApiKey
from ixion.testing.broker import Broker
from tests.apis.asking import Asking

RULES = {key: rules for key in SERVED if (rules := repeats_of(api_of(key)))}


def lists_of(table: StructMeta) -> Iterator[tuple[str, Any]]:
    """The list fields of a table: name and type of the elements."""
    for column in table.columns:
        for kind in (column.annotation, *get_args(column.annotation)):
            if get_origin(kind) is tuple:
                yield column.name, get_args(kind)[0]


def check_rules(table: StructMeta, rules: dict[str, Rule], where: str) -> None:
    lists = dict(lists_of(table))
    assert rules.keys() == lists.keys(), f"{where}: the lists are {sorted(lists)}, the rules are for {sorted(rules)}"
    for name, element in lists.items():
        rule = rules[name]
        if isinstance(element, StructMeta):
            fields = {column.name for column in element.columns}
            assert fields.issuperset(rule.key), f"{where}.{name}"
            assert rule.key or rule.kept == AS_SENT, f"{where}.{name}: no key"
            check_rules(element, rule.inner, f"{where}.{name}")
        else:
            assert (rule.key, rule.inner) == ((), {}), f"{where}.{name}"


@pytest.mark.parametrize("key", SERVED, ids=lambda key: key.stem)
def test_every_list_of_a_served_api_has_a_rule(key: ApiKey) -> None:
    check_rules(key.request_table, dict(RULES.get(key, {})), key.title)


@pytest.mark.parametrize("key", SERVED, ids=lambda key: key.stem)
def test_the_module_of_an_api_opens_with_its_versions(key: ApiKey) -> None:
    opening = Path(apis.__path__[0], f"{key.stem}.py").read_text().partition(":")[0]
    found = re.match(r'"""(\w+)(?: \((\d+)\))?, (?:versions? )?(\d+)(?:(?: to |-| and )(\d+))?\b', opening)
    assert found, opening
    title, number, oldest, newest = found.groups()
    assert (title, int(number or key)) == (key.title, key)
    assert (int(oldest), int(newest or oldest)) == (key.oldest, key.newest)


def test_every_handler_has_a_place_in_the_registry() -> None:
    """What is served is found by the names of files: each belongs to a key."""
    files = {path.stem for path in Path(apis.__path__[0]).glob("k[0-9]*.py")}
    assert files == {key.stem for key in SERVED}
    assert len(SERVED) > 60


def at(number: int, offset: int = 0) -> FetchPartition:
    return FetchPartition(partition=number, fetch_offset=offset, partition_max_bytes=100)


def fetch(*topics: FetchTopic, forgotten: tuple[ForgottenTopic, ...] = ()) -> FetchRequest:
    return FetchRequest(max_wait_ms=0, min_bytes=1, topics=topics, forgotten_topics_data=forgotten)


def test_the_last_of_a_repeated_partition_counts_in_the_place_of_the_first() -> None:
    request = fetch(FetchTopic(topic="t", partitions=(at(1), at(0), at(1, 7))))
    assert reduce(request, dict(RULES[ApiKey.FETCH])) == fetch(FetchTopic(topic="t", partitions=(at(1, 7), at(0))))


def test_the_partitions_of_a_repeated_topic_are_joined() -> None:
    request = fetch(
        FetchTopic(topic="t", partitions=(at(0), at(1))),
        FetchTopic(topic="u", partitions=(at(0),)),
        FetchTopic(topic="t", partitions=(at(1, 5), at(2))),
        forgotten=(ForgottenTopic(topic="t", partitions=(3, 3)), ForgottenTopic(topic="t", partitions=(4, 3))),
    )
    assert reduce(request, dict(RULES[ApiKey.FETCH])) == fetch(
        FetchTopic(topic="t", partitions=(at(0), at(1, 5), at(2))),
        FetchTopic(topic="u", partitions=(at(0),)),
        forgotten=(ForgottenTopic(topic="t", partitions=(3, 4)),),
    )


def test_a_request_without_repeats_is_passed_on_as_it_is() -> None:
    request = fetch(FetchTopic(topic="t", partitions=(at(0), at(1))), FetchTopic(topic="u", partitions=(at(0),)))
    assert reduce(request, dict(RULES[ApiKey.FETCH])) is request


def test_where_repeats_are_refused_two_are_left_to_be_seen() -> None:
    wish = ListOffsetsPartition(partition_index=0, timestamp=-1)
    topic = ListOffsetsTopic(name="t", partitions=(wish,) * 50)
    (left,) = reduce(ListOffsetsRequest(replica_id=-1, topics=(topic,) * 50), dict(RULES[ApiKey.LIST_OFFSETS])).topics
    assert left.partitions == (wish, wish)
    new = CreatableTopic(name="t", num_partitions=1, replication_factor=1, assignments=(), configs=())
    assert len(reduce(CreateTopicsRequest(topics=(new,) * 50), dict(RULES[ApiKey.CREATE_TOPICS])).topics) == 2


def test_a_topic_of_metadata_goes_by_its_id_whatever_name_stands_beside_it() -> None:
    named = [MetadataRequestTopic(name=f"{number}", topic_id=b"x" * 16) for number in range(50)]
    by_name = [MetadataRequestTopic(name="t")] * 50
    left = reduce(MetadataRequest(topics=(*named, *by_name)), dict(RULES[ApiKey.METADATA]))
    assert left.topics == (named[-1], by_name[0])


def test_a_list_that_is_null_asks_for_everything_and_so_do_repeats_with_it() -> None:
    one = OffsetFetchRequestTopics(name="t", partition_indexes=(0, 0))
    some = OffsetFetchRequestGroup(group_id="g", topics=(one, one))
    every = OffsetFetchRequestGroup(group_id="g", topics=None)
    left = reduce(OffsetFetchRequest(groups=(some, every, some)), dict(RULES[ApiKey.OFFSET_FETCH]))
    assert [group.topics for group in left.groups] == [None]
    resources = [
        DescribeConfigsResource(resource_type=2, resource_name="t", configuration_keys=keys)
        for keys in (("a",), ("b", "a"))
    ]
    described = reduce(DescribeConfigsRequest(resources=tuple(resources)), dict(RULES[ApiKey.DESCRIBE_CONFIGS]))
    assert [each.configuration_keys for each in described.resources] == [("a", "b")]


FEW = 3


def full(kind: Any) -> Any:
    """An element of a list. A structure has `FEW` equal entries in each of its own lists."""
    if isinstance(kind, StructMeta):
        return kind.blank().replace(**{name: (full(element),) * FEW for name, element in lists_of(kind)})
    return empty(kind)


def check_reduced(value: Struct, rules: dict[str, Rule]) -> None:
    for name, rule in rules.items():
        entries = getattr(value, name)
        if not entries:
            continue  # the version has no such list
        assert len(entries) == {AS_SENT: FEW, ONCE: 1, FIRST: 1, TWICE: 2}[rule.kept], name
        for entry in entries:
            if rule.inner:
                check_reduced(entry, rule.inner)


def repeating(key: ApiKey, version: int) -> Struct:
    """A request with repeats in every list that the version has."""
    body = key.request_table.blank()
    assert isinstance(body, Struct)
    for name, element in lists_of(key.request_table):
        wanted = body.replace(**{name: (full(element),) * FEW})
        try:
            key.request(version).encode(wanted)
        except EncodeError:
            continue  # this version has no such list
        body = wanted
    return body


def test_the_handler_of_each_api_gets_distinct_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole way, over a socket: requests have repeats in every list, and handlers get none of them."""
    seen: list[Struct] = []

    def spy(key: ApiKey) -> Any:
        def handle(call: Call) -> Struct:
            seen.append(call.body)
            answer = key.response_table.blank()
            assert isinstance(answer, Struct)
            return answer

        return lambda _services: handle

    keys = [key for key in SERVED if key in RULES]
    for key in keys:
        monkeypatch.setattr(f"ixion.broker.apis.{key.stem}.make", spy(key))
    with Broker() as broker, Asking(broker.bootstrap) as asking:
        for key in keys:
            for version in range(key.oldest, key.newest + 1):
                asking.ask(repeating(key, version), Struct, version)
                got = seen.pop()
                held = {name: rule for name, rule in RULES[key].items() if getattr(got, name)}
                check_reduced(got, held)
    assert not seen


def in_steps(body: Struct, rules: dict[str, Rule]) -> Struct:
    steps = reduce_steps(body, rules)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return cast(Struct, end.value)


def test_a_long_request_is_reduced_in_steps_to_the_same() -> None:
    chance = random.Random(7)
    for most in (3, 1_000):  # many repeats, and few
        for _ in range(20):
            topics = tuple(
                ListOffsetsTopic(
                    name=f"t{chance.randrange(most)}",
                    partitions=tuple(
                        ListOffsetsPartition(partition_index=chance.randrange(most), timestamp=-1)
                        for _ in range(chance.choice((0, 1, 5, 300)))
                    ),
                )
                for _ in range(12)
            )
            created = tuple(
                CreatableTopic(
                    name=f"t{chance.randrange(most)}",
                    num_partitions=1,
                    replication_factor=1,
                    assignments=(),
                    configs=(),
                )
                for _ in range(400)
            )
            for key, body in (
                (ApiKey.LIST_OFFSETS, ListOffsetsRequest(replica_id=-1, topics=topics)),
                (ApiKey.CREATE_TOPICS, CreateTopicsRequest(topics=created, timeout_ms=0)),
            ):
                rules = dict(RULES[key])
                assert in_steps(body, rules) == reduce(body, rules)


def test_one_step_looks_at_few_entries() -> None:
    body = MetadataRequest(topics=tuple(MetadataRequestTopic(name=f"t{number}") for number in range(10_000)))
    assert sum(1 for _ in reduce_steps(body, dict(RULES[ApiKey.METADATA]))) >= 10_000 // STEP


def test_entries_are_joined_in_steps() -> None:
    """Half as many topics as entries are left, and to make each of them takes some microseconds."""
    topics = tuple(FetchTopic(topic=f"t{number % 5_000}", partitions=()) for number in range(10_000))
    body = FetchRequest.blank().replace(topics=topics)
    rule = RULES[ApiKey.FETCH]["topics"]
    assert sum(1 for _ in distinct(topics, rule)) >= (len(topics) + 5_000) // STEP - 1
    assert in_steps(body, dict(RULES[ApiKey.FETCH])) == body.replace(topics=topics[:5_000])


def test_rules_that_change_nothing_are_left_out() -> None:
    assert changing(RULES[ApiKey.PRODUCE]) == {}
    assert set(changing(RULES[ApiKey.FETCH])) == {"topics", "forgotten_topics_data"}
    assert set(changing(RULES[ApiKey.CREATE_PARTITIONS])) == {"topics"}
