"""Three brokers in network namespaces on a ZooKeeper ensemble of three, under the clients of the soak.

Beside those of `run.py`, the disturbances are (the numbers are those of docs/reliability.md):

F1  a broker is killed and comes back later         F2  all brokers are killed at once
F3  a broker loses power, and what was not synced    F4  a broker sleeps longer than its session
F5  a broker is cut off from the others, not from    F6  a broker is cut off from ZooKeeper alone
    ZooKeeper                                        F7  packets from one broker to another vanish, one way only
F8  two brokers are killed one after the other       F9  the last one in sync loses power while the others are away
F10 the controller is killed; a ZooKeeper server is killed or sleeps; all of them sleep
F11 a broker is back before anybody noticed          F17 delayed records are on their way all the time
F19 a broker is killed while replicas move; segments roll and the offsets of groups are compacted all the time
F21 a broker is stopped and started as in a rolling restart

Clients reach every broker through a proxy that knows Kafka's frames (`proxy.py`): for a while it cuts them in two,
drops answers, delays them, or holds requests back so that later ones overtake them.

At the end everything is healed. The cluster must be in sync again within `HEALTHY_S`, the history must hold, and the
replicas of every partition must be equal, byte by byte.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from devtools.history.checker import Anomaly
from devtools.kafka import answers
from devtools.soak import late
from devtools.soak.equal import unequal
from devtools.soak.network import Network, available
from devtools.soak.power import lose_unsynced
from devtools.soak.proxy import Faults, Proxies
from devtools.soak.run import CLIENTS, PARTITIONS, SETTINGS, TOPIC, Soak
from devtools.zookeeper import RealZooKeeper
from ixion.clients import Admin, TopicPartition
from ixion.language.model.errors import KafkaError

BROKERS = (1, 2, 3)
PORT = 9092  # between brokers
CLIENT_PORT = 9093  # behind the proxy
LATE = "late"
SESSION_MS = 4_000
START_MS = 180_000  # of a broker; a loaded machine is no reason to end a run
AWAY_S = (0.0, 9.0)  # how long a killed broker stays away: shorter and longer than its session
SLEEPS_S = (5.0, 9.0)  # longer than the session
CUT_S = (2.0, 14.0)  # shorter and longer than replica.lag.time.max.ms
HEALTHY_S = 60.0
CLUSTER_SETTINGS = {
    **SETTINGS,
    "zookeeper.session.timeout.ms": SESSION_MS,
    "zookeeper.connection.timeout.ms": START_MS,
    "replica.lag.time.max.ms": 6_000,
    "default.replication.factor": 3,
    "min.insync.replicas": 2,
    "offsets.topic.replication.factor": 3,
    "offsets.topic.num.partitions": 4,
    "transaction.state.log.replication.factor": 3,
    "transaction.state.log.min.isr": 2,
    "transaction.state.log.num.partitions": 4,
    "controlled.shutdown.retry.backoff.ms": 500,
    "leader.imbalance.check.interval.seconds": 5,
    "log.segment.bytes": 200_000,  # rolls are among what is interrupted
    "offsets.topic.segment.bytes": 100_000,  # and so is compaction
    "log.cleaner.backoff.ms": 1_000,
    "log.cleaner.min.cleanable.ratio": 0.1,
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CLIENT:PLAINTEXT",
    "inter.broker.listener.name": "PLAINTEXT",
}
SPOILED_S = (2.0, 8.0)
SPOILED = (Faults(cut=0.02), Faults(drop=0.03), Faults(delay=0.03), Faults(hold=0.03))


def name_of(broker: int) -> str:
    return f"broker-{broker}"


class ClusterSoak(Soak):
    replicas = 3

    def _serve(self) -> str:
        self._network = Network([name_of(broker) for broker in BROKERS])
        self._network.__enter__()
        self._zookeeper = RealZooKeeper(self._directory / "zookeeper", servers=3, host=self._network.store)
        self._brokers: dict[int, subprocess.Popen[bytes]] = {}
        self._proxies = Proxies()
        self._proxies.__enter__()
        here = self._network.here
        self._shown = {
            broker: f"{here}:{self._proxies.add(self._address(broker), CLIENT_PORT, here)}" for broker in BROKERS
        }
        try:
            self._zookeeper.__enter__()
            for broker in BROKERS:
                self._launch(broker)
            for broker in BROKERS:
                self._await(broker)
            bootstrap = ",".join(self._shown.values())
            self._await_controller(bootstrap)
        except BaseException:
            self._stop_serving()
            raise
        return bootstrap

    def _stop_serving(self) -> None:
        try:
            for process in self._brokers.values():
                process.kill()
                process.wait()
            self._zookeeper.stop()
        finally:
            self._proxies.close()
            self._network.remove()

    def _disturbances(self) -> dict[Callable[[], None], int]:
        return {
            self._kill_broker: 3,
            self._bounce_broker: 2,
            self._kill_two: 2,
            self._kill_all: 1,
            self._kill_controller: 2,
            self._roll_broker: 2,
            self._broker_sleeps: 2,
            self._sleeps_long: 2,
            self._cut_from_brokers: 2,
            self._cut_from_zookeeper: 2,
            self._cut_one_way: 2,
            self._zookeeper_server_dies: 1,
            self._zookeeper_sleeps: 1,
            self._kill_client: 3,
            self._client_sleeps: 2,
            self._power_fails: 2,
            self._last_one_loses_power: 1,
            self._killed_while_moving: 2,
            self._frames_spoiled: 5,
        }

    def _start_more(self, admin: AdminClient) -> None:
        topic = NewTopic(LATE, 1, 3, config={"delivery.delay.mode": "record"})
        admin.create_topics([topic])[LATE].result(30)
        (self._directory / LATE).mkdir()
        words = (self.bootstrap, str(self._directory / LATE), LATE)
        self._clients["writer-late"] = self._spawn([sys.executable, "-m", "devtools.soak.late", *words])

    def judge(self) -> list[Anomaly]:
        print(f"spoiled frames: {dict(self._proxies.done)}")
        again, doubled = late.doubles(self._directory / name_of(BROKERS[0]) / f"{LATE}-0")
        print(f"delayed records that librdkafka sent under two producer epochs: {again}")
        return [
            *self._unhealthy,
            *self._late,
            *doubled,
            *super().judge(),
            *unequal([self._directory / name_of(broker) for broker in BROKERS]),
        ]

    def _settle(self) -> None:
        self._unhealthy: list[Anomaly] = []
        for number in range(PARTITIONS):
            self._move(TopicPartition(TOPIC, number), list(BROKERS))
        begun = time.monotonic()
        while not self._in_sync():
            if time.monotonic() - begun > HEALTHY_S:
                self._unhealthy.append(
                    Anomaly("unhealthy", f"replicas are not in sync {HEALTHY_S:.0f} s after the last")
                )
                break
            time.sleep(0.2)
        print(f"in sync {time.monotonic() - begun:.1f} s after the last disturbance")
        super()._settle()  # longer than any record is delayed
        acknowledged, self._late = late.judged(self.bootstrap, self._directory / LATE, LATE)
        print(f"delayed records acknowledged: {acknowledged}")
        self._stop_all()

    # Disturbances.

    def _kill_broker(self) -> None:
        self._kill_and_return([self._random.choice(BROKERS)])

    def _bounce_broker(self) -> None:
        broker = self._random.choice(BROKERS)
        self._kill(broker)
        self._launch(broker)
        self._await(broker)

    def _kill_two(self) -> None:
        first, second = self._random.sample(BROKERS, 2)
        self._kill(first)
        time.sleep(self._random.uniform(*AWAY_S))
        self._kill(second)
        time.sleep(self._random.uniform(*AWAY_S))
        self._return([second, first])

    def _kill_all(self) -> None:
        self._kill_and_return(list(BROKERS))

    def _kill_controller(self) -> None:
        controller = (
            AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0}).list_topics(timeout=30).controller_id
        )
        self._kill_and_return([controller if controller in BROKERS else 1])

    def _roll_broker(self) -> None:
        broker = self._random.choice(BROKERS)
        self._brokers[broker].terminate()
        self._brokers[broker].wait(60)
        self._return([broker])

    def _broker_sleeps(self) -> None:
        self._sleep(self._random.choice(BROKERS), self._random.uniform(1.2, 2.5))

    def _sleeps_long(self) -> None:
        self._sleep(self._random.choice(BROKERS), self._random.uniform(*SLEEPS_S))

    def _cut_from_brokers(self) -> None:
        broker = self._random.choice(BROKERS)
        self._cut([(broker, other) for other in BROKERS if other != broker], both_ways=True)

    def _cut_one_way(self) -> None:
        first, second = self._random.sample(BROKERS, 2)
        self._cut([(first, second)], both_ways=False)

    def _cut_from_zookeeper(self) -> None:
        self._network.cut(name_of(self._random.choice(BROKERS)), self._network.store)
        self._heal_later()

    def _zookeeper_server_dies(self) -> None:
        server = self._random.randrange(3)
        self._zookeeper.kill(server)
        time.sleep(self._random.uniform(*AWAY_S))
        self._zookeeper.launch(server)

    def _zookeeper_sleeps(self) -> None:
        """All servers at once: no session expires, but nothing can be changed either."""
        for server in range(3):
            self._zookeeper.pause(server)
        time.sleep(self._random.uniform(*SLEEPS_S))
        for server in range(3):
            self._zookeeper.resume(server)

    def _power_fails(self) -> None:
        """Of one broker, while the others have everything that was acknowledged."""
        if self._await_in_sync():
            broker = self._random.choice(BROKERS)
            self._kill(broker)
            self._lose_unsynced(broker)
            time.sleep(self._random.uniform(*AWAY_S))
            self._return([broker])

    def _last_one_loses_power(self) -> None:
        """It comes back last: the others are asked how much they have only if they are there."""
        if self._await_in_sync():
            *others, last = self._random.sample(BROKERS, 3)
            for broker in others:
                self._kill(broker)
                time.sleep(SESSION_MS / 1_000 + 2)
            self._kill(last)
            self._lose_unsynced(last)
            self._return(others)
            self._return([last])

    def _killed_while_moving(self) -> None:
        """A replica is given up and copied anew; meanwhile a broker is killed."""
        place = TopicPartition(TOPIC, self._random.randrange(PARTITIONS))
        brokers = self._random.sample(BROKERS, 3)
        self._move(place, brokers[:2])
        time.sleep(self._random.uniform(0, 1))
        self._move(place, brokers)
        time.sleep(self._random.uniform(0, 0.5))
        self._kill_and_return([self._random.choice(BROKERS)])

    def _frames_spoiled(self) -> None:
        with self._proxies.spoiled(self._random.choice(SPOILED), self._random):
            time.sleep(self._random.uniform(*SPOILED_S))

    # Inside.

    def _lose_unsynced(self, broker: int) -> None:
        lost = lose_unsynced(self._directory / name_of(broker), self._random)
        with (self._directory / f"{name_of(broker)}.log").open("a") as log:
            log.write(f"soak: the power failed, and {lost} bytes are lost\n")

    def _move(self, place: TopicPartition, brokers: list[int]) -> None:
        """A refusal is as good: the controller may be away, or a broker. In the end all must be on three again."""
        with suppress(KafkaError, TimeoutError), Admin(self.bootstrap) as admin:
            admin.alter_partition_reassignments({place: brokers})

    def _await_in_sync(self) -> bool:
        deadline = time.monotonic() + HEALTHY_S
        while not self._in_sync():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.2)
        return True

    def _address(self, broker: int) -> str:
        return self._network.address(name_of(broker))

    def _launch(self, broker: int) -> None:
        address = self._address(broker)
        settings = {
            "broker.id": broker,
            "listeners": f"PLAINTEXT://{address}:{PORT},CLIENT://{address}:{CLIENT_PORT}",
            "advertised.listeners": f"PLAINTEXT://{address}:{PORT},CLIENT://{self._shown[broker]}",
            "log.dirs": self._directory / name_of(broker),
            "zookeeper.connect": f"{self._zookeeper.connect}/soak",
            **CLUSTER_SETTINGS,
        }
        words = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
        serve = [
            sys.executable,
            "-m",
            "ixion",
            "serve",
            "--allow-remote",
            "--metrics-port",
            "off",
            "--log-level",
            "info",
        ]
        log = (self._directory / f"{name_of(broker)}.log").open("ab")
        inside = self._network.inside(name_of(broker))
        self._brokers[broker] = subprocess.Popen([*inside, *serve, *words], stdout=log, stderr=log)

    def _await(self, broker: int) -> None:
        deadline = time.monotonic() + START_MS / 1_000
        while not answers(self._address(broker), PORT):
            if self._brokers[broker].poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"broker {broker} did not start; see {name_of(broker)}.log")
            time.sleep(0.02)

    def _await_controller(self, bootstrap: str) -> None:
        """librdkafka waits for minutes if the first broker that it asks has not heard of the controller yet."""
        deadline = time.monotonic() + 60
        for broker in bootstrap.split(","):
            while True:
                found = AdminClient({"bootstrap.servers": broker, "log_level": 0}).list_topics(timeout=60)
                if len(found.brokers) == len(BROKERS) and found.controller_id in BROKERS:
                    break
                if time.monotonic() > deadline:
                    raise RuntimeError(f"{broker} does not know the cluster")
                time.sleep(0.1)

    def _kill(self, broker: int) -> None:
        self._brokers[broker].kill()
        self._brokers[broker].wait()

    def _kill_and_return(self, brokers: list[int]) -> None:
        for broker in brokers:
            self._kill(broker)
        time.sleep(self._random.uniform(*AWAY_S))
        self._return(brokers)

    def _return(self, brokers: list[int]) -> None:
        for broker in brokers:
            self._launch(broker)
        for broker in brokers:
            self._await(broker)

    def _sleep(self, broker: int, seconds: float) -> None:
        self._brokers[broker].send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        self._brokers[broker].send_signal(signal.SIGCONT)

    def _cut(self, paths: list[tuple[int, int]], both_ways: bool) -> None:
        for first, second in paths:
            self._network.cut(name_of(first), self._address(second))
            if both_ways:
                self._network.cut(name_of(second), self._address(first))
        self._heal_later()

    def _heal_later(self) -> None:
        time.sleep(self._random.uniform(*CUT_S))
        self._network.heal()

    def _in_sync(self) -> bool:
        try:
            found = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0}).list_topics(timeout=10)
        except Exception:
            return False
        parts = [part for topic in found.topics.values() for part in topic.partitions.values()]
        return (
            len(found.brokers) == 3 and bool(parts) and all(len(part.isrs) == len(part.replicas) == 3 for part in parts)
        )

    def _stop_all(self) -> None:
        for process in self._brokers.values():
            process.terminate()
        for process in self._brokers.values():
            process.wait(90)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m devtools.soak.cluster", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--seconds", type=float, default=300, help="of disturbances, in each run")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--runs", type=int, default=1, help="so many, with seeds that count up")
    parser.add_argument("--clients", choices=CLIENTS, default="mixed", help="whose clients write, copy and read")
    parser.add_argument("--keep", metavar="DIR", help="leave data, logs and histories of each run below this")
    options = parser.parse_args()
    if not available():
        sys.exit(
            "network namespaces cannot be made here: it needs root and the command ip;"
            " python -m devtools.soak.small needs neither"
        )
    failed = []
    for seed in range(options.seed, options.seed + options.runs):
        print(f"seed {seed}", flush=True)
        with tempfile.TemporaryDirectory(prefix="ixion-soak-") as temporary:
            directory = Path(options.keep or temporary) / f"seed-{seed}"
            anomalies = ClusterSoak(directory, options.seconds, seed, clients=options.clients).run()
        for anomaly in anomalies[:50]:
            print(f"{anomaly.kind}: {anomaly.detail}")
        print(f"{len(anomalies)} anomalies" if anomalies else "no anomalies", flush=True)
        if anomalies:
            failed.append(seed)
    if failed:
        again = f"python -m devtools.soak.cluster --seconds {options.seconds:g} --seed"
        sys.exit("\n".join(f"again: {again} {seed}" for seed in failed))


if __name__ == "__main__":
    main()
