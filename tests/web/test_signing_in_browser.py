"""Logging in at the live page, in a real Chromium."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from devtools.axe import axe, barriers
from devtools.browser import Browser, Page
from devtools.parts import do_without, need
from devtools.programs import PartMissing
from ixion.testing import Broker
from tests.web.test_rights import SETTINGS

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    need("chromium")
    with Browser.start() as started:
        yield started


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(SETTINGS, metrics=True) as running:
        running.create_topic("orders")
        yield running


def at(broker: Broker, path: str) -> str:
    return broker.metrics_url.removesuffix("/metrics") + path


def sign_in(page: Page, user: str, password: str) -> None:
    page.wait_for("document.activeElement.name === 'user' || document.querySelector('output.warn') !== null")
    for name, text in (("user", user), ("password", password)):
        page.look(f"document.querySelector('input[name={name}]').focus()")
        page.look(f"document.querySelector('input[name={name}]').value = ''")
        page.press(*text)
    page.press("Enter")


def complaints(page: Page) -> list[str]:
    """Without the refusals that Chromium reports."""
    return [each for each in page.complaints if "status of 401" not in each]


def test_a_person_signs_in_sees_the_view_that_was_asked_for_and_signs_out(browser: Browser, broker: Broker) -> None:
    page = browser.open(at(broker, "/topics?q=ord"))
    sign_in(page, "root", "wrong")
    page.wait_for("document.querySelector('output').textContent === 'Wrong user name or password.'")
    assert page.look("location.search") == "?q=ord"  # nothing of the form is in the address
    sign_in(page, "root", "r-secret")
    page.wait_for("document.getElementById('topics')?.textContent.includes('orders')")
    assert page.look("document.cookie") == ""  # scripts cannot read it
    page.go(at(broker, "/wheel"))
    page.wait_for("now.size > 0")
    page.look("document.querySelector('[data-sign-out]').click()")
    page.wait_for("document.querySelector('input[name=password]') !== null")
    page.go(at(broker, "/topics"))
    assert page.look("document.querySelector('h1').textContent") == "Sign in"
    assert complaints(page) == []
    page.close()


def test_a_view_that_is_open_asks_again_when_the_session_ends(browser: Browser, broker: Broker) -> None:
    page = browser.open(at(broker, "/topics"))
    sign_in(page, "root", "r-secret")
    page.wait_for("document.getElementById('topics') !== null")
    page.look(
        "fetch('/api/v1/session/end', { method: 'POST', body: '{}', headers: { 'Content-Type': 'application/json' } })"
        ".then(() => true)"
    )
    page.wait_for("document.querySelector('input[name=password]') !== null")
    page.close()


@pytest.mark.parametrize("dark", [True, False], ids=["dark", "light"])
def test_axe_finds_nothing_serious_where_one_signs_in(browser: Browser, broker: Broker, dark: bool) -> None:
    try:
        source = axe()
    except PartMissing as missing:
        do_without("axe-core", str(missing))
    page = browser.open(at(broker, "/topics"), size=(390, 844) if dark else (1280, 860), dark=dark)
    assert barriers(page, source) == []
    assert page.look("document.documentElement.scrollWidth") <= 1280
    sign_in(page, "root", "r-secret")
    page.wait_for("document.getElementById('topics') !== null")
    assert barriers(page, source) == []
    page.look(
        "fetch('/api/v1/session/end', { method: 'POST', body: '{}', headers: { 'Content-Type': 'application/json' } })"
        ".then(() => true)"
    )
    page.close()
