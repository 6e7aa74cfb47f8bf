"""Takes the pictures of docs/page.md: a broker with some traffic, and a Chromium that looks at its live page.

    python -m devtools.page_pictures                 # all of them
    python -m devtools.page_pictures wheel access    # some

Look at them before you commit them.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, NamedTuple

from confluent_kafka import Consumer, Producer, TopicPartition

from devtools.browser import Browser, Page
from ixion.clients import Admin, ShareConsumer
from ixion.clients.admin.users import ScramUpsertion
from ixion.language.model.acl_binding import Binding, Entry, ResourcePattern
from ixion.language.model.acl_names import Operation, PatternKind, Permission, ResourceKind
from ixion.pipelines.batch.metrics import BatchFigures
from ixion.pipelines.checkpoint.checkpoint import Checkpoint, LocalFiles
from ixion.pipelines.checkpoint.run_records import RunLog
from ixion.testing import Broker, Cluster

FOLDER: Final = Path(__file__).resolve().parent.parent / "docs" / "page"
WARM_UP_S: Final = 60  # of traffic: some of the curves
CONSUMERS: Final = 36


class Picture(NamedTuple):
    name: str
    path: str
    size: tuple[int, int] = (1280, 800)
    dark: bool = True


PICTURES: Final = (
    Picture("overview", "/", (1280, 860)),
    Picture("purgatories", "/purgatories"),
    Picture("topics", "/topics", (1280, 420)),
    Picture("topic", "/topics/orders", (1280, 720), dark=False),
    Picture("records", "/topics/orders/records?limit=20&filter=value.total+%3E+50", (1280, 620)),
    Picture("record", "/topics/orders/3/10", (1280, 540)),
    Picture("groups", "/groups", (1280, 420)),
    Picture("group", "/groups/billing", (1280, 560), dark=False),
    Picture("queue", "/groups/packers", (1280, 560)),
    Picture("transactions", "/transactions", (1280, 320)),
    Picture("producers", "/producers", (1280, 420)),
    Picture("connections", "/connections", (1280, 560)),
    Picture("schedules", "/schedules", (1280, 860)),
    Picture("waiting", "/schedules/jobs/0", (1280, 520)),
    Picture("pipelines", "/pipelines", (1280, 620), dark=False),
    Picture("settings", "/settings?q=log.retention", (1280, 420)),
    Picture("send", "/topics/orders/produce", (1280, 760), dark=False),
    Picture("reset", "/groups/audit/reset", (1280, 520)),
    Picture("wheel", "/wheel"),
    Picture("phone", "/wheel", (390, 844)),
)
PLAIN: Final = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SECURED: Final = {
    "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{PLAIN} user_ops="o-secret";',
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:ops;User:ANONYMOUS",
}


class Traffic:
    def __init__(self, bootstrap: str, consumers: int = CONSUMERS) -> None:
        self._bootstrap = bootstrap
        self._over = threading.Event()
        work = [self._produce, *(lambda number=number: self._consume(number) for number in range(consumers))]
        self._threads = [threading.Thread(target=each) for each in work]
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _produce(self) -> None:
        settings = {"bootstrap.servers": self._bootstrap, "client.id": "checkout", "linger.ms": 10}
        producer = Producer({**settings, "enable.idempotence": True})
        number = 100_000
        while not self._over.wait(random.uniform(0.05, 0.2)):
            for _ in range(random.randint(5, 40)):
                number += 1
                order = {"order": number, "total": round(random.expovariate(1 / 40), 2), "currency": "EUR"}
                trace = f"{random.getrandbits(64):016x}"
                producer.produce("orders", json.dumps(order), f"c-{number % 997}", headers=[("trace", trace)])
                producer.produce("clicks", f"/product/{random.randint(1, 500)}", f"s{number % 313}")
            after_ms = str(int(random.expovariate(1 / random.choice((20_000, 600_000, 20_000_000)))))
            later: list[tuple[str, str | bytes | None]] = [("x-deliver-after-ms", after_ms)]
            producer.produce("jobs", b"remind the customer", f"c-{number % 997}", headers=later)
            producer.poll(0)
        producer.flush(10)

    def _consume(self, number: int) -> None:
        group, topic = (("billing", "orders"), ("analytics", "clicks"), ("warehouse", "orders"))[number % 3]
        settings = {"bootstrap.servers": self._bootstrap, "group.id": group, "client.id": f"{group}-{number // 3}"}
        waits = {"fetch.min.bytes": 65_536, "fetch.wait.max.ms": 5_000} if group == "analytics" else {}
        consumer = Consumer({**settings, **waits, "auto.offset.reset": "earliest"})
        consumer.subscribe([topic])
        while not self._over.is_set():
            consumer.poll(0.2)
        consumer.close()


def others(bootstrap: str, folder: Path) -> Iterator[None]:
    """A queue, an open transaction, a group without members, the checkpoint of a pipeline."""
    with (
        ShareConsumer(bootstrap, group="packers", topics=["payments"], client_id="packer", max_poll_records=5) as taker,
        Consumer({"bootstrap.servers": bootstrap, "group.id": "audit"}) as audit,
    ):
        taker.poll(1)
        payments = Producer({"bootstrap.servers": bootstrap, "transactional.id": "ledger-1"})
        payments.init_transactions(30)
        payments.begin_transaction()
        for number in range(40):
            payments.produce("payments", json.dumps({"payment": number, "amount": number * 3}), f"p{number}")
        payments.commit_transaction(30)
        taker.poll(10)
        payments.begin_transaction()
        for number in range(60):
            payments.produce("payments", json.dumps({"payment": number, "amount": number * 7}), f"p{number}")
        payments.commit_transaction(30)
        taker.poll(10)  # and holds what it got
        payments.begin_transaction()
        payments.produce("payments", b"not yet")
        payments.flush(10)
        audit.commit(offsets=[TopicPartition("orders", each, 40) for each in range(12)], asynchronous=False)
        pipeline(folder)
        yield
        payments.abort_transaction(30)


def pipeline(folder: Path) -> None:
    made = Checkpoint(str(folder), LocalFiles())
    (folder / "ixion").mkdir(parents=True)
    (folder / "ixion" / "owner.json").write_text(json.dumps({"pipeline": "orders to delta", "topics": ["orders"]}))
    with RunLog("6b1f07c2-orders", [made.remember_run], str) as log:
        for number in range(9):
            bad = random.choice((0, 0, 3, 11))
            batch = BatchFigures(
                batch=number,
                ended=(datetime.now(UTC) - timedelta(minutes=9 - number)).isoformat(),
                rows_in=1200 + number * 37,
                rows_out=1200 + number * 37 - bad,
                quarantined=bad,
                broken={"amount is positive": bad},
                lag=random.randint(0, 90),
                duration_ms=random.randint(2_000, 5_000),
                rows_per_s=310.0 + number,
            )
            made.remember(batch)
            log.add(batch)


def sign_in(browser: Browser, broker: Broker) -> None:
    """The form, and what an operator sees behind it: rules and users."""
    with Admin(broker.bootstrap) as admin:
        admin.create_acls(
            [
                Binding(
                    ResourcePattern(ResourceKind.TOPIC, name, kind),
                    Entry(f"User:{user}", "*", operation, Permission.ALLOW),
                )
                for name, kind, user, operation in (
                    ("orders", PatternKind.LITERAL, "checkout", Operation.WRITE),
                    ("orders", PatternKind.LITERAL, "billing", Operation.READ),
                    ("clicks.", PatternKind.PREFIXED, "analytics", Operation.READ),
                )
            ]
        ).check()
        users = [
            ScramUpsertion(name, "a secret of it", "SCRAM-SHA-256") for name in ("analytics", "billing", "checkout")
        ]
        admin.alter_user_scram_credentials(users).check()
    page = browser.open(address(broker, "/access"), size=(1280, 620))
    page.wait_for("document.activeElement.name === 'user'")
    page.press(*"ops")
    page.screenshot(FOLDER / "sign-in.png")
    page.look("document.querySelector('input[name=password]').focus()")
    page.press(*"o-secret", "Enter")
    page.wait_for("document.querySelector('[data-sign-out]') !== null")
    page.screenshot(FOLDER / "access.png")
    page.close()


def brokers(browser: Browser) -> None:
    with Cluster(3, metrics=True) as cluster:
        cluster.create_topic("orders", 12, replication=3)
        page = browser.open(address(cluster.brokers[1], "/brokers"), size=(1280, 420))
        page.wait_for("document.querySelectorAll('tbody tr').length >= 3")
        page.screenshot(FOLDER / "brokers.png")
        page.close()


def address(broker: Broker, path: str) -> str:
    return broker.metrics_url.removesuffix("/metrics") + path


def take(page: Page, picture: Picture) -> None:
    if picture.path == "/wheel":
        page.wait_for("recent.length > 8")
    if picture.name == "reset":
        page.look("document.querySelector('form[data-act]').requestSubmit()")
        page.wait_for("document.querySelectorAll('#changes tr').length > 3")
    if picture.name == "wheel":
        # A bucket with tasks some seconds away, and a moment at which something falls.
        page.look(
            "(() => { const full = (count) => count > 2;"
            " const ring = now.levels.findIndex((level, at) => at > 2 && level.counts.some(full));"
            " if (ring > 0) choose({ ring, bucket: now.levels[ring].counts.findIndex(full) }); })()"
        )
        page.wait_for("document.querySelector('#bucket li b') && sparks.length > 24")
    page.screenshot(FOLDER / f"{picture.name}.png")


def main() -> None:
    chosen = set(sys.argv[1:])
    FOLDER.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="ixion-pictures-")) / "orders-to-delta"
    settings = {"listeners": "PLAINTEXT://127.0.0.1:9092", "web.pipelines": folder}
    with Broker(settings, metrics=True) as broker, Browser.start() as browser:
        if not chosen or chosen & {"sign-in", "access"}:
            with Broker(SECURED, metrics=True) as secured:
                sign_in(browser, secured)
        if not chosen or "brokers" in chosen:
            brokers(browser)
        for name, partitions in (("orders", 12), ("clicks", 12), ("payments", 3)):
            broker.create_topic(name, partitions)
        broker.create_topic("jobs", 2, delivery_delay_mode="record")
        traffic = late = Traffic(broker.bootstrap)
        try:
            time.sleep(WARM_UP_S / 2)
            broker.create_topic("refunds", 3)
            late = Traffic(broker.bootstrap, consumers=3)
            time.sleep(WARM_UP_S / 2)
            with contextmanager(others)(broker.bootstrap, folder):
                for picture in (each for each in PICTURES if not chosen or each.name in chosen):
                    page = browser.open(address(broker, picture.path), size=picture.size, dark=picture.dark)
                    take(page, picture)
                    print(FOLDER / f"{picture.name}.png", *page.complaints)
                    page.close()
        finally:
            late.end()
            traffic.end()


if __name__ == "__main__":
    main()
