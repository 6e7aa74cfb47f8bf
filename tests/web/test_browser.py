"""The live page in a real Chromium: what a person sees and does."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from devtools.axe import axe, barriers
from devtools.browser import Browser, Page
from devtools.parts import do_without, need
from devtools.programs import PartMissing
from ixion.testing import Broker
from tests.web.hostile import BYTES, TEXTS

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    need("chromium")
    with Browser.start() as started:
        yield started


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(metrics=True) as running:
        running.create_topic("orders", 3)
        running.create_topic("quiet", 1)
        yield running


def produce(broker: Broker, topic: str, *values: str | bytes) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 0})
    for value in values:
        producer.produce(topic, value, key=value, partition=0)
    assert producer.flush(30) == 0


def at(broker: Broker, path: str) -> str:
    return broker.metrics_url.removesuffix("/metrics") + path


def text_of(page: Page, selector: str) -> str:
    return str(page.look(f"document.querySelector({selector!r}).textContent"))


def test_the_wheel_turns_and_a_bucket_tells_what_waits_in_it(browser: Browser, broker: Broker) -> None:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "g", "client.id": "reader"})
    consumer.subscribe(["orders"])
    while not consumer.assignment():
        consumer.poll(0.1)
    page = browser.open(at(broker, "/wheel"))
    first = page.look("now.now_ms")
    page.wait_for(f"now.now_ms > {first} + 500 && now.size > 3")
    # A frame of the canvas is not empty, and the next one differs: the hands move.
    pixels = "canvas.toDataURL()"
    before = page.look(pixels)
    page.wait_for(f"{pixels} !== {before!r}")
    # The keyboard chooses a bucket; then that of the heartbeat, which is some seconds away on the fourth ring.
    page.look("canvas.focus()")
    page.press("ArrowRight")
    page.wait_for("document.querySelector('#bucket h2') !== null")
    found = page.wait_for(
        "(() => { const ring = now.levels.findIndex((level, at) => at > 2 && level.counts.some((count) => count));"
        " if (ring < 0) return false; const bucket = now.levels[ring].counts.findIndex((count) => count);"
        " const angle = angleOf(bucket), box = canvas.getBoundingClientRect();"
        " const x = Math.cos(angle) * middle(ring), y = Math.sin(angle) * middle(ring);"
        " return [box.left + centre + x, box.top + centre + y]; })()"
    )
    page.click(*found)
    page.wait_for("document.querySelectorAll('#bucket li b').length > 0")
    assert text_of(page, "#bucket h2 small").startswith("level ")
    assert page.complaints == []
    page.close()
    consumer.close()


def test_a_live_tail_shows_what_comes_pauses_and_goes_on(browser: Browser, broker: Broker) -> None:
    page = browser.open(at(broker, "/topics/quiet/records"))
    assert "no record here" in text_of(page, ".empty")
    page.look("document.getElementById('follow').click()")
    page.wait_for("document.getElementById('summary').textContent.startsWith('Following')")
    produce(broker, "quiet", "first")
    page.wait_for("document.querySelector('#records li .value')?.textContent === 'first'")
    page.look("document.getElementById('follow').click()")
    produce(broker, "quiet", "second")
    assert page.look("document.querySelectorAll('#records li').length") == 1
    page.look("document.getElementById('follow').click()")
    page.wait_for("document.querySelector('#records li .value').textContent === 'second'")
    assert page.look("document.querySelectorAll('#records li').length") == 2
    assert page.complaints == []
    page.close()


def test_a_view_stays_fresh_sorts_and_is_used_by_keys(browser: Browser, broker: Broker) -> None:
    page = browser.open(at(broker, "/topics"))
    broker.create_topic("appears", 7)
    page.wait_for("document.getElementById('topics').textContent.includes('appears')")
    page.look("[...document.querySelectorAll('th button')].find((each) => each.textContent === 'partitions').click()")
    assert text_of(page, "#topics tr td").startswith("appears")
    page.press("j", "Enter")
    page.wait_for("location.pathname === '/topics/appears' && document.readyState === 'complete'")
    page.press("g", "w")
    page.wait_for("location.pathname === '/wheel' && document.readyState === 'complete'")
    page.press("?")
    page.wait_for("document.getElementById('keys').open")
    assert page.complaints == []
    page.close()


VIEWS = (
    *("/", "/wheel", "/purgatories", "/topics", "/topics/orders", "/topics/orders/records", "/groups", "/groups/g"),
    *("/topics/orders/records?filter=value.a+%3E+1&partition=0", "/topics/quiet/0/0", "/nothing"),
    *("/transactions", "/producers", "/connections", "/schedules", "/brokers", "/pipelines", "/settings", "/access"),
)


@pytest.mark.parametrize("dark", [True, False], ids=["dark", "light"])
def test_no_view_complains_or_is_wider_than_a_phone(browser: Browser, broker: Broker, dark: bool) -> None:
    page = browser.open(size=(390, 844), dark=dark)
    for view in VIEWS:
        page.go(at(broker, view))
        assert page.look("document.documentElement.scrollWidth") <= 390, view
        assert page.look("document.querySelector('h1').textContent"), view
        # What a screen reader needs: every control has a name, every image a text.
        unnamed = (
            "[...document.querySelectorAll('a, button, input:not([type=hidden]), canvas, svg[role=img]')]"
            ".filter((each) => !(each.ariaLabel || each.textContent.trim() || each.getAttribute('aria-hidden'))).length"
        )
        assert page.look(unnamed) == 0, view
    missing = [each for each in page.complaints if "404" not in each]  # a group that is not there
    assert missing == []
    page.close()


@pytest.mark.parametrize("dark", [True, False], ids=["dark", "light"])
def test_axe_finds_nothing_serious_on_any_view(browser: Browser, broker: Broker, dark: bool) -> None:
    try:
        source = axe()
    except PartMissing as missing:
        do_without("axe-core", str(missing))
    produce(broker, "quiet", '{"a": 1}', "text", b"\xff")
    broker.create_topic(f"later-{dark}", 1, delivery_delay_mode="record")
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce(f"later-{dark}", b"x", headers=[("x-deliver-after-ms", "90000000")])
    assert producer.flush(30) == 0
    page = browser.open(size=(390, 844) if dark else (1280, 860), dark=dark)
    found = {}
    for view in VIEWS:
        page.go(at(broker, view))
        found[view] = barriers(page, source)
    assert {view: each for view, each in found.items() if each} == {}
    page.look("document.querySelector('main').append(document.createElement('img')); true")
    assert "image-alt" in barriers(page, source)[0]
    page.close()


def test_a_table_is_filtered_by_keys_alone_and_stays_so(browser: Browser, broker: Broker) -> None:
    broker.create_topic("wide", 12)
    page = browser.open(at(broker, "/topics/wide"))
    seen = "[...document.querySelectorAll('#partitions tr')].filter((row) => !row.hidden).length"
    assert page.look(seen) == 12
    page.press("/", "1", "1")
    page.wait_for(f"{seen} === 1")
    before = page.look("document.getElementById('partitions').rows[11]._mine = 1")
    assert before == 1
    produce(broker, "wide", "x")
    page.wait_for("document.getElementById('partitions').rows[0].textContent.includes('1')")
    page.wait_for(f"document.getElementById('partitions').rows[11]._mine === undefined && {seen} === 1")
    assert page.complaints == []
    page.close()


def test_a_search_and_one_record_by_the_keyboard(browser: Browser, broker: Broker) -> None:
    broker.create_topic("sought", 1)
    produce(broker, "sought", *(f'{{"n": {number}}}' for number in range(20)))
    page = browser.open(at(broker, "/topics/sought/records"))
    page.press("/", *"value.n>=18", "Enter")
    page.wait_for("location.search.includes('filter=') && document.readyState === 'complete'")
    assert text_of(page, "#summary") == "2 records of 20 records searched."
    assert text_of(page, "[data-copy]").startswith("ixion consume sought -e --filter 'value.n>=18'")
    page.press("j", "Enter")
    page.wait_for("location.pathname === '/topics/sought/0/19' && document.readyState === 'complete'")
    assert text_of(page, ".whole code") == '{\n  "n": 19\n}' or "19" in text_of(page, "main")
    assert page.complaints == []
    page.close()


def test_nothing_in_a_name_or_a_record_runs(browser: Browser, broker: Broker) -> None:
    broker.create_topic("hostile", 1)
    produce(broker, "hostile", *TEXTS, *BYTES)
    for text in TEXTS:
        consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": text, "client.id": text[:200]})
        consumer.commit(offsets=[TopicPartition("orders", 0, 0)], asynchronous=False)
        consumer.close()
    page = browser.open(at(broker, "/topics/hostile/records?limit=100"))
    page.look("document.getElementById('follow').click()")
    page.wait_for("document.getElementById('summary').textContent.startsWith('Following')")
    produce(broker, "hostile", *TEXTS, *BYTES)
    page.wait_for(f"document.querySelectorAll('#records li').length >= {2 * len(TEXTS)}")
    # Links are not followed: so many navigations at a time would be refused. None of them is a script.
    page.look(
        "document.querySelectorAll('#records *').forEach((each) =>"
        " { each.focus?.(); if (!each.closest('a')) each.click?.(); })"
    )
    assert page.look("[...document.querySelectorAll('a[href]')].every((each) => each.origin === location.origin)")
    assert page.look("window.harmed === undefined")
    for path in ("/groups", "/connections", "/topics/orders", *(f"/groups/{quote(text, safe='')}" for text in TEXTS)):
        page.go(at(broker, path))
        assert page.look("window.harmed === undefined"), path
    assert page.complaints == []
    page.close()
