"""The pages for people, each made of the data of its endpoint; and the endpoints."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Any, Final, NamedTuple

from ixion.broker.web.console.api import (
    access,
    brokers,
    cancelling,
    groups,
    overview,
    pipelines,
    purgatories,
    records,
    rest,
    schedules,
    topics,
    wheel,
)
from ixion.broker.web.console.caller import NOBODY, Caller
from ixion.broker.web.console.door import SignInError
from ixion.broker.web.console.endpoints import BASE, ENDPOINTS, READS_ONLY, Endpoint, answer, openapi, refused
from ixion.broker.web.console.files import Files
from ixion.broker.web.console.inside import Inside
from ixion.broker.web.console.rights import CHANGE_GROUP, EACH, OPEN, WRITE_TOPIC, Needs, demand, has
from ixion.broker.web.console.views import access as access_view
from ixion.broker.web.console.views import brokers as brokers_view
from ixion.broker.web.console.views import changing, signing, tables, words
from ixion.broker.web.console.views import groups as group_views
from ixion.broker.web.console.views import overview as overview_view
from ixion.broker.web.console.views import pipelines as pipelines_view
from ixion.broker.web.console.views import records as record_views
from ixion.broker.web.console.views import schedules as schedule_views
from ixion.broker.web.console.views import topics as topic_views
from ixion.broker.web.console.views import wheel as wheel_views
from ixion.broker.web.console.views.layout import VIEWS as ENTRIES
from ixion.broker.web.console.views.layout import Frame, document, empty, heading
from ixion.broker.web.console.views.markup import Safe, join
from ixion.broker.web.request import HttpRequest
from ixion.broker.web.response import HTML, JSON, Answer, Ask, RefusedError, Response
from ixion.broker.web.routes import Routes

HERE: Final = "127.0.0.1:9092"  # where commands look without --bootstrap

Data = Callable[[Inside, HttpRequest], Awaitable[Any]]


class Shown(NamedTuple):
    title: str
    body: Safe


class View(NamedTuple):
    path: str
    data: Data
    show: Callable[[Any, HttpRequest, str], Shown]  # the data, the request, and -b for commands
    refresh_s: int = 0
    scripts: tuple[str, ...] = ()
    entry: str = ""  # of the navigation, if it is not the path
    writes: bool = False  # a form that changes something
    needs: Needs | None = None  # None: as the endpoint with the same data


VIEWS: Final = (
    View("/", overview.overview, lambda it, _, b: Shown("Overview", overview_view.overview(it, b)), 5),
    View("/wheel", wheel.wheel, lambda it, _, __: Shown("Wheel", wheel_views.wheel(it)), 0, ("wheel.js",)),
    View(
        "/purgatories",
        purgatories.purgatories,
        lambda it, _, b: Shown("Purgatories", wheel_views.purgatories(it, b)),
        2,
    ),
    View("/topics", topics.topics, lambda it, _, b: Shown("Topics", topic_views.topics(it, b)), 5),
    View(
        "/topics/{topic}", topics.topic, lambda it, _, b: Shown(it["name"], topic_views.topic(it, b)), 3, (), "/topics"
    ),
    View(
        "/topics/{topic}/records",
        records.records,
        lambda it, request, b: Shown(it["topic"], record_views.records(it, request.query, b)),
        0,
        ("tail.js",),
        "/topics",
    ),
    View(
        "/topics/{topic}/{partition}/{offset}",
        records.record,
        lambda it, request, _: Shown(request.at["topic"], record_views.alone(request.at["topic"], it)),
        0,
        (),
        "/topics",
    ),
    View("/groups", groups.groups, lambda it, _, b: Shown("Groups", group_views.groups(it, b)), 3),
    View(
        "/groups/{group}", groups.group, lambda it, _, b: Shown(it["group"], group_views.group(it, b)), 2, (), "/groups"
    ),
    View("/transactions", rest.transactions, lambda it, _, __: Shown("Transactions", tables.transactions(it)), 3),
    View("/producers", rest.producers, lambda it, _, __: Shown("Producers", tables.producers(it)), 5),
    View("/connections", rest.connections, lambda it, _, b: Shown("Connections", tables.connections(it, b)), 2),
    View(
        "/schedules",
        schedules.view,
        lambda it, _, b: Shown("Schedules", schedule_views.schedules(it[0], it[1], b)),
        2,
        needs=EACH,
    ),
    View("/brokers", brokers.brokers, lambda it, _, b: Shown("Brokers", brokers_view.brokers(it, b)), 5),
    View("/pipelines", pipelines.pipelines, lambda it, _, __: Shown("Pipelines", pipelines_view.pipelines(it)), 5),
    View("/settings", rest.settings, lambda it, _, __: Shown("Settings", tables.settings(it))),
    View("/access", access.access, lambda it, _, b: Shown("Access", access_view.access(it, b))),
    View(
        "/topics/{topic}/produce",
        changing.produce_form,
        lambda it, _, __: Shown(f"Send to {it['topic']}", changing.produce(it)),
        entry="/topics",
        writes=True,
        needs=WRITE_TOPIC,
    ),
    View(
        "/groups/{group}/reset",
        changing.reset_form,
        lambda it, _, __: Shown(f"Reset {it['group']}", changing.reset(it)),
        entry="/groups",
        writes=True,
        needs=CHANGE_GROUP,
    ),
    View(
        "/schedules/{topic}/{partition}",
        cancelling.waiting,
        lambda it, _, __: Shown(f"{it['topic']}-{it['partition']}", changing.waiting(it)),
        entry="/schedules",
    ),
)

BY_DATA: Final = {each.call: each.needs for each in ENDPOINTS}


def needs_of(view: View) -> Needs:
    return BY_DATA[view.data] if view.needs is None else view.needs


class Console:
    def __init__(self, inside: Inside) -> None:
        self._inside = inside
        self._files = Files()
        self._frame = Frame("", self._files.paths, shown=())  # for visitors without a login
        self._broker = f"ixion {inside.version}, broker {inside.node_id} of {inside.cluster_id}"
        self._views = {view.path: view for view in VIEWS}
        self._bootstrap = "" if inside.bootstrap in (HERE, "") else f" -b {inside.bootstrap}"

    def ask(self) -> Ask:
        """All pages of the console, by their paths."""
        routes = Routes()
        for pattern in self._views:
            routes.add(pattern, partial(self.view, pattern))
        for each in ENDPOINTS:
            routes.add(BASE + each.path, partial(self.endpoint, each), each.method)
        routes.add(f"{BASE}/openapi.json", self.description)
        routes.add("/mcp", self.tools, "POST")
        routes.add("/static/{name}", self._files.page)

        async def ask(request: HttpRequest) -> Answer:
            try:
                return await routes.ask(request)
            except RefusedError as refusal:
                if request.wants_html:
                    return self._say(self._frame, refusal.status, "", "Nothing here", refusal.text)
                raise

        return ask

    async def view(self, pattern: str, request: HttpRequest) -> Answer:
        view = self._views[pattern]
        entry = view.entry or view.path
        closed = self._inside.closed()
        if closed:
            return self._say(self._frame, 403, entry, "Closed", closed)
        door = self._inside.door
        try:
            caller = await door.caller_of(request)
        except SignInError:
            body = signing.sign_in(door.takes_passwords, door.takes_tokens)
            made = document(self._frame, entry, "Sign in", body, scripts=("sign.js",))
            return Response(made, 401, HTML, (("WWW-Authenticate", 'Bearer realm="ixion"'),))
        frame = self._frame_for(caller)
        writes = self._inside.writes
        if view.writes and not writes:
            return self._say(frame, 403, entry, "Reads only", READS_ONLY)
        try:
            demand(caller, needs_of(view), request.at)
            found = await view.data(replace(self._inside, caller=caller), request)
            await asyncio.sleep(0)  # the HTML is another turn of the loop
            title, body = view.show(found, request, self._bootstrap)
        except RefusedError as refusal:
            return self._say(frame, refusal.status, entry, "Nothing to show", refusal.text)
        scripts = view.scripts if caller.session is None else (*view.scripts, "sign.js")
        if writes and (view.writes or pattern in changing.ACTING):
            body = join([changing.leading(pattern, request.path), body])
            scripts = (*scripts, "act.js")
        made = document(frame, entry, title, body, refresh_s=view.refresh_s, scripts=scripts)
        return Response(made, kind=HTML)

    def _frame_for(self, caller: Caller) -> Frame:
        """With the views that the caller may see."""
        shown = tuple(each.path for each in ENTRIES if has(caller, needs_of(self._views[each.path])))
        user = "" if caller.session is None else caller.principal.partition(":")[2]
        return Frame(self._broker, self._files.paths, shown, user)

    def _say(self, frame: Frame, status: int, entry: str, title: str, text: str) -> Response:
        scripts = ("sign.js",) if frame.user else ()
        body = join([heading(title), empty(words.sentence(text))])
        return Response(document(frame, entry, title, body, scripts=scripts), status, HTML)

    async def endpoint(self, endpoint: Endpoint, request: HttpRequest) -> Answer:
        closed = self._inside.closed()
        if closed:
            return Response(json.dumps({"error": closed}).encode(), 403, JSON)
        try:
            caller = NOBODY._replace(address=request.address)
            if endpoint.needs != OPEN:
                caller = await self._inside.door.caller_of(request)
        except RefusedError as refusal:
            return refused(refusal)
        return await answer(endpoint, replace(self._inside, caller=caller), request)

    async def tools(self, request: HttpRequest) -> Answer:
        from ixion.broker.web.console.mcp import serve

        closed = self._inside.closed()
        try:
            if closed:
                raise RefusedError(403, closed)
            caller = await self._inside.door.caller_of(request)
            return await serve(replace(self._inside, caller=caller), request)
        except RefusedError as refusal:
            return refused(refusal)

    async def description(self, _request: HttpRequest) -> Answer:
        return Response(json.dumps(openapi(self._inside.version)).encode(), kind=JSON)
