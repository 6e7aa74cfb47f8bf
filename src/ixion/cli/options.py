"""Options that many commands share, and the cluster that they lead to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from ixion.cli.command import Option, UsageError, number

if TYPE_CHECKING:
    from ixion.clients.cluster import Cluster

HERE: Final = "127.0.0.1:9092"
PATIENCE_S: Final = 30.0

BOOTSTRAP: Final = Option(
    "bootstrap",
    "--bootstrap -b",
    "A broker of the cluster, or several with commas.",
    metavar="HOST:PORT",
    default=HERE,
    environment="IXION_BOOTSTRAP",
    hidden="--bootstrap-server --brokers",
)
TIMEOUT: Final = Option("timeout", "--timeout", "How long to try.", metavar="SECONDS", kind=number, default=PATIENCE_S)
CLUSTER: Final = (BOOTSTRAP, TIMEOUT)
AS_JSON: Final = Option("as_json", "--json", "One JSON object a line, for programs.")


def connect(bootstrap: str, timeout_s: float = PATIENCE_S) -> Cluster:
    from ixion.clients.cluster import Cluster

    if not timeout_s > 0:
        raise UsageError(f"--timeout must be more than 0 seconds, not {timeout_s:g}")
    try:
        return Cluster(bootstrap, client_id="ixion-cli", timeout_s=timeout_s)
    except ValueError as error:
        raise UsageError(str(error)) from None


def parse_pairs(texts: Iterable[str], option: str) -> dict[str, str]:
    """`name=value` several times."""
    pairs = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"{option} wants name=value, not {text!r}")
        pairs[name.strip()] = value
    return pairs


def unescape(text: str) -> str:
    r"""A separator as a shell makes it easy to write: \t, \n, \r, \0 and \\ are one character."""
    plain = {"t": "\t", "n": "\n", "r": "\r", "0": "\0", "\\": "\\"}
    pieces = text.split("\\")
    made = pieces[0]
    at = 1
    while at < len(pieces):
        piece = pieces[at]
        if piece:
            made += plain.get(piece[0], "\\" + piece[0]) + piece[1:]
        elif at + 1 < len(pieces):  # two backslashes
            at += 1
            made += "\\" + pieces[at]
        else:
            made += "\\"
        at += 1
    return made
