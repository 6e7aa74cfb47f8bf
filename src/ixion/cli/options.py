"""Options that many commands share; those of the connection are in `access`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, cast

from ixion.cli.command import LARGEST_OFFSET, Exit, Option, UsageError, whole

if TYPE_CHECKING:
    from ixion.cli.access import Access
    from ixion.clients.admin.runner import AdminRunner
    from ixion.clients.reader import ReaderOptions
    from ixion.clients.security import SecurityOptions

CONNECT_S: Final = 10.0  # for one address; then the next one is tried
AS_JSON: Final = Option("as_json", "--json", "One JSON object a line, for programs.")

# Which records of a topic a command reads.
PARTITION: Final = Option(
    "partition", "--partition -p", "Only this partition; may be repeated.", metavar="N", kind=whole(0), many=True
)
MOST: Final = Option(
    "most", "--max -n", "Stop after N records.", metavar="N", kind=whole(1, LARGEST_OFFSET), hidden="--count --num"
)
UNTIL: Final = Option(
    "until",
    "--until",
    "Where to stop, in the same form; that record is not included.",
    metavar="WHERE",
    complete="latest",
)
READ_COMMITTED: Final = Option(
    "read_committed", "--read-committed", "Leave out records of aborted and open transactions."
)


# Of commands that destroy something.
YES: Final = Option("yes", "--yes -y", "Do it without asking.")


def confirm(what: str, yes: bool) -> None:
    """Return if the user agrees, by --yes or by typing y. UsageError if nobody can be asked."""
    import sys

    if yes:
        return
    if not sys.stdin.isatty() or not sys.stderr.isatty():
        raise UsageError(f"this would {what}; add --yes to do it")
    print(f"This will {what}. Continue? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        from ixion.cli.output import note

        note("nothing was done")
        raise Exit(1)


def administer(access: Access) -> AdminRunner:
    """An administrator that runs plans, so that a command imports only those that it needs."""
    from ixion.clients.admin.runner import AdminRunner

    try:
        return AdminRunner(
            access.bootstrap,
            client_id="ixion-cli",
            default_api_timeout_ms=access.timeout_s * 1000,
            request_timeout_ms=access.timeout_s * 1000,
            socket_connection_setup_timeout_ms=min(access.timeout_s, CONNECT_S) * 1000,
            **cast("SecurityOptions", access.security),
        )
    except ValueError as error:
        raise UsageError(str(error)) from None


def reading(access: Access) -> ReaderOptions:
    """The options of a Reader."""
    from ixion.clients.security import read_security

    try:
        security = read_security(access.security)
    except ValueError as error:
        raise UsageError(str(error)) from None
    return {"client_id": "ixion-cli", "security": security, "request_timeout_s": access.timeout_s}


def parse_pairs(texts: Iterable[str], option: str) -> dict[str, str]:
    """`name=value` several times."""
    pairs = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"{option} needs name=value, not {text!r}")
        pairs[name.strip()] = value
    return pairs


def unescape(text: str) -> bytes:
    r"""Replace escapes: \t, \n, \r, \0 and \\ become one byte, and so do two hexadecimal digits after \x."""
    import re

    plain = {b"t": b"\t", b"n": b"\n", b"r": b"\r", b"0": b"\0", b"\\": b"\\"}

    def meant(found: re.Match[bytes]) -> bytes:
        escape = found[1]
        return plain.get(escape) or bytes([int(escape[1:], 16)])

    return re.sub(rb"\\(x[0-9a-fA-F]{2}|[tnr0\\])", meant, text.encode(errors="surrogateescape"))
