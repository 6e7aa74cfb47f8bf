"""`ixion cluster up`, `status`, `down`, `kill` and `tree`: a cluster of processes on this machine.

It is for laptops, tests and machines with many cores, where each broker has its own core. One more process serves the
brokers a shared metadata tree, by ZooKeeper's protocol. If the machine fails, the whole cluster fails. Brokers on
several machines need a ZooKeeper.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from ixion.cli.command import Argument, Command, Option, UsageError, whole
from ixion.cli.options import AS_JSON
from ixion.cli.output import note, show_json, show_table

if TYPE_CHECKING:
    from ixion.cli.cluster.local import BrokerProcess, LocalCluster, State

DIRECTORY: Final = Option(
    "directory",
    "--data -d",
    "Where the cluster keeps its data and its logs (default: ixion-cluster).",
    metavar="DIR",
    default="ixion-cluster",
    complete="file",
)


def up(brokers: int | None, port: int | None, zookeeper: str | None, settings: list[str], directory: str) -> None:
    from ixion.cli.cluster.local import LocalCluster, plan, renew_ports

    cluster = LocalCluster(os.path.abspath(directory))
    cluster.make()
    with cluster.locked():
        state = cluster.load()
        if state is None:
            state = plan(cluster.home, brokers or 3, port or 9092, zookeeper, settings)
        else:
            adapt(state, brokers, port, zookeeper, settings)
            renew_ports(state)
        cluster.save(state)
        try:
            start_all(cluster, state)
        except KeyboardInterrupt:
            note("interrupted; started processes go on: ixion cluster status shows them, ixion cluster down stops them")
            raise
    print(f"{len(state.brokers)} brokers on {state.bootstrap}, data in {directory}")


def adapt(state: State, brokers: int | None, port: int | None, zookeeper: str | None, settings: list[str]) -> None:
    """Add brokers to a cluster that exists. Another port, ZooKeeper or set of settings is refused."""
    from ixion.cli.cluster.local import BrokerProcess, free_ports

    there = len(state.brokers)
    if port is not None and port != state.brokers[0].port:
        raise UsageError(f"the brokers of this cluster are on {state.bootstrap}; another port needs another --data")
    if zookeeper is not None and zookeeper != state.zookeeper:
        raise UsageError(f"this cluster is on {state.zookeeper}; another ZooKeeper needs another --data")
    if brokers is not None and brokers < there:
        raise UsageError(f"this cluster has {there} brokers already; to remove one, drain it and stop it")
    if settings and settings != state.settings:
        if state.brokers_run:
            raise UsageError("brokers run with other settings; ixion cluster down stops them first")
        state.settings = settings
    for number in range(there + 1, (brokers or there) + 1):
        (pages_port,) = free_ports(1, range(state.brokers[0].port, state.brokers[0].port + number))
        state.brokers.append(BrokerProcess(number, state.brokers[0].port + number - 1, pages_port))


def start_all(cluster: LocalCluster, state: State) -> None:
    """Start the processes that do not run; all brokers at the same time."""
    from ixion.cli.cluster.local import broker_words, make_tree, tree_words

    if state.own_tree and not state.tree.running:
        make_tree(cluster.directory)
        log_from = cluster.log_size("tree")
        cluster.start("tree", state.tree, tree_words(cluster.directory, state), state)
        cluster.await_ready("tree", state.tree, log_from)
    begun = []
    for broker in state.brokers:
        if not broker.process.running:
            begun.append((broker, cluster.log_size(broker.name)))
            cluster.start(broker.name, broker.process, broker_words(cluster.directory, state, broker), state)
    for broker, log_from in begun:
        cluster.await_ready(broker.name, broker.process, log_from)
        note(f"broker {broker.number} is ready on {broker.address}")


def status(as_json: bool, directory: str) -> None:
    from ixion.cli.cluster.local import LocalCluster

    state = LocalCluster(directory).existing()
    rows = [
        {"broker": each.number, "address": each.address, "pages": f"http://127.0.0.1:{each.pages_port}/"}
        | {"pid": each.process.pid if each.process.running else None, "state": state_of(each)}
        for each in state.brokers
    ]
    if as_json:
        show_json([{"zookeeper": state.zookeeper, "tree": tree_state(state), "brokers": rows}])
        return
    print(f"tree on {state.zookeeper}: {tree_state(state)}")
    columns = ("broker", "address", "pages", "pid", "state")
    show_table(columns, [list(row.values()) for row in rows], right=("broker", "pid"))


def tree_state(state: State) -> str:
    if not state.own_tree:
        return "a ZooKeeper"
    return "running" if state.tree.running else "stopped"


def state_of(broker: BrokerProcess) -> str:
    """The state of a broker, from its `/readyz`."""
    from http.client import HTTPConnection, HTTPException

    if not broker.process.running:
        return "stopped"
    try:
        connection = HTTPConnection("127.0.0.1", broker.pages_port, timeout=2)
        connection.request("GET", "/readyz")
        return connection.getresponse().read(1_000).decode(errors="replace").strip().partition("\n")[0]
    except (OSError, HTTPException):
        return "not ready"


def down(directory: str) -> None:
    from ixion.cli.cluster.local import LocalCluster

    cluster = LocalCluster(directory)
    cluster.existing()
    with cluster.locked():
        state = cluster.existing()
        running = [(broker.name, broker.process) for broker in state.brokers if broker.process.running]
        killed = cluster.stop(running)
        if state.own_tree:  # last: brokers need it to hand over their leaders
            killed += cluster.stop([("tree", state.tree)])
    for name in killed:
        note(f"{name} did not stop in time and was killed; its next start recovers its logs")
    print(f"stopped {len(running)} brokers; their data stays in {directory}")


def kill(broker: int, directory: str) -> None:
    from ixion.cli.cluster import process as local_process
    from ixion.cli.cluster.local import LocalCluster

    cluster = LocalCluster(directory)
    cluster.existing()
    with cluster.locked():
        state = cluster.existing()
        found = [each for each in state.brokers if each.number == broker]
        if not found:
            raise UsageError(f"there is no broker {broker}; there are 1 to {len(state.brokers)}")
        if not found[0].process.running:
            raise UsageError(f"broker {broker} does not run")
        local_process.kill(found[0].process)
    print(f"killed broker {broker}; ixion cluster up starts it again")


def tree(port: int, directory: str) -> None:
    from ixion.cli.cluster.tree import serve

    serve(port, directory)


UP: Final = Command(
    "up",
    "Start a cluster of brokers on this machine. Brokers that run already are left alone.",
    up,
    details="For laptops, tests and machines with many cores: each broker is a process, and one more serves the"
    " metadata tree. If this machine fails, all of it fails; brokers on several machines need a ZooKeeper.",
    options=(
        Option("brokers", "--brokers -n", "Number of brokers (default: 3).", metavar="N", kind=whole(1, 32)),
        Option(
            "port",
            "--port -p",
            "The port of broker 1; the others follow (default: 9092).",
            metavar="N",
            kind=whole(1, 65_504),
        ),
        Option("zookeeper", "--zookeeper", "Use this ZooKeeper instead of an own metadata tree.", metavar="HOST:PORT"),
        Option(
            "settings",
            "--set -s",
            "A setting of every broker; may be repeated.",
            metavar="NAME=VALUE",
            many=True,
            complete="setting",
        ),
        DIRECTORY,
    ),
    examples=("ixion cluster up", "ixion cluster up --brokers 5 --port 19092 --set num.partitions=6"),
)
STATUS: Final = Command(
    "status", "Show the processes of a cluster on this machine.", status, options=(AS_JSON, DIRECTORY)
)
DOWN: Final = Command("down", "Stop a cluster on this machine; its data stays.", down, options=(DIRECTORY,))
KILL: Final = Command(
    "kill",
    "End a broker of a cluster on this machine at once, as a crash would.",
    kill,
    arguments=(Argument("broker", "N", "Its number.", kind=whole(1)),),
    options=(DIRECTORY,),
)
TREE: Final = Command(
    "tree",
    "Serve a metadata tree to the brokers of this machine, by ZooKeeper's protocol.",
    tree,
    details="ixion cluster up starts one by itself. Other ZooKeeper clients can use it as well. It keeps no access"
    " lists, and takes connections from this machine only.",
    options=(
        Option(
            "port", "--port -p", "Its port (default: 2181; 0: any).", metavar="N", kind=whole(0, 65_535), default=2181
        ),
        Option(
            "directory",
            "--data -d",
            "Directory of the tree (default: ixion-tree).",
            metavar="DIR",
            default="ixion-tree",
            complete="file",
        ),
    ),
)
