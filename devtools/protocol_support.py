"""Writes docs/protocol-support.md from the message tables and the list of what is served.

With --check it writes nothing and fails if the page is stale.

python -m devtools.protocol_support [--check]
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules

import ixion.language.protocol.stored
from devtools.cache import CHECKOUT
from ixion.broker.apis.served import SERVED
from ixion.language.protocol.notation import LATEST, StructMeta
from ixion.language.protocol.registry import NEVER, ApiKey

PAGE = CHECKOUT / "docs" / "protocol-support.md"

INTRODUCTION = """\
# What ixion can say and understand

Made from the message tables, and from the broker's own list of what it serves, by `make support`; do not edit.
Versions are those that Apache Kafka 4.3 serves, with ApiVersions 5, TxnOffsetCommit 6 and DeleteGroups 3 of 4.4; the
keys 4 to 7, which it has given up, are those of 3.9. *Flexible from* is the first version with compact lengths and
tagged fields. Produce is advertised from version 0, although 3 is the oldest that is read: librdkafka before 2.11.1
compresses only if it finds version 0.

*Served* APIs are answered in all of their versions, and ApiVersions lists just these, but for client telemetry (71 and
72), which Kafka does not list without a plugin for it either. The messages of the others can be
read and written, but a broker closes the connection that sends one, as Apache Kafka does with keys it does not know.

| key | API | served | versions | flexible from | sent by | what it does |
|---:|---|---|---|---|---|---|
"""

STORED = """
## Stored messages

| table | versions | flexible from | found in |
|---|---|---|---|
"""


def page() -> str:
    apis = "".join(f"| {' | '.join(row)} |\n" for row in api_rows())
    stored = "".join(f"| {' | '.join(row)} |\n" for row in stored_rows())
    return INTRODUCTION + apis + STORED + stored


def api_rows() -> Iterator[tuple[str, ...]]:
    for api in ApiKey:
        about = first_line(f"ixion.language.protocol.messages.{api.stem}").partition(". ")[0]
        yield (
            str(int(api)),
            api.title,
            "yes" if api in SERVED else "",
            span(api.oldest, api.newest),
            since(api.flexible_from),
            api.audience.value,
            about,
        )


def stored_rows() -> Iterator[tuple[str, ...]]:
    for module in iter_modules(ixion.language.protocol.stored.__path__):
        name = f"ixion.language.protocol.stored.{module.name}"
        for table in vars(import_module(name)).values():
            if isinstance(table, StructMeta) and table.within != (0, -1):
                flexible = table.flexible[0] if table.flexible[1] == LATEST else NEVER
                yield table.__name__, span(*table.within), since(flexible), first_line(name).partition(":")[0]


def first_line(module: str) -> str:
    return (import_module(module).__doc__ or "").partition("\n")[0].removesuffix(".")


def span(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"


def since(flexible_from: int) -> str:
    return "never" if flexible_from == NEVER else str(flexible_from)


def main() -> None:
    if "--check" not in sys.argv:
        PAGE.write_text(page())
    elif not PAGE.exists() or PAGE.read_text() != page():
        sys.exit(f"{PAGE.relative_to(CHECKOUT)} is stale: run make support")


if __name__ == "__main__":
    main()
