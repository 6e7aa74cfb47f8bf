"""The live page in a real Chromium: it asks before it changes anything, and says what it did."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from devtools.browser import Browser, Page
from devtools.parts import need
from ixion.testing import Broker
from tests.web.posts import get, post

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
        running.create_topic("jobs", 1, delivery_delay_mode="record")
        yield running


def at(broker: Broker, path: str) -> str:
    return broker.metrics_url.removesuffix("/metrics") + path


def said(page: Page, text: str, output: str = "output") -> None:
    shown = f"[...document.querySelectorAll({output!r})].map((each) => each.textContent).join(' ')"
    page.wait_for(f"({shown}).includes({text!r})")


def answer(page: Page, button: str) -> str:
    """Answer the question; returns what was asked."""
    page.wait_for("question.open")
    asked = str(page.look("document.getElementById('question-text').textContent"))
    page.look(f"question.querySelector('button[value={button}]').click()")
    page.wait_for("!question.open")
    return asked


def submit(page: Page, form: str) -> None:
    page.look(f"document.querySelector('form[data-act={form}]').requestSubmit()")


def records(broker: Broker, partition: int) -> int:
    return int(get(broker, "/topics/orders")[1]["partitions"][partition]["end"])


def test_a_record_is_sent_after_a_question_and_sent_again_with_edits(browser: Browser, broker: Broker) -> None:
    page = browser.open(at(broker, "/topics/orders"))
    page.look("document.querySelector('.acts a').click()")
    page.wait_for("document.querySelector('form[data-act=record]') !== null")
    page.look(
        "(() => { const given = document.querySelector('form[data-act=record]').elements;"
        " given['key-kind'].value = 'text'; given.key.value = 'k'; given.value.value = 'a <b> \\u00e9';"
        " given['header-name'].value = 'trace'; given['header-value'].value = '1'; given.partition.value = '2'; })()"
    )
    submit(page, "record")
    assert answer(page, "no") == "Send this record to orders?"
    assert records(broker, 2) == 0
    submit(page, "record")
    answer(page, "yes")
    said(page, "Sent: it is 2:0.")
    page.go(at(broker, "/topics/orders/records"))
    page.wait_for("document.querySelector('.again') !== null")
    page.look("document.querySelector('.again').click()")
    page.wait_for("document.querySelector('form[data-act=record]') !== null")
    page.look("document.querySelector('form[data-act=record]').elements.value.value += '!'")
    submit(page, "record")
    answer(page, "yes")
    said(page, "Sent: it is 2:1.")
    (first, second) = get(broker, "/topics/orders/records?partition=2&offset=0")[1]["records"]
    assert (first["value"]["text"], second["value"]["text"]) == ("a <b> \u00e9", "a <b> \u00e9!")
    assert second["key"] == first["key"]
    assert second["headers"] == first["headers"] != []
    assert page.complaints == []
    page.close()


def test_a_file_is_sent_in_pieces(browser: Browser, broker: Broker, tmp_path: Path) -> None:
    broker.create_topic("lines", 1)
    page = browser.open(at(broker, "/topics/lines/produce"))
    text = "".join(json.dumps({"value": number, "key": "k"}) + "\n" for number in range(6000))
    page.look(
        f"(() => {{ const chosen = new DataTransfer(); chosen.items.add(new File([{text!r}], 'a.jsonl'));"
        " const given = document.querySelector('form[data-act=file]').elements;"
        " given.file.files = chosen.files; given.format.value = 'jsonl'; })()"
    )
    submit(page, "file")
    assert answer(page, "yes") == "Send 6,000 lines of a.jsonl to lines?"
    said(page, "Sent: 6,000 records.")
    assert get(broker, "/topics/lines")[1]["partitions"][0]["end"] == 6000
    page.look(
        "(() => { const chosen = new DataTransfer(); chosen.items.add(new File(['{}'], 'b'));"
        " document.querySelector('form[data-act=file]').elements.file.files = chosen.files; })()"
    )
    submit(page, "file")
    answer(page, "yes")
    said(page, "0 records sent; it stopped in lines 1 to 1: line 1 is not an object")
    page.close()


def test_a_group_is_reset_after_a_preview_and_a_question(browser: Browser, broker: Broker) -> None:
    post(broker, "/topics/orders/records", {"records": [{"value": "x", "partition": 0}] * 3})
    status, found = post(broker, "/groups/slow/offsets/preview", {"to": "latest", "topic": "orders"})
    while status == 503:
        status, found = post(broker, "/groups/slow/offsets/preview", {"to": "latest", "topic": "orders"})
    assert post(broker, "/groups/slow/offsets", {"changes": found["changes"]})[0] == 200
    page = browser.open(at(broker, "/groups/slow"))
    page.look("document.querySelector('.acts a').click()")
    page.wait_for("document.querySelector('form[data-act=preview]') !== null")
    submit(page, "preview")
    said(page, "would change")
    assert get(broker, "/groups/slow")[1]["lag"] == 0
    page.look("document.querySelector('#preview button.yes').click()")
    assert "of group slow to earliest?" in answer(page, "yes")
    said(page, "Reset: ")
    assert get(broker, "/groups/slow")[1]["lag"] > 0
    assert page.complaints == []
    page.close()


def test_a_delayed_record_is_cancelled_after_a_question(browser: Browser, broker: Broker) -> None:
    header = {"name": "x-deliver-after-ms", "value": "3600000"}
    assert post(broker, "/topics/jobs/records", {"records": [{"value": "later", "headers": [header]}]})[0] == 200
    page = browser.open(at(broker, "/schedules/jobs/0"))
    page.wait_for("document.querySelector('[data-cancel]:not([hidden])') !== null")
    page.look("document.querySelector('[data-cancel]').click()")
    assert "the record at offset 0 of jobs-0" in answer(page, "yes")
    said(page, "Cancelled: the record at offset 0", "#said")
    while get(broker, "/schedules/jobs/0")[1]["waiting"]:
        pass
    assert page.complaints == []
    page.close()
