"""HTML by functions, escaped unless it is `Safe`: a name of a topic, a group or a client never becomes markup.

tag("a", topic, href=link("topics", topic))      <a href="/topics/a%2Fb">a/b</a>
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Final
from urllib.parse import quote, urlencode

VOID: Final = frozenset({"br", "img", "input", "link", "meta"})
SHAPES: Final = frozenset({"circle", "line", "path", "rect"})  # of SVG: a slash ends them


class Safe(str):
    """Text that is HTML already."""

    __slots__ = ()


Child = str | int | None | Iterable["Child"]


def tag(name: str, /, *children: Child, **attributes: str | int | bool | None) -> Safe:
    """`class_` is class, `data_live` is data-live; True is an attribute without a value, False and None none."""
    made: list[str] = []
    for attribute, value in attributes.items():
        if value is None or value is False:
            continue
        spelled = attribute.rstrip("_").replace("_", "-")
        made.append(f" {spelled}" if value is True else f' {spelled}="{escape(str(value))}"')
    if name in VOID:
        return Safe(f"<{name}{''.join(made)}>")
    if name in SHAPES:
        return Safe(f"<{name}{''.join(made)}/>")
    return Safe(f"<{name}{''.join(made)}>{join(children)}</{name}>")


def text(child: Child) -> str:
    """The HTML of one child."""
    if isinstance(child, Safe):
        return child
    return escape(child) if isinstance(child, str) else join((child,))


def join(children: Iterable[Child]) -> Safe:
    parts: list[str] = []
    for child in children:
        if child is None:
            continue
        if isinstance(child, Safe):
            parts.append(child)
        elif isinstance(child, str):
            parts.append(escape(child))
        elif isinstance(child, int):
            parts.append(f"{child:,}")
        else:
            parts.append(join(child))
    return Safe("".join(parts))


def link(*segments: str, **query: str | int | None) -> str:
    """The path of a page; names are quoted."""
    path = "/" + "/".join(quote(segment, safe="") for segment in segments)
    given = {name: value for name, value in query.items() if value not in (None, "")}
    return f"{path}?{urlencode(given)}" if given else path
