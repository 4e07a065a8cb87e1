"""A headless Chromium, driven over its debugging pipe; nothing but the standard library is needed."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)
TIMEOUT = 60.0


def find_chromium() -> str | None:
    """Path of an installed Chromium, or None."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((path for name in names if (path := shutil.which(name))), None)


class Browser:
    """One page of a running Chromium. Commands are those of the DevTools protocol."""

    def __init__(self, program: str, folder: str, width: int, height: int) -> None:
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        size = f"--window-size={width},{height}"

        def give_pipes() -> None:
            # The protocol's fixed descriptors; copies first, in case one of ours has such a number.
            one, two = os.dup(theirs_in), os.dup(theirs_out)
            os.dup2(one, 3)
            os.dup2(two, 4)

        self._process = subprocess.Popen(
            [program, *FLAGS, size, f"--user-data-dir={folder}", "about:blank"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            close_fds=False,
            preexec_fn=give_pipes,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        targets = self.command("Target.getTargets")["targetInfos"]
        page = next(target for target in targets if target["type"] == "page")
        attached = self.command("Target.attachToTarget", targetId=page["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.command(f"{domain}.enable")

    def command(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and wait for its answer; events that come before are kept in `events`."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer.get('error')}"
                result: dict[str, Any] = answer["result"]
                return result
            self.events.append(answer)

    def _receive(self) -> dict[str, Any]:
        deadline = time.monotonic() + TIMEOUT
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], max(deadline - time.monotonic(), 0))
            assert ready, "Chromium does not answer"
            data = os.read(self._in, 1 << 16)
            assert data, "Chromium has ended"
            self._buffer += data
        text, self._buffer = self._buffer.split(b"\0", 1)
        message: dict[str, Any] = json.loads(text)
        return message

    def evaluate(self, expression: str) -> Any:
        """The value of a script expression; a promise is waited for."""
        answer = self.command(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def wait_for(self, expression: str) -> None:
        """Wait until an expression is true."""
        deadline = time.monotonic() + TIMEOUT
        while not self.evaluate(expression):
            assert time.monotonic() < deadline, f"{expression} does not become true"
            time.sleep(0.02)

    def open(self, path: Path, place: str = "") -> None:
        """Load a profile page from the beginning and wait until it is drawn."""
        self.command("Page.navigate", url="about:blank")
        self.events.clear()
        self.command("Page.navigate", url=path.absolute().as_uri() + place)
        self.wait_for("['ready', 'failed'].includes(document.body?.dataset.state)")
        assert self.evaluate("document.body.dataset.state") == "ready", self.evaluate(
            "document.getElementById('facts').textContent"
        )

    def key(self, key: str) -> None:
        """Press a key on the page."""
        self.evaluate(f"document.dispatchEvent(new KeyboardEvent('keydown', {{key: {json.dumps(key)}}}))")
        self.settle()

    def settle(self) -> None:
        """Wait until what was asked for is drawn and the address is written."""
        self.evaluate("new Promise((done) => setTimeout(() => requestAnimationFrame(done), 320))")

    def complaints(self) -> list[str]:
        """Errors that the page has reported: exceptions, refused content, failed requests."""
        found = []
        for event in self.events:
            name, details = event.get("method"), event.get("params", {})
            if name == "Runtime.exceptionThrown":
                found.append(str(details["exceptionDetails"]))
            if name == "Log.entryAdded" and details["entry"]["level"] == "error":
                found.append(details["entry"]["text"])
        return found

    def requests(self) -> list[str]:
        """Addresses that the page has asked for, its own included."""
        names = (event for event in self.events if event.get("method") == "Network.requestWillBeSent")
        return [str(event["params"]["request"]["url"]).split("#")[0] for event in names]

    def screenshot(self, path: Path) -> None:
        """Save what is to be seen as PNG."""
        path.write_bytes(base64.b64decode(self.command("Page.captureScreenshot")["data"]))

    def close(self) -> None:
        self._session = None
        with suppress(AssertionError, OSError):
            self.command("Browser.close")
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(10)
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        os.close(self._in)
        os.close(self._out)


@contextmanager
def browser(program: str, width: int = 1440, height: int = 1200) -> Iterator[Browser]:
    """A Chromium with a new profile directory, gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="tilewright-chromium-", ignore_cleanup_errors=True) as folder:
        made = Browser(program, folder, width, height)
        try:
            yield made
        finally:
            made.close()
