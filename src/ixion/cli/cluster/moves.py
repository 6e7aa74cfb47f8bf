"""`ixion cluster reassign`, `drain` and `elect`: move partitions to other brokers, and leaders to other replicas.

Moves show their plan first; `--execute` carries it out and waits until every move is done. After an interrupt the moves
continue in the cluster, and the same command waits for them again. `--throttle` limits replication meanwhile: the
limits are set as Kafka's ReassignPartitionsCommand sets them, and removed at the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ixion.cli.access import CLUSTER, Access
from ixion.cli.cluster.wait import Waiting, cancelling
from ixion.cli.command import LARGEST_OFFSET, Argument, Command, Option, UsageError, whole
from ixion.cli.options import AS_JSON, administer
from ixion.cli.output import counted, note, show_json, show_table
from ixion.language.model.errors import KafkaError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ixion.cli.cluster.plan import Replicas
    from ixion.clients.admin.replicas import Reassignment
    from ixion.clients.admin.runner import AdminRunner
    from ixion.clients.metadata import ClusterMetadata, TopicPartition

BROKER_S: Final = 5.0  # for a broker to take its throttle away; a paused one does not answer
RATES: Final = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
LEADERS: Final = "leader.replication.throttled.replicas"
FOLLOWERS: Final = "follower.replication.throttled.replicas"


def reassign(
    topics: list[str],
    brokers: str | None,
    replication: int | None,
    throttle: int | None,
    cancel: bool,
    execute: bool,
    as_json: bool,
    access: Access,
) -> None:
    from ixion.cli.cluster.plan import spread
    from ixion.clients.admin.routes import metadata
    from ixion.clients.admin.topics import describe_topics

    if cancel and (brokers is not None or replication is not None or throttle is not None or execute):
        raise UsageError("--cancel cannot be combined with --to, --replication, --throttle or --execute")
    with administer(access) as admin:
        admin.run(describe_topics, topics).check()  # an unknown one is reported with the nearest name
        found = admin.run(metadata, None)
        if cancel:
            cancel_moves(admin, topics)
            return
        racks = {number: found.nodes[number].rack for number in chosen_brokers(brokers, found)}
        now = replicas_now(admin, found)
        chosen = [place for place in now if place.topic in topics]
        plan = spread(now, chosen, racks, replication)
        carry_out(admin, now, plan, set(chosen), throttle, execute, as_json, found)


def drain(broker: int, throttle: int | None, execute: bool, as_json: bool, access: Access) -> None:
    from ixion.cli.cluster.plan import spread
    from ixion.clients.admin.routes import metadata

    with administer(access) as admin:
        found = admin.run(metadata, None)
        racks = {number: node.rack for number, node in found.nodes.items() if number != broker}
        now = replicas_now(admin, found)
        chosen = [place for place, replicas in now.items() if broker in replicas]
        if broker not in found.nodes and not chosen:
            known = ", ".join(map(str, sorted(found.nodes)))
            raise UsageError(f"there is no broker {broker}; there are {known}")
        leaving = {place for place, replicas in replicas_under_way(found).items() if broker in replicas}
        carry_out(admin, now, spread(now, chosen, racks), leaving, throttle, execute, as_json, found)


def elect(topics: list[str], unclean: bool, as_json: bool, access: Access) -> None:
    from ixion.clients.admin.replicas import PREFERRED, UNCLEAN, elect_leaders
    from ixion.clients.admin.topics import describe_topics
    from ixion.clients.metadata import TopicPartition
    from ixion.language.model.errors import ErrorCode

    with administer(access) as admin:
        wanted = None
        if topics:
            described = admin.run(describe_topics, topics).check()
            wanted = [TopicPartition(name, part.number) for name in topics for part in described[name].partitions]
        found = admin.run(elect_leaders, wanted, kind=UNCLEAN if unclean else PREFERRED)
    moved = sorted(found.done)
    failed = {at: fault for at, fault in found.faults.items() if fault.code is not ErrorCode.ELECTION_NOT_NEEDED}
    if as_json:
        show_json({"topic": at.topic, "partition": at.partition, "elected": True} for at in moved)
    else:
        fine = "every partition has a leader" if unclean else "every partition is led by its preferred replica"
        print(f"elected {counted(len(moved), 'leader')}" if moved or failed else fine)
    if failed:
        raise next(iter(failed.values()))


def chosen_brokers(text: str | None, found: ClusterMetadata) -> list[int]:
    if text is None:
        return sorted(found.nodes)
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(f"--to needs broker ids separated by commas, such as 1,2,3, not {text!r}") from None
    for number in numbers:
        if number not in found.nodes:
            known = ", ".join(map(str, sorted(found.nodes)))
            raise UsageError(f"there is no broker {number}; there are {known}")
    return list(dict.fromkeys(numbers))


def replicas_under_way(found: ClusterMetadata) -> dict[TopicPartition, Replicas]:
    """The replicas of all partitions, with those that running moves add and remove."""
    from ixion.clients.metadata import TopicPartition

    return {
        TopicPartition(name, part.number): part.replicas
        for name, topic in found.topics.items()
        for part in topic.partitions
    }


def replicas_now(admin: AdminRunner, found: ClusterMetadata) -> dict[TopicPartition, Replicas]:
    """The replicas of all partitions after the running moves."""
    from ixion.clients.admin.replicas import list_partition_reassignments

    moves: Mapping[TopicPartition, Reassignment] = admin.run(list_partition_reassignments)
    now = {}
    for place, replicas in replicas_under_way(found).items():
        gone = moves[place].removing if place in moves else ()
        now[place] = tuple(each for each in replicas if each not in gone)
    return now


def carry_out(
    admin: AdminRunner,
    now: Mapping[TopicPartition, Replicas],
    plan: Mapping[TopicPartition, Replicas],
    meant: set[TopicPartition],
    throttle: int | None,
    execute: bool,
    as_json: bool,
    found: ClusterMetadata,
) -> None:
    """`meant` are the partitions of the command; it also waits for moves of them that run already."""
    from ixion.clients.admin.replicas import alter_partition_reassignments

    rows = [(place.topic, place.partition, now[place], after) for place, after in plan.items()]
    if as_json:
        show_json(
            {"topic": topic, "partition": number, "replicas": before, "planned": after, "executed": execute}
            for topic, number, before, after in rows
        )
    elif rows:
        texts = [(topic, number, joined(before), joined(after)) for topic, number, before, after in rows]
        show_table(("topic", "partition", "replicas", "planned"), texts, right=("partition",))
    else:
        note("nothing has to move")
    if not execute:
        if rows:
            note("nothing was moved; add --execute to do it")
        return
    if throttle is not None and plan:
        set_throttles(admin, now, plan, throttle, found)
    if plan:
        admin.run(alter_partition_reassignments, plan).check()
    topics = {place.topic for place in meant | set(plan)}
    try:
        Waiting(admin, meant | set(plan)).wait()
    except (KafkaError, KeyboardInterrupt):
        limits = " and their throttles stay" if throttle is not None else ""
        note(f"the moves continue{limits}; the same command waits for them again, `{cancelling(topics)}` cancels them")
        raise
    if throttle is not None:
        clear_throttles(admin, topics)
    if plan and not as_json:
        print(f"moved {counted(len(plan), 'partition')}")


def cancel_moves(admin: AdminRunner, topics: list[str]) -> None:
    from ixion.clients.admin.replicas import alter_partition_reassignments, list_partition_reassignments

    moves = [place for place in admin.run(list_partition_reassignments) if place.topic in topics]
    if moves:
        admin.run(alter_partition_reassignments, dict.fromkeys(moves)).check()
    clear_throttles(admin, set(topics))
    print(f"cancelled {counted(len(moves), 'move')}")


def set_throttles(
    admin: AdminRunner,
    now: Mapping[TopicPartition, Replicas],
    plan: Mapping[TopicPartition, Replicas],
    rate: int,
    found: ClusterMetadata,
) -> None:
    """Throttle present replicas as leaders, and new ones as followers."""
    from ixion.clients.admin.configs import Resource, alter_configs
    from ixion.language.model.resource_type import ResourceType

    changes: dict[Resource, dict[str, str | None]] = {
        Resource(ResourceType.BROKER, str(broker)): dict.fromkeys(RATES, str(rate)) for broker in sorted(found.nodes)
    }
    topics = {place.topic for place in plan}
    for topic in sorted(topics):
        leaders, followers = [], []
        for place, after in plan.items():
            if place.topic == topic:
                leaders += [f"{place.partition}:{broker}" for broker in now[place]]
                followers += [f"{place.partition}:{broker}" for broker in after if broker not in now[place]]
        changes[Resource(ResourceType.TOPIC, topic)] = {LEADERS: ",".join(leaders), FOLLOWERS: ",".join(followers)}
    for resource, settings in changes.items():  # one by one, so that the one that does not answer is known
        try:
            admin.run(alter_configs, {resource: settings}).check()
        except KafkaError as error:
            clear_throttles(admin, topics)
            what = f"the throttle of {resource.kind.name.lower()} {resource.name} cannot be set, so nothing was moved"
            raise KafkaError(error.code, f"{what}: {error.message}") from error


def clear_throttles(admin: AdminRunner, topics: set[str]) -> None:
    """A broker that does not answer keeps its rate, which limits nothing: no replica of a topic is named any more."""
    from ixion.clients.admin.configs import Resource, alter_configs
    from ixion.clients.admin.routes import metadata
    from ixion.language.model.resource_type import ResourceType

    of_topics: dict[Resource, dict[str, str | None]] = {
        Resource(ResourceType.TOPIC, topic): {LEADERS: None, FOLLOWERS: None} for topic in sorted(topics)
    }
    admin.run(alter_configs, of_topics).check()
    for broker in sorted(admin.run(metadata, ()).nodes):
        resource = Resource(ResourceType.BROKER, str(broker))
        try:
            admin.run_within(BROKER_S, alter_configs, {resource: dict.fromkeys(RATES)}).check()
        except KafkaError as error:
            again = f"ixion config unset broker {broker} {' '.join(RATES)}"
            note(f"broker {broker} keeps a throttle, which is for no partition now; `{again}` ({error.message})")


def joined(replicas: Replicas) -> str:
    return ",".join(map(str, replicas))


THROTTLE: Final = Option(
    "throttle",
    "--throttle",
    "Limit replication of these partitions to this rate on each broker, in bytes per second.",
    metavar="BYTES",
    kind=whole(1, LARGEST_OFFSET),
)
EXECUTE: Final = Option(
    "execute", "--execute", "Move them, and wait until that is done (default: show the plan).", hidden="--yes -y"
)

REASSIGN: Final = Command(
    "reassign",
    "Move the partitions of topics to other brokers, or change how many replicas they have.",
    reassign,
    arguments=(Argument("topics", "TOPIC...", many=True, complete="topic"),),
    options=(
        Option("brokers", "--to", "The brokers that may hold the replicas (default: all).", metavar="ID,ID..."),
        Option(
            "replication",
            "--replication -r",
            "Replicas of each partition (default: as many as now).",
            metavar="N",
            kind=whole(1, 32767),
        ),
        THROTTLE,
        Option("cancel", "--cancel", "Cancel the running moves of these topics, and remove their throttles."),
        EXECUTE,
        AS_JSON,
        *CLUSTER,
    ),
    examples=("ixion cluster reassign orders --to 1,2,4 --execute",),
)
DRAIN: Final = Command(
    "drain",
    "Move every replica of a broker to the others, before you remove it.",
    drain,
    arguments=(Argument("broker", "BROKER", "Its id.", kind=whole(0)),),
    options=(THROTTLE, EXECUTE, AS_JSON, *CLUSTER),
    examples=("ixion cluster drain 3 --throttle 50000000 --execute",),
)
ELECT: Final = Command(
    "elect",
    "Make the preferred replica of each partition its leader (default: in all topics).",
    elect,
    arguments=(Argument("topics", "TOPIC...", required=False, many=True, complete="topic"),),
    options=(
        Option(
            "unclean",
            "--unclean",
            "Elect any live replica if no in-sync replica is alive: records that it lacks are lost.",
        ),
        AS_JSON,
        *CLUSTER,
    ),
)
