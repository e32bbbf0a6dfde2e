"""A headless Chromium, driven through a pipe by its DevTools protocol: what a page shows, asks for and complains of."""

import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
OPTIONS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-pipe"),
    *("--disable-background-networking", "--disable-component-update", "--host-resolver-rules=MAP * ~NOTFOUND"),
)
DEADLINE_S = 30.0


@dataclass
class Chromium:
    """One tab. ``requests`` and ``complaints`` are of all pages since they were last cleared."""

    to: int
    source: int
    session: str = ""
    number: int = 0
    rest: bytes = b""
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    n_loaded: int = 0

    def open(self, page: Path, width: int = 1200) -> None:
        """Loads a page and waits until it is drawn."""
        size = {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        n_loaded = self.n_loaded
        self.call("Page.navigate", url=page.resolve().as_uri())
        self.wait_for_load(n_loaded)

    def wait_for_load(self, n_before: int) -> None:
        """Waits until one more page was loaded than ``n_before``."""
        self.wait_for(lambda: self.n_loaded > n_before)

    def wait_for(self, holds: Callable[[], bool]) -> None:
        """Waits until something holds, which is asked after each event and each tenth of a second."""
        end = time.monotonic() + DEADLINE_S
        while not holds():
            assert time.monotonic() < end, "it did not come to hold"
            self._take(0.1)

    def ask(self, script: str) -> Any:
        """Returns the value of a script that runs in the page."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def call(self, method: str, **parameters: Any) -> Any:
        """Returns the answer to one command."""
        self.number += 1
        own = {"sessionId": self.session} if self.session else {}
        message = {"id": self.number, "method": method, "params": parameters, **own}
        os.write(self.to, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + DEADLINE_S
        while time.monotonic() < end:
            for answer in self._take(0.5):
                if answer.get("id") == self.number:
                    assert "error" not in answer, answer
                    return answer["result"]
        raise AssertionError(f"no answer to {method}")

    def _take(self, wait_s: float) -> list[dict[str, Any]]:
        """Returns what has come, after a look at its events."""
        if not select.select([self.source], [], [], wait_s)[0]:
            return []
        *whole, self.rest = (self.rest + os.read(self.source, 1 << 20)).split(b"\0")
        messages = [json.loads(text) for text in whole]
        for message in messages:
            self._see(message.get("method", ""), message.get("params", {}))
        return messages

    def _see(self, method: str, what: dict[str, Any]) -> None:
        if method == "Network.requestWillBeSent":
            self.requests.append(what["request"]["url"])
        elif method == "Page.loadEventFired":
            self.n_loaded += 1
        elif method == "Log.entryAdded":
            self.complaints.append(what["entry"]["text"])
        elif method == "Runtime.consoleAPICalled":
            self.complaints.append(str(what["args"]))
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(str(what["exceptionDetails"]))


@contextmanager
def chromium(profile: Path) -> Iterator[Chromium]:
    """Starts a browser with an own profile, and ends it."""
    assert CHROMIUM
    its_source, to = os.pipe()
    source, its_to = os.pipe()

    def as_3_and_4() -> None:
        kept = os.dup(its_source), os.dup(its_to)
        os.dup2(kept[0], 3)
        os.dup2(kept[1], 4)

    process = subprocess.Popen(
        [CHROMIUM, *OPTIONS, f"--user-data-dir={profile}"],
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        preexec_fn=as_3_and_4,
        pass_fds=(3, 4),
    )
    os.close(its_source)
    os.close(its_to)
    try:
        browser = Chromium(to, source)
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        browser.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Log", "Runtime"):
            browser.call(f"{domain}.enable")
        yield browser
    finally:
        process.kill()
        process.wait()
        os.close(to)
        os.close(source)
