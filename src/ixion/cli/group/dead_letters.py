"""`ixion group dead-letters`: what a share group could not process, and another attempt at it.

The letters stay in their topic. How far they were sent again is committed for a group of its own,
`<group>.dead-letters`, so that a second call does not send them twice; one that is killed may.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple, cast

from ixion.cli.access import Access
from ixion.cli.command import UsageError
from ixion.cli.options import administer, reading
from ixion.cli.output import note, show_json, show_table
from ixion.cli.record_json import show_bytes
from ixion.clients.admin.configs import Resource, describe_configs
from ixion.clients.admin.group_offsets import alter_group_offsets, list_group_offsets
from ixion.clients.admin.runner import AdminRunner
from ixion.clients.admin.starts import choose_partitions, ends
from ixion.clients.faults import UnknownTopicError
from ixion.clients.metadata import TopicPartition
from ixion.language.model.errors import KafkaError
from ixion.language.model.resource_type import ResourceType
from ixion.language.records.record import Record

SETTING: Final = "errors.deadletterqueue.topic.name"
PREFIX: Final = "__dlq.errors."
POLL_S: Final = 1.0
Offsets = dict[TopicPartition, int]


class Letter(NamedTuple):
    source: TopicPartition
    offset: int
    deliveries: int
    reason: str
    record: Record


def dead_letters(name: str, send_again: bool, everything: bool, as_json: bool, access: Access) -> None:
    with administer(access) as admin:
        topic = topic_of(admin, name)
        begin, end = admin.run(ends, places_of(admin, topic))
        done = {} if everything else progress(admin, name)
        begin = {place: max(first, done.get(place, first)) for place, first in begin.items()}
        letters = [letter for letter in read(access, begin, end) if letter[0] == name]
        found = [letter for _, letter in letters]
        if as_json:
            show_json(map(fields, found))
        else:
            rows = [(*each.source, each.offset, each.deliveries, each.reason, brief(each.record.key)) for each in found]
            columns = ("topic", "partition", "offset", "deliveries", "reason", "key")
            show_table(columns, rows, right=("partition", "offset", "deliveries"))
        if send_again:
            send(admin, access, found)
            if end:
                admin.run(alter_group_offsets, group_of(name), end).check()
        elif found:
            note("nothing was sent; add --send-again to do it")


def topic_of(admin: AdminRunner, name: str) -> str:
    resource = Resource(ResourceType.GROUP, name)
    entries = admin.run(describe_configs, [resource])[resource]
    topic = next((each.value for each in entries if each.name == SETTING), None)
    if not topic:
        raise UsageError(f"group {name} writes no dead letters: ixion config set group {name} {SETTING}=dlq.{name}")
    return topic


def places_of(admin: AdminRunner, topic: str) -> list[TopicPartition]:
    try:
        return admin.run(choose_partitions, topic)
    except UnknownTopicError:
        note(f"there is no topic {topic} yet")
        return []


def group_of(name: str) -> str:
    return f"{name}.dead-letters"


def progress(admin: AdminRunner, name: str) -> Offsets:
    """How far letters were sent again."""
    stored = admin.run(list_group_offsets, [group_of(name)])[group_of(name)]
    return {place: each.offset for place, each in stored.items()}


def read(access: Access, begin: Offsets, end: Offsets) -> Iterator[tuple[str, Letter]]:
    """Letters with the groups that they are of. Other records of the topic are left out."""
    for record in records(access, begin, end):
        facts = {key[len(PREFIX) :]: (value or b"").decode() for key, value in record.headers if key.startswith(PREFIX)}
        try:
            source = TopicPartition(facts["topic"], int(facts["partition"]))
            letter = Letter(source, int(facts["offset"]), int(facts["delivery.count"]), facts["message"], record)
            yield facts["group"], letter
        except (KeyError, ValueError):
            continue


def records(access: Access, begin: Offsets, end: Offsets) -> Iterator[Record]:
    from ixion.clients.reader import Reader

    left = {place: first for place, first in begin.items() if first < end[place]}
    if not left:
        return
    with Reader(access.bootstrap, left, read_committed=False, **reading(access)) as reader:
        while left:
            for fetched in reader.poll(POLL_S):
                place = fetched.partition
                for record in fetched.records():
                    if record.offset < end[place]:
                        yield record
                if fetched.next_offset >= end[place] and place in left:
                    del left[place]
                    reader.drop(place)


def send(admin: AdminRunner, access: Access, letters: list[Letter]) -> None:
    """Send the records to the partitions that they came from, as they were."""
    from ixion.cli.produce.commands import producer_settings
    from ixion.clients.producer import Producer

    gone = 0
    with Producer(access.bootstrap, **producer_settings("all", "none", access)) as producer:
        sent = []
        for letter in letters:
            record = letter.record
            headers = [each for each in record.headers if not each[0].startswith(PREFIX)]
            if record.key is None and record.value is None and not headers:  # no copy
                original = find(admin, access, letter)
                if original is None:
                    gone += 1
                    note(f"{letter.source} {letter.offset} is gone from its topic, and its letter has no copy")
                    continue
                record, headers = original, original.headers
            sent.append(
                producer.send(
                    letter.source.topic,
                    record.value,
                    key=record.key,
                    partition=letter.source.partition,
                    headers=headers,
                )
            )
        for each in sent:
            each.result()
    note(f"{len(sent)} sent again" + (f", {gone} are gone" if gone else ""))


def find(admin: AdminRunner, access: Access, letter: Letter) -> Record | None:
    """The record itself, if its topic still has it."""
    try:
        first, end = admin.run(ends, [letter.source])
    except KafkaError:
        return None
    if not first[letter.source] <= letter.offset < end[letter.source]:
        return None
    found = records(access, {letter.source: letter.offset}, {letter.source: letter.offset + 1})
    return next((record for record in found if record.offset == letter.offset), None)


def fields(letter: Letter) -> dict[str, Any]:
    record = letter.record
    return {
        "topic": letter.source.topic,
        "partition": letter.source.partition,
        "offset": letter.offset,
        "deliveries": letter.deliveries,
        "reason": letter.reason,
        "timestamp": record.timestamp,
        "key": show_bytes(record.key),
        "value": show_bytes(record.value),
        "headers": [[name, show_bytes(value)] for name, value in record.headers if not name.startswith(PREFIX)],
    }


def brief(key: bytes | None) -> str | None:
    shown = show_bytes(key)
    return shown if shown is None or isinstance(shown, str) else cast(str, shown["base64"])
