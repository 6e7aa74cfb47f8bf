"""Options that many commands share, and the cluster that they lead to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Final

import typer

if TYPE_CHECKING:
    from ixion.clients.cluster import Cluster

Bootstrap = Annotated[
    str,
    typer.Option(
        "--bootstrap",
        "-b",
        envvar="IXION_BOOTSTRAP",
        metavar="HOST:PORT",
        help="A broker of the cluster, or several with commas.",
    ),
]
Timeout = Annotated[float, typer.Option("--timeout", metavar="SECONDS", help="How long to try.")]
AsJson = Annotated[bool, typer.Option("--json", help="For programs.")]

HERE: Final = "127.0.0.1:9092"
PATIENCE_S: Final = 30.0


def connect(bootstrap: str, timeout_s: float = PATIENCE_S) -> Cluster:
    from ixion.clients.cluster import Cluster

    if not timeout_s > 0:
        raise typer.BadParameter(f"--timeout must be more than 0 seconds, not {timeout_s:g}")
    try:
        return Cluster(bootstrap, client_id="ixion-cli", timeout_s=timeout_s)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def parse_pairs(texts: Iterable[str], option: str) -> dict[str, str]:
    """`name=value` several times."""
    pairs = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise typer.BadParameter(f"{option} wants name=value, not {text!r}")
        pairs[name.strip()] = value
    return pairs


def unescape(text: str) -> str:
    r"""A separator as a shell makes it easy to write: \t, \n, \0 and \\ are one character."""
    for written, meant in (("\\\\", "\ue000"), ("\\t", "\t"), ("\\n", "\n"), ("\\0", "\0"), ("\ue000", "\\")):
        text = text.replace(written, meant)
    return text
