"""Commands of engines in processes of their own: a signal ends each at any moment, also while it starts."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from random import Random

from .fed import Fed

STARTS_S, RUNS_S = 1.5, 3.0  # signals come so long after the start, or after the first line
KILLED_S = 20.0
EARLY = (0, 130, -signal.SIGINT, -signal.SIGTERM)  # statuses of a process that has printed nothing yet


@dataclass(frozen=True)
class Ended:
    """How a process has ended. ``has_begun``: whether it had printed a line before the signal came."""

    what: str
    has_begun: bool
    after_s: float
    took_s: float
    status: int | None
    out: str
    err: str

    def __str__(self) -> str:
        when = "after its first line" if self.has_begun else "while it started"
        return f"{self.what}, {self.after_s:.2f} s {when}: status {self.status} in {self.took_s:.2f} s"


def run(seed: int, folder: Path, fed: Fed) -> Ended:
    """Starts a command, and sends it a signal."""
    rng = Random(seed)
    kind, text = rng.choice(fed.cases())
    path = folder / f"{kind}.toml"
    path.write_text(text)
    number = rng.choice((signal.SIGINT, signal.SIGTERM))
    waits, after_s = rng.choice(((False, rng.uniform(0, STARTS_S)), (True, rng.uniform(0, RUNS_S))))
    device = () if kind == "dsim" else ("--device", "host")
    command = [sys.executable, "-m", "autotune", kind, str(path), "--json", "--status", "0.5", *device]
    env = {**os.environ, "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
    lines, has_line = list[str](), threading.Event()

    def read() -> None:
        assert process.stderr is not None
        for line in process.stderr:
            lines.append(line)
            has_line.set()

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    if waits:
        has_line.wait(KILLED_S)
    time.sleep(after_s)
    has_begun, began = has_line.is_set(), time.monotonic()
    process.send_signal(number)
    try:
        process.wait(KILLED_S)
        status: int | None = process.returncode
    except subprocess.TimeoutExpired:
        process.kill()
        status = None
    took_s = time.monotonic() - began
    assert process.stdout is not None
    out = process.stdout.read()
    process.wait()
    reader.join()
    return Ended(f"{kind}, {number.name}", has_begun, after_s, took_s, status, out, "".join(lines))


def faults(ended: Ended, most_s: float) -> list[str]:
    """Returns what is not as the page says, in a line each."""
    found = []
    if ended.took_s > most_s or ended.status is None:
        found.append(f"it has not ended within {most_s:g} s")
    if "Traceback" in ended.err or "Exception ignored" in ended.err:
        found.append(f"it prints a traceback: {ended.err[-1500:]}")
    if ended.has_begun and ended.status != 0:
        found.append(f"its status is {ended.status}: {ended.err[-500:]}")
    if ended.status not in EARLY:
        found.append(f"its status is none of {EARLY}: {ended.err[-500:]}")
    if ended.has_begun or ended.status == 0:
        try:
            json.loads(ended.out)
        except ValueError:
            found.append(f"it does not end with its counts, but {ended.out[-200:]!r}")
    return [f"{ended}: {fault}" for fault in found]


def is_before_us(ended: Ended) -> bool:
    """Whether Ctrl-C came while Python itself started, before it ran a line of autotune."""
    return "Traceback" in ended.err and f"{os.sep}autotune{os.sep}" not in ended.err
