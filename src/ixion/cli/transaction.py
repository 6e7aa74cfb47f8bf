"""`ixion transaction`: list, describe, hanging, abort."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ixion.cli.access import CLUSTER, Access
from ixion.cli.command import LARGEST_OFFSET, Argument, Command, Group, Option, whole
from ixion.cli.options import AS_JSON, YES, administer, confirm
from ixion.cli.output import note, show_json, show_table

if TYPE_CHECKING:
    from ixion.clients.admin.transactions import OpenTransaction


def list_(state: str | None, as_json: bool, access: Access) -> None:
    from ixion.clients.admin.transactions import list_transactions

    with administer(access) as admin:
        found = admin.run(list_transactions)
    if state is not None:
        found = [each for each in found if each.state.lower() == state.lower()]
    if as_json:
        show_json(each._asdict() for each in found)
    elif not found:
        note("there are no transactions")
    else:
        columns = ("transactional id", "producer id", "state", "coordinator")
        show_table(columns, found, right=("producer id", "coordinator"))


def describe(name: str, as_json: bool, access: Access) -> None:
    from ixion.cli.consume.format import local_time
    from ixion.clients.admin.transactions import describe_transactions

    with administer(access) as admin:
        found = admin.run(describe_transactions, [name])[name]
    if as_json:
        places = [{"topic": place.topic, "partition": place.partition} for place in found.partitions]
        show_json([{**found._asdict(), "partitions": places}])
        return
    since = "" if found.started_ms is None else f", begun at {local_time(found.started_ms)}"
    print(f"{name} is {found.state}{since}")
    print(f"producer {found.producer_id}, epoch {found.producer_epoch}, timeout {found.timeout_ms} ms")
    if found.partitions:
        show_table(("topic", "partition"), sorted(found.partitions), right=("partition",))


def hanging(topic: list[str], as_json: bool, access: Access) -> None:
    from ixion.clients.admin.topics import describe_topics, list_topics
    from ixion.clients.admin.transactions import find_hanging
    from ixion.clients.metadata import TopicPartition

    with administer(access) as admin:
        named = admin.run(describe_topics, topic).check()
        topics = list(named.values()) or admin.run(list_topics, internal=True)
        places = [TopicPartition(t.name, part.number) for t in topics for part in t.partitions if part.leader >= 0]
        found = admin.run(find_hanging, places)
    rows = [row_of(each) for each in found]
    if as_json:
        show_json(rows)
    elif not rows:
        note("no transaction hangs")
    else:
        columns = ("topic", "partition", "start offset", "producer id", "epoch", "last write")
        show_table(columns, [list(row.values()) for row in rows], right=columns[1:5])


def row_of(found: OpenTransaction) -> dict[str, Any]:
    from ixion.cli.consume.format import local_time

    return {
        "topic": found.partition.topic,
        "partition": found.partition.partition,
        "start_offset": found.start_offset,
        "producer_id": found.producer_id,
        "producer_epoch": found.producer_epoch,
        "last_write": local_time(found.last_timestamp_ms),
    }


def abort(topic: str, partition: int, start_offset: int, yes: bool, access: Access) -> None:
    from ixion.clients.admin.transactions import abort_transaction, open_transactions
    from ixion.clients.metadata import TopicPartition
    from ixion.language.model.errors import ErrorCode, KafkaError

    place = TopicPartition(topic, partition)
    with administer(access) as admin:
        found = admin.run(open_transactions, [place])
        chosen = [each for each in found if each.start_offset == start_offset]
        if not chosen:
            there = ", ".join(str(each.start_offset) for each in found) or "none"
            text = f"{place} has no transaction that begins at offset {start_offset}; open are: {there}"
            raise KafkaError(ErrorCode.INVALID_TXN_STATE, text)
        confirm(f"abort the transaction of producer {chosen[0].producer_id} on {place}", yes)
        admin.run(abort_transaction, chosen[0])
    print(f"aborted the transaction of producer {chosen[0].producer_id} on {place}")


TRANSACTION: Final = Group(
    "transaction",
    "List and describe transactions, and abort those that hang.",
    Command(
        "list",
        "List transactional ids with their state.",
        list_,
        options=(
            Option("state", "--state", "Only transactions in this state, such as Ongoing.", metavar="STATE"),
            AS_JSON,
            *CLUSTER,
        ),
        aliases=("ls",),
    ),
    Command(
        "describe",
        "Show the transaction of a transactional id, and the partitions it has written to.",
        describe,
        arguments=(Argument("name", "TRANSACTIONAL_ID"),),
        options=(AS_JSON, *CLUSTER),
    ),
    Command(
        "hanging",
        "Find open transactions that no coordinator knows. They block readers of committed records.",
        hanging,
        options=(
            Option(
                "topic",
                "--topic -t",
                "Look only at this topic; may be repeated (default: every topic).",
                metavar="TOPIC",
                many=True,
                complete="topic",
            ),
            AS_JSON,
            *CLUSTER,
        ),
    ),
    Command(
        "abort",
        "Abort a hanging transaction on one partition, without its coordinator.",
        abort,
        arguments=(
            Argument("topic", "TOPIC", complete="topic"),
            Argument("partition", "PARTITION", kind=whole(0)),
            Argument(
                "start_offset",
                "START_OFFSET",
                "Its first offset there, as 'hanging' shows.",
                kind=whole(0, LARGEST_OFFSET),
            ),
        ),
        options=(YES, *CLUSTER),
        examples=("ixion transaction abort orders 0 1700",),
    ),
)
