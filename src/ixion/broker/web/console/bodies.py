"""The bodies of requests: JSON that must fit the annotations from which OpenAPI describes it.

A value of Python for each element of JSON costs far more than its bytes, and `json` holds the event loop for as long as
it reads. So the elements are counted first, which takes a millisecond for the largest body.
"""

from __future__ import annotations

import json
from types import NoneType, UnionType
from typing import Any, Final, Literal, get_args, get_origin, get_type_hints, is_typeddict

from ixion.broker.web.response import RefusedError

MOST_VALUES: Final = 10_000
NAMES: Final = {int: "a whole number", str: "text", bool: "true or false", NoneType: "null", float: "a number"}


def read_body(body: bytes, kind: Any) -> Any:
    """The body as a value of `kind`, a TypedDict. RefusedError, naming the field, if it is none."""
    if not body:
        body = b"{}"
    if weighs_too_much(body):
        raise RefusedError(413, f"more than {MOST_VALUES:,} values in one request: send them in several")
    try:
        found = json.loads(body)
    except UnicodeDecodeError:
        raise RefusedError(400, "the body is not UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise RefusedError(400, f"the body is not JSON: {str(error)[:200]}") from None
    check(found, kind, "the body")
    return found


def weighs_too_much(data: bytes) -> bool:
    """Whether JSON has more than `MOST_VALUES` elements. Commas and brackets within strings do not count."""
    bare = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    if bare.count(b'"') > 4 * MOST_VALUES:  # two for a text, and two for its name
        return True
    outside = b"".join(bare.split(b'"')[::2])
    return outside.count(b",") + outside.count(b"[") + outside.count(b"{") > 2 * MOST_VALUES


def check(value: Any, kind: Any, where: str) -> None:
    if is_typeddict(kind):
        if not isinstance(value, dict):
            raise RefusedError(400, f"{where} is an object")
        hints = get_type_hints(kind)
        for name in value:
            if name not in hints:
                raise RefusedError(400, f"{where} has no field {name[:100]!r} (fields: {', '.join(hints)})")
        for name in kind.__required_keys__:
            if name not in value:
                raise RefusedError(400, f"{where} needs {name!r}")
        for name, each in value.items():
            check(each, hints[name], name)
    elif get_origin(kind) is list:
        if not isinstance(value, list):
            raise RefusedError(400, f"{where} is a list")
        for number, each in enumerate(value):
            check(each, get_args(kind)[0], f"{where}[{number}]")
    elif isinstance(kind, UnionType):
        choices = get_args(kind)
        fitting = next((each for each in choices if is_like(value, each)), None)
        if fitting is None:
            raise RefusedError(400, f"{where} is {' or '.join(named(each) for each in choices)}")
        check(value, fitting, where)
    elif get_origin(kind) is Literal:
        if value not in get_args(kind):
            raise RefusedError(400, f"{where} is {named(kind)}")
    elif not is_like(value, kind):
        raise RefusedError(400, f"{where} is {named(kind)}")


def is_like(value: Any, kind: Any) -> bool:
    if is_typeddict(kind):
        return isinstance(value, dict)
    if get_origin(kind) is list:
        return isinstance(value, list)
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63
    return isinstance(value, kind)


def named(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return "one of " + ", ".join(map(str, get_args(kind)))
    if is_typeddict(kind):
        return f"an object with {' and '.join(get_type_hints(kind))}"
    return "a list" if get_origin(kind) is list else NAMES[kind]
