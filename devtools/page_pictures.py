"""Takes the pictures of docs/page.md: a broker with some traffic, and a Chromium that looks at its live page.

    python -m devtools.page_pictures

Look at them before you commit them.
"""

from __future__ import annotations

import json
import random
import threading
import time
from pathlib import Path
from typing import Final, NamedTuple

from confluent_kafka import Consumer, Producer

from devtools.browser import Browser, Page
from ixion.testing import Broker

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
    Picture("records", "/topics/orders/records?limit=20", (1280, 620)),
    Picture("group", "/groups/billing", (1280, 560), dark=False),
    Picture("wheel", "/wheel"),
)


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
        producer = Producer({"bootstrap.servers": self._bootstrap, "client.id": "checkout", "linger.ms": 10})
        number = 100_000
        while not self._over.wait(random.uniform(0.05, 0.2)):
            for _ in range(random.randint(5, 40)):
                number += 1
                order = {"order": number, "total": round(random.expovariate(1 / 40), 2), "currency": "EUR"}
                trace = f"{random.getrandbits(64):016x}"
                producer.produce("orders", json.dumps(order), f"c-{number % 997}", headers=[("trace", trace)])
                producer.produce("clicks", f"/product/{random.randint(1, 500)}", f"s{number % 313}")
            after_ms = str(int(random.expovariate(1 / random.choice((20_000, 600_000, 20_000_000)))))
            producer.produce("jobs", b"remind the customer", headers=[("x-deliver-after-ms", after_ms)])
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


def take(page: Page, picture: Picture) -> None:
    if picture.path == "/wheel":
        # A bucket with tasks some seconds away, and a moment at which something falls.
        page.wait_for("recent.length > 8")
        page.look(
            "(() => { const full = (count) => count > 2;"
            " const ring = now.levels.findIndex((level, at) => at > 2 && level.counts.some(full));"
            " if (ring > 0) choose({ ring, bucket: now.levels[ring].counts.findIndex(full) }); })()"
        )
        page.wait_for("document.querySelector('#bucket li b') && sparks.length > 24")
    page.screenshot(FOLDER / f"{picture.name}.png")


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    with Broker({"listeners": "PLAINTEXT://127.0.0.1:9092"}, metrics=True) as broker, Browser.start() as browser:
        for name, partitions in (("orders", 12), ("clicks", 12), ("payments", 3)):
            broker.create_topic(name, partitions)
        broker.create_topic("jobs", 2, delivery_delay_mode="record")
        traffic = late = Traffic(broker.bootstrap)
        try:
            time.sleep(WARM_UP_S / 2)
            broker.create_topic("refunds", 3)
            late = Traffic(broker.bootstrap, consumers=3)
            time.sleep(WARM_UP_S / 2)
            for picture in PICTURES:
                page = browser.open(
                    broker.metrics_url.removesuffix("/metrics") + picture.path, size=picture.size, dark=picture.dark
                )
                take(page, picture)
                print(FOLDER / f"{picture.name}.png", *page.complaints)
                page.close()
        finally:
            late.end()
            traffic.end()


if __name__ == "__main__":
    main()
