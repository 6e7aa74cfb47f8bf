"""Hostile clients beside honest ones, on one broker and on three: `make soak-hostile`.

An honest client with a login produces to its topic, one record after the other, first alone and then beside a crowd of
hostile ones (`siege`). Judged are:

  - the waiting time of the honest client: p99 at most 3 times that of the quiet broker in the same run, and no record
    refused
  - memory of each broker: at most BUDGET_MB above that of the quiet broker
  - no session of a broker expires
  - no turn of an event loop over the limit of `devtools.stalls`
  - nothing is written where it may not be: every topic is read at the end

`--patient` is for a busy machine, on which a process may stand still for seconds and needs more processor time for the
same work. It judges no waiting times, leaves sessions Kafka's usual 18 s, and allows turns of twice the limit.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.queues import Queue
from pathlib import Path
from queue import Empty
from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclBinding, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType
from confluent_kafka.cimpl import NewTopic

from devtools.stalls import LIMIT_MS, stalls
from tests.hostile.fortress import EXPIRED, Fortress
from tests.hostile.inputs import produced
from tests.hostile.residue import PASSWORDS
from tests.hostile.siege import ATTACKS, FORBIDDEN, LATER_S, MALLORY, OWN, besiege, delayed, send
from tests.hostile.witness import memory_mb

HONEST: Final = "honest"
KINDS: Final = [attack.__name__ for attack in ATTACKS]
SLOWER: Final = 3  # times p99 of the quiet broker
# All tables of docs/limits.md that a client can fill (660 MiB) and the requests in memory (100 MiB, as set here).
BUDGET_MB: Final = 760
READY_S: Final = 120


@dataclass
class Verdict:
    faults: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)


def login(bootstrap: str, user: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": user,
        "sasl.password": PASSWORDS[user],
    }


def prepare(fortress: Fortress, brokers: int) -> None:
    bootstrap = fortress.bootstrap
    admin = AdminClient(login(bootstrap, "root"))
    topics = [NewTopic(name, 1, min(brokers, 3)) for name in FORBIDDEN]
    topics.append(NewTopic(OWN, 1, min(brokers, 3), config={"delivery.delay.mode": "record"}))
    for made in admin.create_topics(topics, operation_timeout=30).values():
        made.result(60)
    rights = [
        AclBinding(
            ResourceType.TOPIC,
            topic,
            ResourcePatternType.LITERAL,
            f"User:{user}",
            "*",
            operation,
            AclPermissionType.ALLOW,
        )
        for topic, user, operations in (
            (HONEST, "alice", (AclOperation.WRITE, AclOperation.READ)),
            (OWN, MALLORY, (AclOperation.WRITE, AclOperation.READ, AclOperation.ALTER_CONFIGS)),
        )
        for operation in operations
    ]
    for added in admin.create_acls(rights).values():
        added.result(60)
    until = time.monotonic() + READY_S
    for address in fortress.addresses:
        await_rights(address, until)
    await_delivery(fortress, until)


def await_rights(address: str, until: float) -> None:
    """A change of rights is answered by one broker, and reaches the others a moment later."""
    alice = AdminClient(login(address, "alice"))
    while alice.list_topics(HONEST, timeout=60).topics[HONEST].error is not None:
        assert time.monotonic() < until, f"{address} does not know the rights of alice"
        time.sleep(0.05)


def await_delivery(fortress: Fortress, until: float) -> None:
    """The delayed records that the crowd forges are delivered where their sender has the right to write.

    A partition refuses them until its delayed records are loaded, and its followers copy these.
    """
    while b"forged" not in values_of(fortress.bootstrap, OWN):
        assert time.monotonic() < until, f"{OWN} takes no delayed records of {MALLORY}"
        for address in fortress.addresses:
            with suppress(OSError, AssertionError):
                send(address, MALLORY, produced(delayed(50), OWN))
        time.sleep(0.1)


class Honest:
    """Produces one record after the other and measures how long each takes."""

    def __init__(self, bootstrap: str) -> None:
        self._producer = Producer({**login(bootstrap, "alice"), "acks": "all", "linger.ms": 0})
        self.written: list[bytes] = []
        self.refused: list[str] = []

    def run(self, seconds: float) -> list[float]:
        until = time.monotonic() + seconds
        waits = []
        while time.monotonic() < until:
            begun = time.perf_counter()
            self._producer.produce(HONEST, b"honest-%d" % len(self.written), on_delivery=self._delivered)
            self._producer.flush(60)
            waits.append((time.perf_counter() - begun) * 1e3)
            time.sleep(0.002)
        return sorted(waits)

    def _delivered(self, error: object, message: Message) -> None:
        if error is None:
            self.written.append(message.value() or b"")
        else:
            self.refused.append(str(error))


def p99(waits: list[float]) -> float:
    return waits[len(waits) * 99 // 100]


def values_of(bootstrap: str, topic: str) -> list[bytes]:
    consumer = Consumer({**login(bootstrap, "root"), "group.id": "judge", "enable.auto.commit": False})
    try:
        partition = TopicPartition(topic, 0, OFFSET_BEGINNING)
        _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=60)
        consumer.assign([partition])
        found: list[bytes] = []
        until = time.monotonic() + 120
        while time.monotonic() < until:
            at = consumer.position([TopicPartition(topic, 0)])[0].offset
            if end == 0 or at >= end:
                return found
            found += [message.value() or b"" for message in consumer.consume(5_000, 1) if message.error() is None]
        raise AssertionError(f"{topic} cannot be read to its end")
    finally:
        consumer.close()


def soak(directory: Path, brokers: int, seconds: float, clients: int, *, quiet_s: float, patient: bool) -> Verdict:
    verdict = Verdict()
    faults = verdict.faults
    with Fortress(directory, brokers, patient=patient) as fortress:
        prepare(fortress, brokers)
        honest = Honest(fortress.bootstrap)
        honest.run(min(1, quiet_s))  # connections, logins, first batches
        quiet = honest.run(quiet_s)
        before = [memory_mb(pid) for pid in fortress.pids]
        spawned = multiprocessing.get_context("spawn")
        told: Queue[dict[str, int]] = spawned.Queue()
        crowd = spawned.Process(target=besiege, args=(fortress.addresses, seconds, clients, 1, told), daemon=True)
        crowd.start()
        waits = honest.run(seconds)
        try:
            attacks = told.get(timeout=seconds + 2 * LATER_S)
        except Empty:
            attacks = {}
        crowd.kill()
        faults += [f"no attack of the kind {kind} was carried out" for kind in KINDS if not attacks.get(kind)]
        peaks = [memory_mb(pid, "VmHWM") for pid in fortress.pids]
        verdict.lines.append(
            f"{brokers} broker(s), {clients} hostile clients, {seconds:.0f} s: {len(honest.written)} honest records;"
            f" quiet p99 {p99(quiet):.1f} ms, then {p99(waits):.1f} ms, worst {waits[-1]:.1f} ms;"
            f" memory {before} MB, at most {peaks} MB; attacks {attacks}"
        )
        if not patient and p99(waits) > SLOWER * p99(quiet):
            faults.append(f"p99 of honest clients is {p99(waits):.1f} ms, {p99(quiet):.1f} ms on the quiet broker")
        faults += [f"an honest record was refused: {error}" for error in honest.refused[:5]]
        for had, peak in zip(before, peaks, strict=True):
            if peak - had > BUDGET_MB:
                faults.append(f"a broker grew from {had} to {peak} MB; {BUDGET_MB} MB are its budget")
        faults += contents(fortress.bootstrap, honest)
        logged = fortress.stop()
    faults += [f"a session expired: {line}" for line in logged.splitlines() if EXPIRED in line]
    found = stalls(logged, LIMIT_MS * 2 if patient else LIMIT_MS)
    faults += [f"a stall: {line}" for line in found[:10]]
    faults += [f"logged: {line}" for line in logged.splitlines() if line.startswith("Traceback")][:3]
    verdict.lines.append(f"stalls over the limit: {len(found)}; {len(logged) / 1e6:.1f} MB logged")
    return verdict


def contents(bootstrap: str, honest: Honest) -> list[str]:
    faults = []
    for topic in FORBIDDEN:
        found = values_of(bootstrap, topic)
        if topic == HONEST:
            lost, foreign = set(honest.written) - set(found), set(found) - set(honest.written)
            if lost or foreign:
                faults.append(
                    f"{topic} lacks {len(lost)} records and has {len(foreign)} of others: {sorted(foreign)[:3]}"
                )
        elif found:
            faults.append(f"{topic} has {len(found)} records that nobody might write: {found[:3]}")
    if b"forged" not in values_of(bootstrap, OWN):
        faults.append(
            f"{OWN} lacks the delayed records of {MALLORY}: the same records would have failed elsewhere, too"
        )
    return faults


def main() -> int:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--minutes", type=float, default=30, help="in all; half for one broker, half for three")
    words.add_argument("--brokers", type=int, choices=(1, 3), help="only one broker, or only three")
    words.add_argument("--clients", type=int, default=24, help="hostile ones")
    words.add_argument("--patient", action="store_true", help="judge less by time, on a busy machine")
    given = words.parse_args()
    kinds = (1, 3) if given.brokers is None else (given.brokers,)
    faults = 0
    for brokers in kinds:
        with tempfile.TemporaryDirectory() as folder:
            seconds = given.minutes * 60 / len(kinds)
            verdict = soak(
                Path(folder), brokers, seconds, given.clients, quiet_s=max(5, seconds / 20), patient=given.patient
            )
        print("\n".join([*verdict.lines, *(f"FAULT: {fault}" for fault in verdict.faults)]), flush=True)
        faults += len(verdict.faults)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
