"""The views that are one table each: connections, transactions, producers, schedules, brokers, settings."""

from __future__ import annotations

from typing import Final, TypedDict

from ixion.broker.acl.numbers import DESCRIBE, READ, TOPIC, TRANSACTIONAL_ID
from ixion.broker.web.console.api.figures import Page, in_short_turns, page_of
from ixion.broker.web.console.api.overview import title
from ixion.broker.web.console.inside import Inside
from ixion.broker.web.request import HttpRequest
from ixion.config.dynamic import Described, Source
from ixion.config.table import BROKER_SETTINGS
from ixion.timer.clock import system_clock
from ixion.timer.turns import Steps

MOST_LOOKED_AT: Final = 20_000  # rows that are searched for those that match


class ConnectionRow(TypedDict):
    address: str
    listener: str
    principal: str
    client_id: str
    software: str
    doing: str  # the request in flight
    waits_for: str  # of the operation in which it waits
    idle_ms: int


class Connections(TypedDict):
    page: Page
    connections: list[ConnectionRow]


async def connections(inside: Inside, request: HttpRequest) -> Connections:
    found = await in_short_turns(connection_rows(inside, request.query.get("q", "")[:100].lower()))
    page = page_of(request, len(found))
    return Connections(page=page, connections=found[page["start"] : page["start"] + page["limit"]])


def connection_rows(inside: Inside, wanted: str) -> Steps[list[ConnectionRow]]:
    now_ns = system_clock()
    found: list[ConnectionRow] = []
    for connection in inside.connections()[:MOST_LOOKED_AT]:
        request = connection.in_flight
        operation = None if request is None else getattr(request.when_gone, "__self__", None)
        row = ConnectionRow(
            address=connection.address,
            listener=connection.listener,
            principal=str(connection.principal),
            client_id=connection.client_id,
            software=connection.software,
            doing="" if request is None else title(int(request.frame.api_key)),
            waits_for="" if operation is None else operation.waits_for()[:500],
            idle_ms=max(now_ns - connection.last_active_ns, 0) // 1_000_000,
        )
        if wanted in " ".join(str(each) for each in row.values()).lower():
            found.append(row)
        yield
    return found


class TransactionRow(TypedDict):
    transactional_id: str
    state: str
    producer_id: int
    epoch: int
    partitions: list[str]
    partitions_count: int
    open_ms: int | None  # None: no transaction is open
    timeout_ms: int
    stuck: bool  # open for longer than its timeout


class Transactions(TypedDict):
    page: Page
    transactions: list[TransactionRow]


async def transactions(inside: Inside, request: HttpRequest) -> Transactions:
    found = await in_short_turns(transaction_rows(inside, request.query.get("q", "")[:100].lower()))
    found.sort(key=lambda row: (row["open_ms"] is None, -(row["open_ms"] or 0), row["transactional_id"]))
    page = page_of(request, len(found))
    return Transactions(page=page, transactions=found[page["start"] : page["start"] + page["limit"]])


def transaction_rows(inside: Inside, wanted: str) -> Steps[list[TransactionRow]]:
    coordinator = inside.transactions()
    known = [] if coordinator is None else coordinator.list()
    found: list[TransactionRow] = []
    if not isinstance(known, list):
        return found
    now_ms = inside.clock_ms()
    for each in known:
        now = each.now
        fits = now.epoch >= 0 and wanted in f"{each.transactional_id} {now.state.label}".lower()
        if fits and inside.caller.sees(DESCRIBE, TRANSACTIONAL_ID, each.transactional_id):
            is_open = now.state.label in ("Ongoing", "PrepareCommit", "PrepareAbort")
            open_ms = max(now_ms - now.started_ms, 0) if is_open and now.started_ms >= 0 else None
            found.append(
                TransactionRow(
                    transactional_id=each.transactional_id,
                    state=now.state.label,
                    producer_id=now.producer_id,
                    epoch=now.epoch,
                    partitions=[
                        f"{topic}-{number}"
                        for topic, number in sorted(now.partitions)[:20]
                        if inside.caller.describes(topic)
                    ],
                    partitions_count=len(now.partitions),
                    open_ms=open_ms,
                    timeout_ms=now.timeout_ms,
                    stuck=open_ms is not None and open_ms > now.timeout_ms,
                )
            )
        yield
    return found


class ProducerRow(TypedDict):
    producer_id: int
    epoch: int
    topic: str
    partition: int
    last_sequence: int
    last_ms: int
    transaction_from: int | None  # the first offset of its open transaction


class Producers(TypedDict):
    page: Page
    producers: list[ProducerRow]


async def producers(inside: Inside, request: HttpRequest) -> Producers:
    found = await in_short_turns(producer_rows(inside, request.query.get("q", "")[:100].lower()))
    found.sort(key=lambda row: (row["transaction_from"] is None, -row["last_ms"]))
    page = page_of(request, len(found))
    return Producers(page=page, producers=found[page["start"] : page["start"] + page["limit"]])


def producer_rows(inside: Inside, wanted: str) -> Steps[list[ProducerRow]]:
    found: list[ProducerRow] = []
    for partition in list(inside.replicas.partitions.values()):
        log = partition.log
        wants = log.producers.producers and len(found) < MOST_LOOKED_AT
        if wants and inside.caller.sees(READ, TOPIC, partition.topic):
            with log.lock:
                entries = list(log.producers.producers.values())
            for entry in entries:
                if wanted in f"{entry.producer_id} {partition.topic}-{partition.number}".lower():
                    found.append(
                        ProducerRow(
                            producer_id=entry.producer_id,
                            epoch=entry.epoch,
                            topic=partition.topic,
                            partition=partition.number,
                            last_sequence=entry.last_sequence,
                            last_ms=entry.used_ms,
                            transaction_from=entry.txn_first_offset if entry.txn_first_offset >= 0 else None,
                        )
                    )
                yield
        yield
    return found


class BrokerSetting(TypedDict):
    name: str
    value: str | None  # None: not set, or secret
    default: str | None
    source: str
    secret: bool
    changes_live: bool
    about: str


class Settings(TypedDict):
    page: Page
    changed_only: bool
    settings: list[BrokerSetting]


async def settings(inside: Inside, request: HttpRequest) -> Settings:
    changed_only = request.query.get("changed", "") == "1"
    wanted = request.query.get("q", "")[:100].lower()
    names = [name for name in sorted(BROKER_SETTINGS) if wanted in f"{name} {BROKER_SETTINGS[name].doc}".lower()]
    found = await in_short_turns(setting_rows(inside, names, changed_only))
    page = page_of(request, len(found))
    return Settings(page=page, changed_only=changed_only, settings=found[page["start"] : page["start"] + page["limit"]])


def setting_rows(inside: Inside, names: list[str], changed_only: bool) -> Steps[list[BrokerSetting]]:
    found: list[BrokerSetting] = []
    for name in names:
        described: Described = inside.config.describe(name)
        default = next((each.value for each in described.synonyms if each.source is Source.DEFAULT), None)
        if not changed_only or described.source is not Source.DEFAULT:
            found.append(
                BrokerSetting(
                    name=name,
                    value=described.value,
                    default=default,
                    source=described.source.name.lower().replace("_", " "),
                    secret=described.sensitive,
                    changes_live=not described.read_only,
                    about=BROKER_SETTINGS[name].doc,
                )
            )
        yield
    return found
