"""`ixion config`: get, set and unset the settings of topics, brokers, groups and loggers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ixion.cli.access import CLUSTER, Access
from ixion.cli.command import Argument, Command, Group, Option, UsageError, nearest
from ixion.cli.options import AS_JSON, administer, parse_pairs
from ixion.cli.output import note, show_json, show_table

if TYPE_CHECKING:
    from ixion.clients.admin.configs import ConfigEntry, Resource


def get(kind: str, name: str, keys: list[str], everything: bool, as_json: bool, access: Access) -> None:
    from ixion.clients.admin.configs import describe_configs

    resource = choose_resource(kind, name)
    with administer(access) as admin:
        found = admin.run(describe_configs, [resource])[resource]
    chosen = select(found, keys, everything)
    if as_json:
        show_json({"name": e.name, "value": e.value, "source": e.source, "read_only": e.read_only} for e in chosen)
    elif not chosen:
        note(f"{resource} has only defaults; --all shows them")
    else:
        show_table(("name", "value", "source"), [(e.name, shown(e), e.source) for e in chosen])


def set_(kind: str, name: str, pairs: list[str], access: Access) -> None:
    from ixion.clients.admin.configs import alter_configs

    changes: dict[str, str | None] = {**parse_pairs(pairs, "set")}
    with administer(access) as admin:
        admin.run(alter_configs, {choose_resource(kind, name): changes}).check()
    for key, value in changes.items():
        print(f"{key} is {value}")


def unset(kind: str, name: str, keys: list[str], access: Access) -> None:
    from ixion.clients.admin.configs import alter_configs

    with administer(access) as admin:
        admin.run(alter_configs, {choose_resource(kind, name): dict.fromkeys(keys)}).check()
    for key in keys:
        print(f"{key} is the default again")


def choose_resource(kind: str, name: str) -> Resource:
    from ixion.clients.admin.configs import Resource
    from ixion.language.model.resource_type import ResourceType

    kinds = {
        "topic": ResourceType.TOPIC,
        "broker": ResourceType.BROKER,
        "group": ResourceType.GROUP,
        "logger": ResourceType.BROKER_LOGGER,
    }
    if kind not in kinds:
        raise UsageError(f"unknown kind {kind!r}; settings belong to a topic, broker, group or logger")
    if kind == "broker" and name == "default":
        return Resource(ResourceType.BROKER, "")
    return Resource(kinds[kind], name)


def select(found: list[ConfigEntry], keys: list[str], everything: bool) -> list[ConfigEntry]:
    if not keys:
        return [entry for entry in found if everything or entry.is_set]
    known = {entry.name: entry for entry in found}
    for key in keys:
        if key not in known:
            raise UsageError(f"there is no setting {key!r}{nearest(key, list(known))}")
    return [known[key] for key in keys]


def shown(entry: ConfigEntry) -> str:
    return "(secret)" if entry.secret else entry.value or ""


KIND: Final = Argument("kind", "topic|broker|group|logger", complete="topic|broker|group|logger")
NAME: Final = Argument(
    "name",
    "NAME",
    "A topic, a group, a broker id (also for a logger), or default for all brokers.",
    complete="resource",
)

KEYS: Final = Argument(
    "keys", "KEY...", "Show only these settings.", required=False, many=True, complete="resource-setting-name"
)

CONFIG: Final = Group(
    "config",
    "Get, set and unset the settings of topics, brokers, groups and loggers.",
    Command(
        "get",
        "Show the settings that were set, or the named ones, with the source of each.",
        get,
        arguments=(KIND, NAME, KEYS),
        options=(Option("everything", "--all", "Also show settings with their default."), AS_JSON, *CLUSTER),
        examples=("ixion config get topic orders", "ixion config get broker default --all"),
        aliases=("list", "ls", "describe"),
    ),
    Command(
        "set",
        "Change settings while the cluster runs.",
        set_,
        arguments=(KIND, NAME, Argument("pairs", "KEY=VALUE...", many=True, complete="resource-setting")),
        options=CLUSTER,
        examples=(
            "ixion config set topic orders retention.ms=3600000",
            "ixion config set logger 1 ixion.broker.log=DEBUG",
        ),
    ),
    Command(
        "unset",
        "Return settings to their defaults.",
        unset,
        arguments=(KIND, NAME, Argument("keys", "KEY...", many=True, complete="resource-setting-name")),
        options=CLUSTER,
        aliases=("rm", "delete"),
    ),
)
