"""`ixion config`: get, set and unset the settings of topics and brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ixion.cli.options import HERE, PATIENCE_S, AsJson, Bootstrap, Timeout, connect, parse_pairs
from ixion.cli.output import note, show_json, show_table

if TYPE_CHECKING:
    from ixion.clients.configs import ConfigEntry, Resource

config = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Get, set and unset settings.")

Kind = Annotated[str, typer.Argument(metavar="topic|broker")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="A topic; or a broker's id, or default for all brokers.")]


@config.command()
def get(
    kind: Kind,
    name: Name,
    keys: Annotated[list[str] | None, typer.Argument(metavar="[KEY]...", help="Only these.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Those at their defaults too.")] = False,
    as_json: AsJson = False,
    bootstrap: Bootstrap = HERE,
    timeout: Timeout = PATIENCE_S,
) -> None:
    """Show the settings that somebody chose, or the named ones, with where each comes from."""
    from ixion.clients.configs import describe_configs

    resource = choose_resource(kind, name)
    with connect(bootstrap, timeout) as cluster:
        found = describe_configs(cluster, resource)
    chosen = select(found, keys or [], everything)
    if as_json:
        show_json([{"name": e.name, "value": e.value, "source": e.source, "read_only": e.read_only} for e in chosen])
    elif not chosen:
        note(f"{resource} has only defaults; --all shows them")
    else:
        show_table(("name", "value", "source"), [(e.name, shown(e), e.source) for e in chosen])


@config.command("set")
def set_(
    kind: Kind,
    name: Name,
    pairs: Annotated[list[str], typer.Argument(metavar="KEY=VALUE...")],
    bootstrap: Bootstrap = HERE,
    timeout: Timeout = PATIENCE_S,
) -> None:
    """Change settings while the cluster runs."""
    from ixion.clients.configs import alter_configs

    changes: dict[str, str | None] = {**parse_pairs(pairs, "set")}
    with connect(bootstrap, timeout) as cluster:
        alter_configs(cluster, choose_resource(kind, name), changes)
    for key, value in changes.items():
        print(f"{key} is {value}")


@config.command()
def unset(
    kind: Kind,
    name: Name,
    keys: Annotated[list[str], typer.Argument(metavar="KEY...")],
    bootstrap: Bootstrap = HERE,
    timeout: Timeout = PATIENCE_S,
) -> None:
    """Take settings away, so that the default holds again."""
    from ixion.clients.configs import alter_configs

    with connect(bootstrap, timeout) as cluster:
        alter_configs(cluster, choose_resource(kind, name), dict.fromkeys(keys))
    for key in keys:
        print(f"{key} is the default again")


def choose_resource(kind: str, name: str) -> Resource:
    from ixion.clients.configs import Resource, ResourceType

    kinds = {"topic": ResourceType.TOPIC, "broker": ResourceType.BROKER}
    if kind not in kinds:
        raise typer.BadParameter(f"settings belong to a topic or a broker, not to a {kind!r}")
    if kind == "broker" and name == "default":
        return Resource(ResourceType.BROKER, "")
    return Resource(kinds[kind], name)


def select(found: list[ConfigEntry], keys: list[str], everything: bool) -> list[ConfigEntry]:
    if not keys:
        return [entry for entry in found if everything or entry.is_set]
    known = {entry.name: entry for entry in found}
    for key in keys:
        if key not in known:
            from difflib import get_close_matches

            near = get_close_matches(key, known, n=1)
            meant = f"; did you mean {near[0]!r}?" if near else ""
            raise typer.BadParameter(f"there is no setting {key!r}{meant}")
    return [known[key] for key in keys]


def shown(entry: ConfigEntry) -> str:
    return "(secret)" if entry.secret else entry.value or ""
