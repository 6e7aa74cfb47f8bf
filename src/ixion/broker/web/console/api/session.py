"""Logging in and out. A script may send an Authorization header with each request instead."""

from __future__ import annotations

import json
from typing import TypedDict, cast

from ixion.broker.web.console.bodies import read_body
from ixion.broker.web.console.door import Claim, SignInError
from ixion.broker.web.console.inside import Inside
from ixion.broker.web.request import HttpRequest
from ixion.broker.web.response import JSON, RefusedError, Response


class Known(TypedDict):
    principal: str  # empty: nobody has logged in
    asks: bool  # whether clients must log in
    by_password: bool
    by_token: bool


class ToSignIn(TypedDict, total=False):
    user: str
    password: str
    token: str  # a bearer token, instead of both


class Nothing(TypedDict):
    pass


async def session(inside: Inside, request: HttpRequest) -> Known:
    try:
        caller = await inside.door.caller_of(request)
    except SignInError:
        return known(inside, "")
    return known(inside, caller.principal)


async def sign_in(inside: Inside, request: HttpRequest) -> Response:
    door = inside.door
    if not door.asks:
        raise RefusedError(400, "nobody has to log in here")
    body = cast(ToSignIn, read_body(request.body, ToSignIn))
    if ("token" in body) == ("user" in body or "password" in body):
        raise RefusedError(400, "give user and password, or a token")
    claim = Claim(body.get("user", ""), body.get("password", ""), body.get("token", ""))
    found, cookie = await door.sign_in(request.address, claim)
    return with_cookie(known(inside, found.gate.principal), cookie)


async def sign_out(inside: Inside, request: HttpRequest) -> Response:
    read_body(request.body, Nothing)
    return with_cookie(known(inside, ""), inside.door.sign_out(request))


def known(inside: Inside, principal: str) -> Known:
    door = inside.door
    return Known(principal=principal, asks=door.asks, by_password=door.takes_passwords, by_token=door.takes_tokens)


def with_cookie(found: Known, cookie: str) -> Response:
    return Response(json.dumps(found).encode(), kind=JSON, headers=(("Set-Cookie", cookie),))
