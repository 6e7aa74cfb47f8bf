"""All endpoints under /api/v1, in one table: it routes the requests, and OpenAPI is made from it."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from functools import partial
from types import UnionType
from typing import Any, Final, Literal, NamedTuple, get_args, get_origin, get_type_hints, is_typeddict

from ixion.broker.web.console import streams
from ixion.broker.web.console.api import (
    access,
    brokers,
    cancelling,
    export,
    group_rows,
    groups,
    overview,
    pipelines,
    purgatories,
    record_rows,
    records,
    resetting,
    rest,
    schedules,
    sending,
    session,
    tail,
    topics,
    wheel,
)
from ixion.broker.web.console.api.figures import as_json, in_short_turns
from ixion.broker.web.console.inside import Inside
from ixion.broker.web.console.rights import (
    CHANGE_GROUP,
    EACH,
    OPEN,
    READ_TOPIC,
    SEE_CLUSTER,
    SEE_GROUP,
    SEE_SETTINGS,
    SEE_TOPIC,
    WRITE_TOPIC,
    Needs,
    Watched,
    demand,
)
from ixion.broker.web.request import HttpRequest
from ixion.broker.web.response import EVENTS, JSON, Answer, RefusedError, Response, Stream

BASE: Final = "/api/v1"
READS_ONLY: Final = "this page may not change anything; the setting web.write allows it"


class Param(NamedTuple):
    name: str
    about: str
    kind: str = "string"  # or integer


class Endpoint(NamedTuple):
    path: str
    call: Callable[[Inside, HttpRequest], Awaitable[Any]]
    result: Any  # a TypedDict, or the name of a media type
    about: str
    needs: Needs
    params: tuple[Param, ...] = ()
    body: Any = None  # the TypedDict of what is sent; then it is a POST, and changes something
    changes: bool = True  # False: it may be sent where nothing may be changed

    @property
    def name(self) -> str:
        """Of the operation: that of its function."""
        return str(self.call.__name__)

    @property
    def method(self) -> str:
        return "GET" if self.body is None else "POST"


Q: Final = Param("q", "only rows that contain this text, whatever its case")
ROWS: Final = (
    Q,
    Param("start", "the first row, from 0", "integer"),
    Param("limit", "rows at most, up to 1000", "integer"),
)
WHICH: Final = (
    Param("q", "only records with this text in key, value or a header"),
    Param("key", "only records with this key"),
    Param("filter", 'only records that fit this expression, such as value.total > 100 (see "ixion help filters")'),
    Param("partition", "only this partition", "integer"),
)
LOOK: Final = (
    *WHICH,
    Param("limit", "records at most, up to 500", "integer"),
    Param("offset", "from this offset on, instead of the newest", "integer"),
    Param("before", "the newest before this offset", "integer"),
    Param("since", "from this time on: 2026-05-01T12:00 (UTC), -10m, or milliseconds since 1970"),
)
AFTER: Final = Param("after", "where to go on, if the header Last-Event-ID is not sent: the id of the last event")

ENDPOINTS: Final = (
    Endpoint("/overview", overview.overview, overview.Overview, "the state of the broker at one look", SEE_CLUSTER),
    Endpoint("/events", streams.events, EVENTS, "what happens, as server-sent events", SEE_CLUSTER, (AFTER,)),
    Endpoint("/wheel", wheel.wheel, wheel.Wheel, "the timing wheel: tasks in each bucket of each level", SEE_CLUSTER),
    Endpoint(
        "/wheel/events",
        streams.wheel_events,
        EVENTS,
        "the same, four times a second, as server-sent events",
        SEE_CLUSTER,
    ),
    Endpoint("/wheel/{level}/{bucket}", wheel.bucket, wheel.Bucket, "the tasks that wait in one bucket", SEE_CLUSTER),
    Endpoint(
        "/purgatories",
        purgatories.purgatories,
        purgatories.Purgatories,
        "delayed operations, and what they wait for",
        SEE_CLUSTER,
        (Q,),
    ),
    Endpoint("/topics", topics.topics, topics.Topics, "topics by name", EACH, ROWS),
    Endpoint(
        "/topics/{topic}",
        topics.topic,
        topics.Topic,
        "one topic: partitions, settings, groups that read it",
        SEE_TOPIC,
        ROWS[1:],
    ),
    Endpoint(
        "/topics/{topic}/records", records.records, records.Records, "records, by default the newest", READ_TOPIC, LOOK
    ),
    Endpoint(
        "/topics/{topic}/export",
        export.export,
        "application/x-ndjson",
        "the same as a file, JSON Lines or CSV, with up to 10000 records",
        READ_TOPIC,
        (*LOOK, Param("format", "jsonl or csv")),
    ),
    Endpoint(
        "/topics/{topic}/tail",
        tail.tail,
        EVENTS,
        "records as they come, as server-sent events",
        READ_TOPIC,
        (*WHICH, AFTER),
    ),
    Endpoint(
        "/topics/{topic}/{partition}/{offset}",
        records.record,
        record_rows.RecordRow,
        "one record, up to a megabyte of it",
        READ_TOPIC,
    ),
    Endpoint("/groups", groups.groups, group_rows.Groups, "the groups of the cluster", EACH, ROWS),
    Endpoint(
        "/groups/{group}",
        groups.group,
        group_rows.GroupDetail,
        "one group: members, assignments, offsets and lag",
        SEE_GROUP,
    ),
    Endpoint(
        "/transactions",
        rest.transactions,
        rest.Transactions,
        "transactional ids, those with an open transaction first",
        EACH,
        ROWS,
    ),
    Endpoint(
        "/producers", rest.producers, rest.Producers, "producers that partitions on this broker remember", EACH, ROWS
    ),
    Endpoint("/connections", rest.connections, rest.Connections, "connections of clients", SEE_CLUSTER, ROWS),
    Endpoint(
        "/schedules", schedules.schedules, schedules.Schedules, "delayed records: how many are due when", EACH, ROWS
    ),
    Endpoint(
        "/schedules/due",
        schedules.due,
        schedules.ComingDue,
        "the delayed records that are due next",
        EACH,
        (Q, Param("limit", "records at most, up to 200", "integer")),
    ),
    Endpoint("/brokers", brokers.brokers, brokers.Brokers, "the brokers of the cluster, each asked", SEE_CLUSTER),
    Endpoint(
        "/settings",
        rest.settings,
        rest.Settings,
        "settings of this broker",
        SEE_SETTINGS,
        (*ROWS, Param("changed", "1: only those that differ from the default", "integer")),
    ),
    Endpoint(
        "/access",
        access.access,
        access.Access,
        "rules, users, delegation tokens and quotas; no secrets",
        SEE_CLUSTER,
        ROWS,
    ),
    Endpoint(
        "/schedules/{topic}/{partition}",
        cancelling.waiting,
        cancelling.Waiting,
        "delayed records of a partition, those that are due first",
        READ_TOPIC,
    ),
    Endpoint(
        "/topics/{topic}/records",
        sending.send,
        sending.Sent,
        "send records to a topic",
        WRITE_TOPIC,
        body=sending.RecordsToSend,
    ),
    Endpoint(
        "/topics/{topic}/lines",
        sending.send_lines,
        sending.Sent,
        "send the lines of a text to a topic",
        WRITE_TOPIC,
        body=sending.LinesToSend,
    ),
    Endpoint(
        "/schedules/{topic}/cancel",
        cancelling.cancel,
        sending.Sent,
        "cancel a delayed record, by its offset or its id",
        WRITE_TOPIC,
        body=cancelling.ToCancel,
    ),
    Endpoint(
        "/groups/{group}/offsets/preview",
        resetting.preview,
        resetting.ResetPreview,
        "what a reset of a group's offsets would change; it changes nothing",
        SEE_GROUP,
        body=resetting.ToReset,
    ),
    Endpoint(
        "/groups/{group}/offsets",
        resetting.change,
        resetting.OffsetsChanged,
        "set the offsets of a group without members, if they are still those of the preview",
        CHANGE_GROUP,
        body=resetting.ToChange,
    ),
    Endpoint(
        "/pipelines",
        pipelines.pipelines,
        pipelines.Pipelines,
        "pipelines in the folders that web.pipelines names: last batches, last runs, broken expectations",
        SEE_CLUSTER,
    ),
    Endpoint("/session", session.session, session.Known, "the user that has logged in", OPEN),
    Endpoint(
        "/session",
        session.sign_in,
        session.Known,
        "log in as a user of the broker; the answer sets a cookie",
        OPEN,
        body=session.ToSignIn,
        changes=False,
    ),
    Endpoint("/session/end", session.sign_out, session.Known, "log out", OPEN, body=session.Nothing, changes=False),
)


async def answer(endpoint: Endpoint, inside: Inside, request: HttpRequest) -> Answer:
    try:
        if endpoint.body is not None and endpoint.changes and not inside.writes:
            raise RefusedError(403, READS_ONLY)
        demand(inside.caller, endpoint.needs, request.at)
        found = await endpoint.call(inside, request)
    except RefusedError as refusal:
        return refused(refusal)
    if isinstance(found, Stream) and inside.caller.principal:
        return Stream(lambda outlet: found.feed(Watched(outlet, partial(still, endpoint, inside, request))), found.kind)
    if isinstance(found, (Response, Stream)):
        return found
    return Response(await in_short_turns(as_json(found)), kind=JSON)


def refused(refusal: RefusedError) -> Response:
    # Bearer, not Basic: browsers would ask for a password by themselves, and send it from then on.
    headers = (("WWW-Authenticate", 'Bearer realm="ixion"'),) if refusal.status == 401 else ()
    return Response(json.dumps({"error": refusal.text}).encode(), refusal.status, JSON, headers)


def still(endpoint: Endpoint, inside: Inside, request: HttpRequest) -> bool:
    """Whether the caller of a stream may go on to see it."""
    caller = inside.caller
    if caller.session is not None and not inside.door.sessions.is_open(caller.session):
        return False
    try:
        demand(caller, endpoint.needs, request.at)
    except RefusedError:
        return False
    return True


def page_of(endpoint: Endpoint, inside: Inside) -> Callable[[HttpRequest], Awaitable[Answer]]:
    return partial(answer, endpoint, inside)


def openapi(version: str) -> dict[str, Any]:
    """OpenAPI 3.1. The schemas are those of the annotations."""
    schemas: dict[str, Any] = {
        "Error": {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}
    }
    refused = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    paths: dict[str, Any] = {}
    for each in ENDPOINTS:
        if is_typeddict(each.result):
            content: dict[str, Any] = {JSON: {"schema": schema_of(each.result, schemas)}}
        else:
            content = {each.result: {"schema": {"type": "string"}}}
        at = [part[1:-1] for part in each.path.split("/") if part.startswith("{")]
        paths.setdefault(BASE + each.path, {})[each.method.lower()] = {
            "summary": each.about,
            "operationId": each.name,
            "parameters": [
                *(
                    {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
                    for name in at
                ),
                *(
                    {"name": param.name, "in": "query", "description": param.about, "schema": {"type": param.kind}}
                    for param in each.params
                ),
            ],
            "responses": {
                "200": {"description": each.about, "content": content},
                **{
                    str(code): {"description": what, "content": refused}
                    for code, what in (
                        (400, "a parameter is not valid"),
                        (401, "nobody has logged in, or the login has failed"),
                        (403, "no right to it, or another site asks, or the page is closed"),
                        (404, "there is no such thing"),
                        *(((409, "something else must happen first"),) if each.body is not None else ()),
                        *(((429, "too many logins have failed"),) if each.needs == OPEN else ()),
                        (503, "not now"),
                    )
                },
            },
        }
        if each.body is not None:
            sent = {JSON: {"schema": schema_of(each.body, schemas)}}
            paths[BASE + each.path]["post"]["requestBody"] = {"required": True, "content": sent}
    return {
        "openapi": "3.1.0",
        "info": {"title": "ixion", "version": version, "description": "What the pages of an ixion broker show."},
        "paths": paths,
        "components": {"schemas": schemas},
    }


def schema_of(kind: Any, schemas: dict[str, Any], base: str = "#/components/schemas/") -> dict[str, Any]:
    """JSON Schema of an annotation; a TypedDict goes into `schemas` under its name, and is referred to below `base`."""
    if is_typeddict(kind):
        name = kind.__name__
        if name not in schemas:
            schemas[name] = {}
            hints = get_type_hints(kind)
            schemas[name] = {
                "type": "object",
                "properties": {field: schema_of(hint, schemas, base) for field, hint in hints.items()},
                "required": [field for field in hints if field in kind.__required_keys__],
                "additionalProperties": False,
            }
        return {"$ref": f"{base}{name}"}
    if get_origin(kind) is list:
        return {"type": "array", "items": schema_of(get_args(kind)[0], schemas, base)}
    if get_origin(kind) is dict:
        return {"type": "object", "additionalProperties": schema_of(get_args(kind)[1], schemas, base)}
    if get_origin(kind) is Literal:
        return {"type": "string", "enum": list(get_args(kind))}
    if isinstance(kind, UnionType):
        return {"anyOf": [schema_of(each, schemas, base) for each in get_args(kind)]}
    return {"type": {int: "integer", float: "number", str: "string", bool: "boolean", type(None): "null"}[kind]}
