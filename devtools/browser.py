"""A Chromium that tests drive, over the pipe that it offers to debuggers: no driver, no package, no port.

    with Browser.start() as browser:
        page = browser.open("http://127.0.0.1:9644/wheel")
        page.wait_for("document.querySelectorAll('tbody tr').length > 3")
        page.screenshot("wheel.png")
        assert page.complaints == []

`complaints` has what no page of ours may do: errors on the console, exceptions, violations of its own policy, and
requests to another host. Messages of the protocol are JSON, each ended by a zero byte.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import urlsplit

from devtools.programs import tool

PATIENCE_S: Final = 60.0
LOOK_S: Final = 0.05  # between two looks whether something is true on a page
CHUNK: Final = 1 << 20
NAVIGATED: Final = ("navigated or closed", "context was destroyed", "Cannot find context")  # words of Chromium
FLAGS: Final = (
    *("--headless=new", "--remote-debugging-pipe", "--no-first-run", "--no-default-browser-check", "--disable-gpu"),
    *("--disable-extensions", "--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--disable-dev-shm-usage", "--hide-scrollbars", "--force-color-profile=srgb", "--mute-audio"),
)


class BrowserError(Exception):
    """The browser has ended, refused a command, or something did not become true in time."""


class NavigatedError(BrowserError):
    """The page went to another one meanwhile."""


class Browser:
    def __init__(self, process: subprocess.Popen[bytes], to: int, back: int, profile: str) -> None:
        self._process = process
        self._to = to
        self._back = back
        self._profile = profile
        self._received = b""
        self._number = 0
        self._answers: dict[int, dict[str, Any]] = {}
        self._pages: dict[str, Page] = {}  # by session

    @classmethod
    def start(cls) -> Self:
        """PartMissing if this machine has no Chromium and none can be installed."""
        path = tool("chromium")
        profile = tempfile.mkdtemp(prefix="ixion-browser-")
        commands, to = os.pipe()  # the browser reads commands from its descriptor 3
        back, answers = os.pipe()  # and writes answers to its descriptor 4
        # A shell moves them there. Chromium refuses its sandbox to root, which CI is.
        flags = [*FLAGS, *(["--no-sandbox"] if os.geteuid() == 0 else []), f"--user-data-dir={profile}", "about:blank"]
        line = 'exec "$0" "$@" 3<&0 4>&1 </dev/null >/dev/null'
        try:
            process = subprocess.Popen(
                ["/bin/sh", "-c", line, path, *flags],
                stdin=commands,
                stdout=answers,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        finally:
            os.close(commands)
            os.close(answers)
        return cls(process, to, back, profile)

    def open(self, url: str = "about:blank", *, size: tuple[int, int] = (1440, 900), dark: bool = True) -> Page:
        target = self.send("Target.createTarget", {"url": "about:blank"})["targetId"]
        session = str(self.send("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"])
        page = self._pages[session] = Page(self, session, target)
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.send(f"{domain}.enable")
        page.resize(*size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        page.send("Emulation.setEmulatedMedia", {"features": [scheme]})
        if url != "about:blank":
            page.go(url)
        return page

    def close(self) -> None:
        try:
            self.send("Browser.close")
            self._process.wait(10)
        except (BrowserError, OSError, subprocess.TimeoutExpired):
            self._process.kill()
        self._process.wait()
        for descriptor in (self._to, self._back):
            os.close(descriptor)
        shutil.rmtree(self._profile, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def send(self, method: str, params: dict[str, Any] | None = None, session: str = "") -> dict[str, Any]:
        self._number += 1
        number = self._number
        command: dict[str, Any] = {"id": number, "method": method, "params": params or {}}
        if session:
            command["sessionId"] = session
        os.write(self._to, json.dumps(command).encode() + b"\0")
        until = time.monotonic() + PATIENCE_S
        while number not in self._answers:
            self._receive(max(until - time.monotonic(), 0))
        answer = self._answers.pop(number)
        if "error" in answer:
            message = str(answer["error"].get("message"))
            kind = NavigatedError if any(text in message for text in NAVIGATED) else BrowserError
            raise kind(f"{method}: {message}")
        return dict(answer["result"])

    def listen(self, seconds: float) -> None:
        """Take in what has happened, for at most so long."""
        if select.select([self._back], [], [], seconds)[0]:
            self._receive(seconds)

    def _receive(self, seconds: float) -> None:
        if not select.select([self._back], [], [], seconds)[0]:
            raise BrowserError(f"the browser did not answer within {PATIENCE_S:g} s")
        data = os.read(self._back, CHUNK)
        if not data:
            raise BrowserError("the browser has ended")
        *whole, self._received = (self._received + data).split(b"\0")
        for each in whole:
            message = json.loads(each)
            if "id" in message:
                self._answers[message["id"]] = message
            elif message.get("sessionId") in self._pages:
                self._pages[message["sessionId"]].happened(message["method"], message["params"])


class Page:
    def __init__(self, browser: Browser, session: str, target: str) -> None:
        self._browser = browser
        self._session = session
        self._target = target
        self._host = ""
        self.complaints: list[str] = []

    def send(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        return self._browser.send(method, params, self._session)

    def happened(self, method: str, params: dict[str, Any]) -> None:
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.complaints.append(f"exception: {details.get('exception', {}).get('description') or details['text']}")
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.complaints.append(f"{params['entry']['level']}: {params['entry']['text']}")
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.complaints.append(f"console: {[each.get('value') for each in params['args']]}")
        elif method == "Network.requestWillBeSent":
            address = urlsplit(params["request"]["url"])
            if address.scheme not in ("data", "about") and self._host and address.netloc != self._host:
                self.complaints.append(f"a request to another host: {params['request']['url'][:200]}")

    def go(self, url: str) -> None:
        self._host = urlsplit(url).netloc
        self.send("Page.navigate", {"url": url})
        self.wait_for("document.readyState === 'complete'")

    def resize(self, width: int, height: int, scale: float = 1) -> None:
        self.send(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": width < 600},
        )

    def look(self, expression: str) -> Any:
        """The value of a JavaScript expression."""
        found = self.send("Runtime.evaluate", {"expression": expression, "returnByValue": True, "awaitPromise": True})
        if "exceptionDetails" in found:
            raise BrowserError(f"{expression}: {found['exceptionDetails']}")
        return found["result"].get("value")

    def wait_for(self, expression: str) -> Any:
        """The first value of the expression that is true."""
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            with suppress(NavigatedError):  # the next look is at the next page
                found = self.look(expression)
                if found:
                    return found
            self._browser.listen(LOOK_S)
        raise BrowserError(f"not true within {PATIENCE_S:g} s: {expression}")

    def click(self, x: float, y: float) -> None:
        for kind in ("mousePressed", "mouseReleased"):
            event = {"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1}
            self.send("Input.dispatchMouseEvent", event)

    def press(self, *keys: str) -> None:
        """Keys by the names of the DOM: g, Enter, ArrowUp."""
        for key in keys:
            text = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
            self.send("Input.dispatchKeyEvent", {"type": "keyDown", "key": key, **text})
            self.send("Input.dispatchKeyEvent", {"type": "keyUp", "key": key})

    def screenshot(self, path: str | os.PathLike[str], *, whole: bool = False) -> None:
        found = self.send("Page.captureScreenshot", {"format": "png", "captureBeyondViewport": whole})
        Path(path).write_bytes(base64.b64decode(found["data"]))

    def close(self) -> None:
        self._browser.send("Target.closeTarget", {"targetId": self._target})
