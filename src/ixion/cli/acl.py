"""`ixion acl`: add, list, remove and check access rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ixion.cli.access import CLUSTER, Access
from ixion.cli.command import Argument, Command, Exit, Group, Option, UsageError, nearest
from ixion.cli.options import AS_JSON, YES, administer, confirm
from ixion.cli.output import counted, note, show_json, show_table

if TYPE_CHECKING:
    from ixion.language.model.acl_binding import Binding, Filter
    from ixion.language.model.acl_names import Operation, ResourceKind

OPERATIONS: Final = (
    *("all", "read", "write", "create", "delete", "alter", "describe", "cluster-action"),
    *("describe-configs", "alter-configs", "idempotent-write"),
)
SUPER_USERS: Final = "super.users"
OPEN: Final = "allow.everyone.if.no.acl.found"


def add(
    allow: list[str],
    deny: list[str],
    operation: list[str],
    topic: list[str],
    group: list[str],
    transactional_id: list[str],
    in_cluster: bool,
    prefixed: bool,
    host: str | None,
    access: Access,
) -> None:
    from ixion.clients.admin.acls import create_acls
    from ixion.language.model.acl_binding import Binding, Entry, ResourcePattern
    from ixion.language.model.acl_names import PatternKind, Permission

    resources = resources_of(topic, group, transactional_id, in_cluster)
    if not resources:
        raise UsageError("name a resource: --topic, --group, --transactional-id or --cluster")
    if not allow and not deny:
        raise UsageError("name a user with --allow or --deny")
    if prefixed and in_cluster:
        raise UsageError("--prefixed is for names; a cluster has none")
    pattern = PatternKind.PREFIXED if prefixed else PatternKind.LITERAL
    who = [(principal, Permission.ALLOW) for principal in allow] + [(principal, Permission.DENY) for principal in deny]
    rules = [
        Binding(ResourcePattern(kind, name, pattern), Entry(in_full(principal), host or "*", each, permission))
        for kind, name in resources
        for principal, permission in who
        for each in [operation_of(word) for word in operation or ["all"]]
    ]
    with administer(access) as admin:
        admin.run(create_acls, rules).check()
    for rule in rules:
        print(f"added: {rule}")


def list_(as_json: bool, access: Access, **chosen: Any) -> None:
    from ixion.clients.admin.acls import describe_acls

    with administer(access) as admin:
        found = admin.run(describe_acls, filter_of(**chosen))
    if as_json:
        show_json(as_row(rule) for rule in found)
    elif not found:
        note("there is no such rule")
    else:
        columns = ("kind", "name", "pattern", "principal", "host", "operation", "permission")
        show_table(columns, [tuple(as_row(rule).values()) for rule in found])


def remove(everything: bool, yes: bool, access: Access, **chosen: Any) -> None:
    from ixion.clients.admin.acls import delete_acls, describe_acls
    from ixion.language.model.acl_binding import Filter

    wanted = filter_of(**chosen)
    if wanted == Filter() and not everything:
        raise UsageError("that would remove every rule; choose some, or say --all")
    with administer(access) as admin:
        if not yes:
            count = len(admin.run(describe_acls, wanted))
            confirm(f"remove {counted(count, 'access rule')}", yes)
        gone = admin.run(delete_acls, [wanted])[wanted]
    for rule in gone:
        print(f"removed: {rule}")
    if not gone:
        note("there is no such rule")


def check(principal: str, operation: str, kind: str, name: str | None, host: str | None, access: Access) -> None:
    from ixion.broker.acl.authorizer import parse_super_users
    from ixion.broker.acl.rules import Rules
    from ixion.clients.admin.acls import describe_acls
    from ixion.clients.admin.configs import Resource, describe_configs
    from ixion.clients.admin.routes import nodes
    from ixion.language.model.acl_binding import Filter, ResourcePattern, same_host
    from ixion.language.model.acl_names import CLUSTER_NAME, ResourceKind
    from ixion.language.model.resource_type import ResourceType

    of_kind = kind_of(kind)
    if of_kind == ResourceKind.CLUSTER:
        name = CLUSTER_NAME
    elif name is None:
        raise UsageError(f"which {kind}? its name comes last")
    who = in_full(principal)
    with administer(access) as admin:
        found = admin.run(describe_acls, Filter(kind=of_kind))
        broker = Resource(ResourceType.BROKER, str(admin.run(nodes)[0]))
        settings = {entry.name: entry.value for entry in admin.run(describe_configs, [broker])[broker]}
    rules = Rules(parse_super_users(settings.get(SUPER_USERS) or ""), settings.get(OPEN) == "true")
    entries: dict[ResourcePattern, list[Any]] = {}
    for resource, entry in found:
        entries.setdefault(resource, []).append(entry)
    for resource, some in entries.items():
        rules.put(resource, some)
    wanted = operation_of(operation)
    decision = rules.decide(who, same_host(host or ""), wanted, of_kind, name)
    yes = "may" if decision.allowed else "may not"
    print(f"{who} {yes} {wanted.title} {of_kind.title}:{name}: {decision.why}")
    if not decision.allowed:
        raise Exit(1)


def resources_of(
    topic: list[str], group: list[str], transactional_id: list[str], in_cluster: bool
) -> list[tuple[ResourceKind, str]]:
    from ixion.language.model.acl_names import CLUSTER_NAME, ResourceKind

    return [
        *((ResourceKind.TOPIC, name) for name in topic),
        *((ResourceKind.GROUP, name) for name in group),
        *((ResourceKind.TRANSACTIONAL_ID, name) for name in transactional_id),
        *([(ResourceKind.CLUSTER, CLUSTER_NAME)] if in_cluster else []),
    ]


def filter_of(
    principal: str | None,
    operation: str | None,
    topic: str | None,
    group: str | None,
    transactional_id: str | None,
    in_cluster: bool,
    prefixed: bool,
    matching: bool,
) -> Filter:
    from ixion.language.model.acl_binding import Filter
    from ixion.language.model.acl_names import Operation, PatternKind, ResourceKind

    topics, groups, ids = ([] if name is None else [name] for name in (topic, group, transactional_id))
    resources = resources_of(topics, groups, ids, in_cluster)
    if len(resources) > 1:
        raise UsageError("choose one resource")
    kind, name = resources[0] if resources else (ResourceKind.ANY, None)
    if matching and name is None:
        raise UsageError("--matching needs the name of a resource")
    pattern = PatternKind.MATCH if matching else PatternKind.PREFIXED if prefixed else PatternKind.ANY
    return Filter(
        kind=kind,
        name=name,
        pattern=pattern,
        principal=None if principal is None else in_full(principal),
        operation=Operation.ANY if operation is None else operation_of(operation),
    )


def in_full(principal: str) -> str:
    """`alice` is `User:alice`."""
    return principal if ":" in principal else f"User:{principal}"


def operation_of(word: str) -> Operation:
    from ixion.language.model.acl_names import Operation

    wanted = word.lower().replace("_", "-")
    if wanted not in OPERATIONS:
        raise UsageError(f"there is no operation {word!r}{nearest(wanted, list(OPERATIONS))}")
    return Operation[wanted.replace("-", "_").upper()]


def kind_of(word: str) -> ResourceKind:
    from ixion.language.model.acl_names import ResourceKind

    kinds = {"topic": ResourceKind.TOPIC, "group": ResourceKind.GROUP, "cluster": ResourceKind.CLUSTER}
    kinds["transactional-id"] = ResourceKind.TRANSACTIONAL_ID
    if word not in kinds:
        raise UsageError(f"there is no kind of resource {word!r}{nearest(word, list(kinds))}")
    return kinds[word]


def as_row(rule: Binding) -> dict[str, str]:
    resource, entry = rule
    return {
        "kind": resource.kind.name.lower().replace("_", "-"),
        "name": resource.name,
        "pattern": resource.pattern.name.lower(),
        "principal": entry.principal,
        "host": entry.host,
        "operation": entry.operation.name.lower().replace("_", "-"),
        "permission": entry.permission.name.lower(),
    }


def _resources(*, many: bool) -> tuple[Option, ...]:
    again = "; may be repeated" if many else ""
    return (
        Option("topic", "--topic -t", f"A topic, or * for all{again}.", metavar="NAME", many=many, complete="topic"),
        Option("group", "--group -g", f"A group, or * for all{again}.", metavar="NAME", many=many, complete="group"),
        Option("transactional_id", "--transactional-id", f"A transactional id{again}.", metavar="NAME", many=many),
        Option("in_cluster", "--cluster", "The cluster itself."),
    )


_CHOICE: Final = (
    Option("principal", "--principal", "Only rules for this user.", metavar="USER"),
    Option("operation", "--operation -o", "Only for this operation.", metavar="OP", complete="|".join(OPERATIONS)),
    *_resources(many=False),
    Option("prefixed", "--prefixed", "Only rules for names with this prefix."),
    Option("matching", "--matching", "Every rule that applies to the name: literal, prefixed and *."),
)

ACL: Final = Group(
    "acl",
    "Add, list and remove access rules, and see which one decides.",
    Command(
        "add",
        "Allow or deny users to do something.",
        add,
        options=(
            Option("allow", "--allow", "A user, or * for all; may be repeated.", metavar="USER", many=True),
            Option("deny", "--deny", "A user to deny, or * for all; wins over --allow.", metavar="USER", many=True),
            Option(
                "operation",
                "--operation -o",
                "An operation (default: all); may be repeated.",
                metavar="OP",
                many=True,
                complete="|".join(OPERATIONS),
            ),
            *_resources(many=True),
            Option("prefixed", "--prefixed", "Apply the rule to all names that begin with NAME."),
            Option("host", "--host", "Only from this address (default: any).", metavar="ADDRESS"),
            *CLUSTER,
        ),
        examples=(
            "ixion acl add --allow alice -o read -t orders -g reports",
            "ixion acl add --deny bob -t pay --prefixed",
        ),
    ),
    Command(
        "list",
        "List access rules.",
        list_,
        options=(*_CHOICE, AS_JSON, *CLUSTER),
        aliases=("ls",),
        examples=("ixion acl list", "ixion acl list --topic payments --matching"),
    ),
    Command(
        "remove",
        "Remove the access rules that match.",
        remove,
        options=(*_CHOICE, Option("everything", "--all", "Remove every rule."), YES, *CLUSTER),
        aliases=("rm",),
        examples=("ixion acl remove --principal alice --topic orders --yes",),
    ),
    Command(
        "check",
        "Say whether a user may do something, and which rule decides. The exit code is 1 if not.",
        check,
        arguments=(
            Argument("principal", "USER"),
            Argument("operation", "OPERATION", complete="|".join(OPERATIONS)),
            Argument("kind", "KIND", "topic, group, transactional-id or cluster.", complete="topic|group|cluster"),
            Argument("name", "NAME", required=False),
        ),
        options=(Option("host", "--host", "From this address.", metavar="ADDRESS"), *CLUSTER),
        examples=("ixion acl check alice write topic payments",),
    ),
)
