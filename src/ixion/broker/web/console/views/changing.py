"""The views that change something: send records, reset a group, cancel delayed records.

They are forms; `act.js` asks before it sends one, and says what was done. What is sent goes to the endpoints, so that a
script can do the same.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, NamedTuple, TypedDict

from ixion.broker.acl.numbers import READ, TOPIC
from ixion.broker.web.console.api.record_rows import RecordRow, Text
from ixion.broker.web.console.api.records import record
from ixion.broker.web.console.api.topics import known
from ixion.broker.web.console.inside import Inside
from ixion.broker.web.console.views.layout import Column, empty, facts, heading, table
from ixion.broker.web.console.views.markup import Child, Safe, join, link, tag
from ixion.broker.web.console.views.records import text
from ixion.broker.web.console.views.words import clock, count, of
from ixion.broker.web.request import HttpRequest
from ixion.broker.web.response import RefusedError

if TYPE_CHECKING:
    from ixion.broker.web.console.api.cancelling import Waiting

KINDS: Final = (("text", "text"), ("base64", "base64"), ("null", "null"))


class Form(TypedDict):
    topic: str
    partitions: int
    again: RecordRow | None  # the record that is sent again


class ResetForm(TypedDict):
    group: str
    topics: list[str]


class Act(NamedTuple):
    text: str
    path: str  # below the view


# Where a view leads to those that change something.
ACTS: Final = {
    "/topics/{topic}": Act("Send records →", "/produce"),
    "/topics/{topic}/records": Act("Send records →", "/../produce"),
    "/groups/{group}": Act("Reset its offsets →", "/reset"),
}
ACTING: Final = {*ACTS, "/schedules/{topic}/{partition}"}  # with `act.js`, which shows what is hidden without it


def leading(pattern: str, path: str) -> Safe | None:
    """A link from a view to the one that changes what it shows."""
    act = ACTS.get(pattern)
    if act is None:
        return None
    target = path.rpartition("/")[0] + "/produce" if act.path.startswith("/..") else path + act.path
    return tag("p", tag("a", act.text, href=target, class_="act"), class_="acts")


async def produce_form(inside: Inside, request: HttpRequest) -> Form:
    topic = known(inside, request)
    again = None
    if request.query.get("offset"):
        inside.caller.demand(READ, TOPIC, topic.name)
        number = str(request.number("partition", 0, 0, max(len(topic.partitions) - 1, 0)))
        offset = str(request.number("offset", 0, 0, (1 << 63) - 1))
        again = await record(inside, request._replace(at={"topic": topic.name, "partition": number, "offset": offset}))
        if any(part["cut"] for part in (again["key"], again["value"], *(each["value"] for each in again["headers"]))):
            raise RefusedError(413, "this record is too large to be sent again from here: use ixion produce")
    return Form(topic=topic.name, partitions=len(topic.partitions), again=again)


def produce(found: Form) -> Safe:
    name, again = found["topic"], found["again"]
    headers = [] if again is None else again["headers"]
    chosen = request_partition(found)
    rows = [header(each["name"], each["value"]) for each in headers] + [header("", None)]
    form = tag(
        "form",
        area("key", "key", None if again is None else again["key"]),
        area("value", "value", None if again is None else again["value"], rows=8),
        tag("fieldset", tag("legend", "headers"), rows, tag("button", "One more", type="button", data_more=True)),
        chosen,
        tag("p", tag("button", "Send", type="submit"), tag("output", role="status")),
        class_="doing",
        data_act="record",
        data_to=link("api", "v1", "topics", name, "records"),
        data_topic=name,
    )
    file = tag(
        "form",
        tag("label", "file", tag("input", type="file", name="file", required=True)),
        tag(
            "label",
            "each line is",
            select("format", (("lines", "a value"), ("jsonl", "a record as JSON, as the export writes it"))),
        ),
        request_partition(found, again=False),
        tag("p", tag("button", "Send the file", type="submit"), tag("output", role="status")),
        class_="doing",
        data_act="file",
        data_to=link("api", "v1", "topics", name, "lines"),
        data_topic=name,
    )
    about = "" if again is None else f"as {again['partition']}:{again['offset']} was"
    return join(
        [
            heading(["Send to ", tag("a", name, href=link("topics", name))], about),
            form,
            tag("h2", "From a file"),
            tag(
                "p",
                "It is sent in pieces, the first lines first, and stops at the first one that is refused.",
                class_="about",
            ),
            file,
            question(),
        ]
    )


def request_partition(found: Form, again: bool = True) -> Safe:
    """Without a choice, that of the key. A record that is sent again goes to its own partition."""
    record_of = found["again"] if again else None
    field = tag(
        "input",
        type="number",
        name="partition",
        min=0,
        max=max(found["partitions"] - 1, 0),
        value="" if record_of is None else str(record_of["partition"]),
        placeholder="by the key",
    )
    return tag("label", f"partition, 0 to {found['partitions'] - 1}", field)


def area(name: str, title: str, found: Text | None, rows: int = 2) -> Safe:
    shown, kind = ("", "null" if name == "key" else "text") if found is None else (found["text"], kind_of(found))
    return tag(
        "label",
        title,
        select(f"{name}-kind", KINDS, kind, f"form of the {title}"),
        tag("textarea", f"\n{shown}", name=name, rows=rows, spellcheck="false", aria_label=title),
    )


def header(name: str, found: Text | None) -> Safe:
    shown, kind = ("", "text") if found is None else (found["text"], kind_of(found))
    return tag(
        "div",
        tag("input", type="text", name="header-name", value=name, placeholder="name", aria_label="name of a header"),
        select("header-kind", KINDS, kind, "form of its value"),
        tag(
            "input", type="text", name="header-value", value=shown, placeholder="value", aria_label="value of a header"
        ),
        class_="header",
    )


def kind_of(found: Text) -> str:
    return {"bytes": "base64", "null": "null"}.get(found["kind"], "text")


def select(name: str, choices: tuple[tuple[str, str], ...], chosen: str = "", label: str | None = None) -> Safe:
    options = [tag("option", what, value=value, selected=value == chosen) for value, what in choices]
    return tag("select", options, name=name, aria_label=label)


def question() -> Safe:
    """Asked before anything is changed; `act.js` fills it in."""
    return tag(
        "dialog",
        tag("p", id="question-text"),
        tag(
            "form",
            tag("button", "No", value="no"),
            tag("button", "Yes", value="yes", class_="yes"),
            method="dialog",
        ),
        id="question",
        aria_labelledby="question-text",
    )


async def reset_form(inside: Inside, request: HttpRequest) -> ResetForm:
    from ixion.broker.web.console.api.groups import group

    found = await group(inside, request)
    return ResetForm(group=found["group"], topics=sorted({each["topic"] for each in found["offsets"]}))


def reset(found: ResetForm) -> Safe:
    group = found["group"]
    choices = (("", "all that it has committed"), *((each, each) for each in found["topics"]))
    form = tag(
        "form",
        tag("label", "topic", select("topic", choices)),
        tag(
            "label",
            "to",
            tag("input", type="text", name="to", value="earliest", required=True, list="starts", autocomplete="off"),
        ),
        tag(
            "datalist",
            [tag("option", value=each) for each in ("earliest", "latest", "-100", "-1h", "2026-05-01T12:00")],
            id="starts",
        ),
        tag("p", tag("button", "Preview", type="submit"), tag("output", role="status")),
        class_="doing",
        data_act="preview",
        data_to=link("api", "v1", "groups", group, "offsets", "preview"),
        data_then=link("api", "v1", "groups", group, "offsets"),
        data_group=group,
    )
    columns = [
        Column("topic"),
        Column("partition", True),
        Column("committed", True),
        Column("target", True),
        Column("to be read", True),
    ]
    return join(
        [
            heading(["Reset ", tag("a", group, href=link("groups", group))], "where it goes on reading"),
            tag(
                "p",
                "earliest, latest, an offset, -100 for the last hundred, a time in UTC, or -1h. The group may have no"
                " members then: they would overwrite it.",
                class_="about",
            ),
            form,
            tag("div", table("changes", columns, (), "what changes"), id="preview", hidden=True),
            question(),
        ]
    )


def waiting(found: Waiting) -> Safe:
    name = f"{found['topic']}-{found['partition']}"
    head = heading([tag("a", "Schedules", href="/schedules"), f" {name}"], "delayed records, the soonest first")
    figures = facts("figures", [("waiting", count(found["waiting"])), ("in open transactions", count(found["held"]))])
    if not found["records"]:
        return join([head, figures, empty("Nothing waits here.")])
    columns = [
        Column("due, UTC"),
        Column("offset", True),
        Column("id"),
        Column("key"),
        Column("value"),
        Column("cancel"),
    ]
    rows: list[tuple[Child, ...]] = [
        (
            tag("data", clock(each["due_ms"]), value=str(each["due_ms"])),
            str(each["offset"]),
            each["id"],
            text(each["key"]),
            text(each["value"]),
            tag(
                "button",
                "Cancel",
                type="button",
                hidden=True,
                aria_label=f"cancel the record at offset {each['offset']}",
                data_cancel=json.dumps({"partition": found["partition"], "offset": each["offset"]}),
                data_to=link("api", "v1", "schedules", found["topic"], "cancel"),
                data_what=f"the record at offset {each['offset']} of {name}, due at {clock(each['due_ms'])}",
            ),
        )
        for each in found["records"]
    ]
    more = None if found["complete"] else tag("p", f"{of(found['waiting'], 'record')} in all.", class_="about")
    return join(
        [
            head,
            figures,
            table("waiting", columns, rows, f"delayed records of {name}"),
            more,
            tag("p", tag("output", role="status", id="said")),
            question(),
        ]
    )
