"""The views that are one table each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ixion.broker.web.console.api.rest import (
    Connections,
    Producers,
    Settings,
    Transactions,
)
from ixion.broker.web.console.views.layout import Column, empty, filtering, heading, pages, table, value, warn
from ixion.broker.web.console.views.markup import Child, Safe, join, link, tag
from ixion.broker.web.console.views.words import NONE, clock, of, span

Rows = list[Sequence[Child]]

SHORT: Final = 20  # characters of a value that is not broken


def connections(found: Connections, bootstrap: str) -> Safe:
    page = found["page"]
    head = heading(
        "Connections", of(page["total"], "connection"), filtering("/connections", page["query"], "connections")
    )
    if not found["connections"]:
        return join([head, empty("No client is connected.", f"ixion consume greetings{bootstrap}")])
    columns = [
        Column("from"),
        Column("client"),
        Column("library"),
        Column("doing"),
        Column("waits for"),
        Column("listener"),
        Column("quiet for", True),
    ]
    rows: Rows = [
        (
            tag("span", each["address"], class_="word"),
            each["client_id"] or tag("span", "no name", class_="dim"),
            each["software"] or tag("span", "did not say", class_="dim"),
            tag("span", each["doing"] or "nothing", class_="word" if each["doing"] else "dim word"),
            each["waits_for"],
            tag("span", each["listener"], class_="dim word"),
            value(span(each["idle_ms"]), each["idle_ms"]),
        )
        for each in found["connections"]
    ]
    return join([head, table("connections", columns, rows, "connections"), pages("/connections", page)])


def transactions(found: Transactions) -> Safe:
    page = found["page"]
    head = heading(
        "Transactions",
        "Transactional ids that this broker coordinates; those with an open transaction come first.",
        filtering("/transactions", page["query"], "transactions"),
    )
    if not found["transactions"]:
        return join(
            [
                head,
                empty(
                    "No producer has used a transactional id here.",
                    more="A producer gets one by its setting transactional.id.",
                ),
            ]
        )
    columns = [
        Column("transactional id"),
        Column("state"),
        Column("open for", True),
        Column("timeout", True),
        Column("producer", True),
        Column("epoch", True),
        Column("partitions"),
    ]
    rows: Rows = [
        (
            each["transactional_id"],
            warn("stuck: " + each["state"]) if each["stuck"] else each["state"],
            value(span(each["open_ms"]), each["open_ms"]),
            value(span(each["timeout_ms"]), each["timeout_ms"]),
            str(each["producer_id"]),
            str(each["epoch"]),
            ", ".join(each["partitions"]) + (" …" if each["partitions_count"] > len(each["partitions"]) else ""),
        )
        for each in found["transactions"]
    ]
    return join([head, table("transactions", columns, rows, "transactions"), pages("/transactions", page)])


def producers(found: Producers) -> Safe:
    page = found["page"]
    head = heading(
        "Producers",
        "Idempotent producers that partitions on this broker remember, to recognise repeated batches.",
        filtering("/producers", page["query"], "producers"),
    )
    if not found["producers"]:
        return join(
            [
                head,
                empty(
                    "No idempotent producer has written here.",
                    more="Java producers are idempotent by default; librdkafka needs enable.idempotence=true.",
                ),
            ]
        )
    columns = [
        Column("producer", True),
        Column("epoch", True),
        Column("partition"),
        Column("last sequence", True),
        Column("last batch", True),
        Column("transaction"),
    ]
    rows: Rows = [
        (
            str(each["producer_id"]),
            str(each["epoch"]),
            tag("a", f"{each['topic']}-{each['partition']}", href=link("topics", each["topic"])),
            str(each["last_sequence"]),
            value(clock(each["last_ms"]), each["last_ms"]),
            warn(f"open from {each['transaction_from']:,}") if each["transaction_from"] is not None else "",
        )
        for each in found["producers"]
    ]
    return join([head, table("producers", columns, rows, "producers"), pages("/producers", page)])


def settings(found: Settings) -> Safe:
    page = found["page"]
    changed = found["changed_only"]
    other = (
        tag("a", "all settings", href=link("settings", q=page["query"]))
        if changed
        else tag("a", "only those that are set", href=link("settings", q=page["query"], changed=1))
    )
    head = heading(
        "Settings",
        f"{of(page['total'], 'setting')} of this broker",
        filtering("/settings", page["query"], "settings", changed=1 if changed else None),
        tag("p", other),
    )
    if not found["settings"]:
        return join([head, empty("No setting matches." if page["query"] else "Every setting has its default.")])
    columns = [Column("setting"), Column("value"), Column("default"), Column("from"), Column("what it does")]
    rows: Rows = [
        (
            tag("code", by_dots(each["name"])),
            tag("b", shown(each["value"], each["secret"]))
            if each["source"] != "default"
            else shown(each["value"], each["secret"]),
            tag("span", shown(each["default"], each["secret"]), class_="dim"),
            tag("span", each["source"] + (", changes while it runs" if each["changes_live"] else ""), class_="dim"),
            tag("span", each["about"], class_="about"),
        )
        for each in found["settings"]
    ]
    return join(
        [head, table("settings", columns, rows, "settings"), pages("/settings", page, changed=1 if changed else None)]
    )


def by_dots(name: str) -> Safe:
    """A long name breaks behind a dot."""
    first, *others = name.split(".")
    return join([first, [[Safe(".<wbr>"), each] for each in others]])


def shown(text: str | None, secret: bool) -> Child:
    if secret:
        return "hidden"
    if text is None or text == "":
        return NONE
    return tag("span", text, class_="word") if len(text) <= SHORT else text
