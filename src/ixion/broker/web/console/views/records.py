"""The records of a topic, and one record alone."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Final

from ixion.broker.web.console.api.record_rows import RecordRow, Text
from ixion.broker.web.console.api.records import Records
from ixion.broker.web.console.views.layout import empty, facts, heading
from ixion.broker.web.console.views.markup import Safe, join, link, tag
from ixion.broker.web.console.views.words import NONE, clock, of, size

WHERE: Final = ("q", "key", "filter", "partition", "offset", "before", "since", "limit")
TOKENS: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},:]|[^\s\[\]{},:"]+')
DEEPEST: Final = 30  # steps of indentation
PRETTY_BYTES: Final = 16 << 10  # of JSON that is indented, in some milliseconds


def records(found: Records, given: Mapping[str, str], bootstrap: str) -> Safe:
    name = found["topic"]
    path = link("topics", name, "records")
    total = sum(each["end"] - each["start"] for each in found["places"])
    query = {key: given[key] for key in WHERE if given.get(key)}
    which = {key: query.get(key) for key in ("q", "key", "filter", "partition")}
    return join(
        [
            heading(
                [tag("a", name, href=link("topics", name)), " records"],
                f"{of(total, 'offset')} in {of(len(found['places']), 'partition')}",
            ),
            tag(
                "form",
                field("search", "filter", 'filter: value.total > 100 and key contains "a"', query.get("filter", "")),
                field("text", "q", "any text", query.get("q", "")),
                field("text", "key", "key", query.get("key", "")),
                field("number", "partition", "partition", query.get("partition", ""), minimum=0),
                field("number", "offset", "from offset", query.get("offset", ""), minimum=0),
                field("text", "since", "time, or -10m", query.get("since", "")),
                tag(
                    "span",
                    tag("button", "Look", type="submit"),
                    tag(
                        "button",
                        "Follow",
                        type="button",
                        id="follow",
                        data_tail=link("api", "v1", "topics", name, "tail", **which),
                        hidden=True,
                    ),
                    [
                        tag("a", text, href=link("api", "v1", "topics", name, "export", **query, format=form))
                        for text, form in (("Save as JSON Lines", "jsonl"), ("as CSV", "csv"))
                    ],
                    class_="acts",
                ),
                action=path,
                class_="filter wide",
            ),
            tag("p", summary(found), class_="about", id="summary", aria_live="polite"),
            rows_of(found["topic"], found["records"]) if found["records"] else nothing(found, bootstrap),
            further(found, query),
            tag(
                "p",
                "The same in a terminal: ",
                tag("code", command(found, query) + bootstrap, data_copy=True),
                class_="about",
            ),
        ]
    )


def command(found: Records, query: Mapping[str, str]) -> str:
    """`ixion consume` with the options that show the same records."""
    parts = ["ixion", "consume", found["topic"], "-e"]
    if found["partition"] is not None:
        parts += ["--partition", str(found["partition"])]
    since = query.get("since", "").strip()
    is_search = bool(found["query"] or found["key"] or found["filter"])
    if since:
        zone = "" if since.startswith("-") or since.isdigit() or "+" in since or since.endswith("Z") else "Z"
        zone = "T00:00Z" if zone and len(since) == len("2026-01-01") else zone
        parts += ["-o", f"@{since}{zone}"]
    elif query.get("offset"):
        parts += ["-o", query["offset"]]
    elif not is_search and not query.get("before"):
        parts += ["-o", f"-{max(len(found['records']), 1)}"]
    if found["key"]:
        parts += ["--key", found["key"]]
    filters = [f"({found['filter']})" if found["query"] else found["filter"]] if found["filter"] else []
    if found["query"]:
        filters.append(f"any matches {json.dumps('(?i)' + escaped(found['query']), ensure_ascii=False)}")
    if filters:
        parts += ["--filter", " and ".join(filters)]
    return shlex.join(parts)


def escaped(text: str) -> str:
    """The text as a regular expression."""
    return "".join(each if each.isalnum() or each in " _" or ord(each) > 127 else f"\\{each}" for each in text)


def field(kind: str, name: str, what: str, shown: str, *, minimum: int | None = None) -> Safe:
    return tag("input", type=kind, name=name, value=shown, placeholder=what, aria_label=what, min=minimum)


def summary(found: Records) -> str:
    said = []
    if found["silent"]:
        there = ", ".join(map(str, found["silent"]))
        said.append(f"The leaders of partitions {there} do not answer.")
    if found["query"] or found["key"] or found["filter"]:
        said.append(f"{of(len(found['records']), 'record')} of {of(found['searched'], 'record')} searched.")
        if found["too_long"]:
            said.append(f"{of(found['too_long'], 'record')} could not be read by the filter, being too long.")
        if not found["complete"]:
            said.append("The search ended there; name a partition to go on.")
    elif not found["complete"]:
        said.append("The newest of the partitions that one look covers.")
    return " ".join(said)


def nothing(found: Records, bootstrap: str) -> Safe:
    if found["query"] or found["key"] or found["filter"]:
        body = empty("No record that was searched fits.")
    else:
        body = empty("There is no record here.", f"echo hello | ixion produce {found['topic']}{bootstrap}")
    return join([body, rows_of(found["topic"], [])])


def rows_of(topic: str, found: Sequence[RecordRow]) -> Safe:
    return tag(
        "ol",
        [record(topic, each) for each in found],
        class_="records",
        id="records",
        aria_label="records",
        data_rows=link("topics", topic),
    )


def record(topic: str, each: RecordRow) -> Safe:
    """One record. The script of the tail makes the same elements."""
    headers = [tag("div", tag("dt", header["name"]), tag("dd", text(header["value"]))) for header in each["headers"]]
    return tag(
        "li",
        tag(
            "p",
            tag(
                "a",
                f"{each['partition']}:{each['offset']}",
                href=link("topics", topic, str(each["partition"]), str(each["offset"])),
                class_="place",
            ),
            tag("time", clock(each["timestamp"]), title=str(each["timestamp"])),
            tag("span", size(each["size"]), class_="dim"),
            class_="where",
        ),
        tag("div", text(each["key"]), class_="key") if each["key"]["kind"] != "null" else None,
        tag("div", text(each["value"]), class_="value"),
        tag("dl", headers, class_="headers") if headers else None,
        tabindex="0",
    )


def text(found: Text) -> Safe:
    """Bytes that are no text are shown as base64."""
    if found["kind"] == "null":
        return tag("span", "null", class_="dim")
    schema = tag("span", f"{found['schema']} ", class_="dim") if "schema" in found else None
    if "decoded" in found:
        return join([schema, tag("code", found["decoded"])])
    note = " … " + size(found["size"]) if found["cut"] else ""
    kind = tag("span", "base64 ", class_="dim") if found["kind"] == "bytes" else None
    return join([schema, kind, tag("code", found["text"]), tag("span", note, class_="dim") if note else None])


def further(found: Records, query: Mapping[str, str]) -> Safe | None:
    """Links to what comes before and behind, in one partition."""
    following, older = found["next_offset"], found["searched_from"]
    rest = {name: given for name, given in query.items() if name not in ("offset", "since", "before")}
    segments = ("topics", found["topic"], "records")
    links = []
    if older is not None and older > found["places"][0]["start"]:
        links.append(tag("a", "← older records", href=link(*segments, **rest, before=older)))
    if following is not None and following < found["places"][0]["end"]:
        links.append(tag("a", "later records →", href=link(*segments, **rest, offset=following)))
    return tag("p", links, class_="pages") if links else None


def alone(topic: str, found: RecordRow) -> Safe:
    """One record, as much of it as is shown at all."""
    name = f"{found['partition']}:{found['offset']}"
    headers = [tag("div", tag("dt", each["name"]), tag("dd", text(each["value"]))) for each in found["headers"]]
    segments = ("topics", topic, "records")
    around = max(found["offset"] - 10, 0)
    return join(
        [
            heading([tag("a", topic, href=link(*segments)), f" {name}"]),
            facts(
                "figures",
                [
                    ("time", clock(found["timestamp"]) if found["timestamp"] >= 0 else NONE),
                    ("timestamp", str(found["timestamp"])),
                    ("key", size(found["key"]["size"])),
                    ("value", size(found["value"]["size"])),
                ],
            ),
            tag("h2", "Key"),
            tag("div", whole(found["key"]), class_="whole"),
            tag("h2", "Value"),
            tag("div", whole(found["value"]), class_="whole"),
            tag("h2", "Headers"),
            tag("dl", headers, class_="headers") if headers else tag("p", "none", class_="about"),
            tag(
                "p",
                tag(
                    "a",
                    "the records around it",
                    href=link(*segments, partition=found["partition"], offset=around or "0"),
                ),
                class_="pages",
            ),
        ]
    )


def whole(found: Text) -> Safe:
    """JSON is indented."""
    if "decoded" in found and len(found["decoded"]) <= PRETTY_BYTES:
        return join([tag("p", found["schema"], class_="dim"), tag("code", indented(found["decoded"]))])
    if found["kind"] == "json" and not found["cut"] and found["size"] <= PRETTY_BYTES:
        return tag("code", indented(found["text"]))
    return text(found)


def indented(json_text: str) -> str:
    """JSON on lines of its own, each word as it is written: no number is rounded, no key lost."""
    parts: list[str] = []
    depth = 0
    for word in TOKENS.findall(json_text):
        if word in "]}":
            depth -= 1
            empty_one = bool(parts) and parts[-1] in ("[", "{")
            parts.append(word if empty_one else line(depth) + word)
            continue
        if parts and parts[-1] in ("[", "{"):
            parts.append(line(depth))
        if word in "[{":
            depth += 1
        parts.append({",": "," + line(depth), ":": ": "}.get(word, word))
    return "".join(parts)


def line(depth: int) -> str:
    return "\n" + "  " * min(depth, DEEPEST)
