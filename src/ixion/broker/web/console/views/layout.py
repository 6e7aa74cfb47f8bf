"""What every view has: the navigation, the head, tables, filters and empty states."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from ixion.broker.web.console.api.figures import Page
from ixion.broker.web.console.views.markup import Child, Safe, join, link, tag, text
from ixion.broker.web.console.views.words import count


class View(NamedTuple):
    path: str
    name: str
    key: str  # after g, on the keyboard


VIEWS: Final = (
    View("/", "Overview", "o"),
    View("/wheel", "Wheel", "w"),
    View("/purgatories", "Purgatories", "p"),
    View("/topics", "Topics", "t"),
    View("/groups", "Groups", "g"),
    View("/transactions", "Transactions", "x"),
    View("/producers", "Producers", "r"),
    View("/connections", "Connections", "c"),
    View("/schedules", "Schedules", "s"),
    View("/brokers", "Brokers", "b"),
    View("/pipelines", "Pipelines", "l"),
    View("/settings", "Settings", "e"),
    View("/access", "Access", "a"),
)


class Frame(NamedTuple):
    """What the page around a view shows."""

    broker: str
    files: dict[str, str]  # the path of each static file, which has its hash
    shown: Sequence[str]  # the paths of the navigation
    user: str = ""  # that has logged in


def document(
    frame: Frame, path: str, title: str, body: Child, *, refresh_s: int = 0, scripts: Sequence[str] = ()
) -> bytes:
    files = frame.files
    entries = [
        tag(
            "a",
            view.name,
            href=view.path,
            aria_current="page" if view.path == path else None,
            data_key=view.key,
        )
        for view in VIEWS
        if view.path in frame.shown
    ]
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="dark light"),
        tag("title", f"{title} · ixion"),
        tag("link", rel="icon", href=files["icon.svg"], type="image/svg+xml"),
        tag("link", rel="stylesheet", href=files["page.css"]),
        [tag("script", src=files[each], defer=True) for each in ("page.js", *scripts)],
    )
    made = tag(
        "html",
        head,
        tag(
            "body",
            tag("a", "to the content", href="#content", class_="skip"),
            tag(
                "header",
                tag("a", Safe(LOGO), tag("b", "ixion"), href="/", class_="logo", aria_label="ixion, overview"),
                tag("nav", entries, aria_label="views") if entries else None,
                tag("p", frame.user, tag("button", "Sign out", type="button", data_sign_out=True), class_="user")
                if frame.user
                else None,
                tag("p", frame.broker, class_="broker"),
            ),
            tag("main", body, id="content", tabindex="-1", data_refresh=refresh_s or None),
            tag("dialog", keys(), id="keys", aria_label="keys"),
        ),
        lang="en",
    )
    return b"<!doctype html>\n" + made.encode()


LOGO: Final = (
    '<svg viewBox="0 0 32 32" aria-hidden="true" class="mark"><circle cx="16" cy="16" r="13"></circle>'
    '<circle cx="16" cy="16" r="7"></circle><path d="M16 16V3M16 16l11.3 6.5M16 16L4.7 22.5"></path></svg>'
)


def keys() -> Safe:
    lines = [("g, then", ", ".join(f"{view.key} {view.name.lower()}" for view in VIEWS)), ("/", "filter")]
    lines += [("j, k", "next and previous row"), ("Enter", "open the row"), ("?", "these keys"), ("Esc", "close")]
    return join([tag("h2", "Keys"), tag("dl", [[tag("dt", key), tag("dd", what)] for key, what in lines])])


def heading(title: Child, about: Child = "", *beside: Child) -> Safe:
    return tag("div", tag("h1", title), tag("p", about, class_="about") if about else None, *beside, class_="heading")


class Column(NamedTuple):
    title: str
    number: bool = False  # aligned to the right, sorted by its value


def table(name: str, columns: Sequence[Column], rows: Iterable[Sequence[Child]], caption: str) -> Safe:
    """`name` is its id: a refresh replaces the rows and keeps their order."""
    head = tag(
        "tr",
        [
            tag("th", tag("button", column.title, type="button"), scope="col", class_="n" if column.number else None)
            for column in columns
        ],
    )
    starts = ['<td class="n">' if column.number else "<td>" for column in columns]
    # By hand, because `tag` would take most of the time of a long table.
    lines = [
        Safe(f"<tr>{''.join([f'{start}{text(cell)}</td>' for start, cell in zip(starts, row, strict=True)])}</tr>")
        for row in rows
    ]
    return tag(
        "div",
        tag(
            "table",
            tag("caption", caption, class_="hidden"),
            tag("thead", head),
            tag("tbody", lines, id=name, data_live=True),
        ),
        class_="scroll",
        tabindex="0",
        role="region",
        aria_label=caption,
    )


def value(shown: Child, sort_by: float | None) -> Safe:
    """A cell that sorts by another value than its text."""
    return tag("data", shown, value=-1 if sort_by is None else f"{sort_by:.17g}")


def filtering(path: str, query: str, what: str, **kept: str | int | None) -> Safe:
    return tag(
        "form",
        tag("input", type="search", name="q", value=query, placeholder=f"filter {what}", aria_label=f"filter {what}"),
        [tag("input", type="hidden", name=name, value=text) for name, text in kept.items() if text],
        action=path,
        role="search",
        class_="filter",
    )


def pages(path: str, page: Page, **kept: str | int | None) -> Safe | None:
    """Links to the parts of a long list before and after this one."""
    start, limit, total = page["start"], page["limit"], page["total"]
    if total <= limit and not start:
        return None
    segments = path.strip("/").split("/")
    common = {"q": page["query"], "limit": limit if limit != 100 else None, **kept}

    def to(place: int, text: str, rel: str) -> Safe:
        address = path if not path.strip("/") else link(*segments, start=place or None, **common)
        return tag("a", text, href=address, rel=rel)

    return tag(
        "p",
        to(max(start - limit, 0), "← previous", "prev") if start else None,
        tag("span", f"{start + 1:,} to {min(start + limit, total):,} of {count(total)}"),
        to(start + limit, "next →", "next") if start + limit < total else None,
        class_="pages",
    )


def empty(what: Child, command: str = "", more: Child = "") -> Safe:
    """What to do when there is nothing to show."""
    return tag(
        "div",
        tag("p", what),
        tag("p", tag("code", command, data_copy=True)) if command else None,
        tag("p", more, class_="about") if more else None,
        class_="empty",
    )


def facts(name: str, pairs: Iterable[tuple[str, Child]]) -> Safe:
    return tag(
        "dl",
        [tag("div", tag("dt", term), tag("dd", shown)) for term, shown in pairs],
        id=name,
        data_live=True,
        class_="facts",
    )


def warn(text: Child) -> Safe:
    return tag("span", text, class_="warn")
