"""docs/network.md and its neighbours: the first run goes as it is printed, and tables have what there is."""

import re
import shlex
import socket
import subprocess
import sys
from dataclasses import fields
from functools import partial
from pathlib import Path

import pytest

from autotune.engines.digitiser.signal_language import FORMS, named_values, parsed_signal
from autotune.engines.network.placing import COUNTERS
from autotune.engines.network.receiver import OTHER_COUNTERS
from autotune.engines.service import dsim_service, f_service, x_service

from ..network.ports import free_ports
from .air import Air, Process, ended

DOCS = Path(__file__).parents[3] / "docs"
PAGE, FILES, REFERENCE = ((DOCS / f"network{name}.md").read_text() for name in ("", "-files", "-reference"))
CODE = re.compile(r"`\[*([A-Za-z_]+)\]*`")


def section(title: str) -> str:
    return f"{FILES}\n{REFERENCE}".split(f"## {title}\n")[1].split("\n## ")[0]


def test_the_first_run(tmp_path: Path) -> None:
    ports = dict(zip(("7148", "7149", "7150"), map(str, free_ports(3, socket.SOCK_STREAM)), strict=True))
    for name, text in re.findall(r"```toml\n# (\w+\.toml)(.*?)```", PAGE, re.DOTALL):
        (tmp_path / name).write_text("#" + re.sub("|".join(ports), lambda found: ports[found[0]], text))
    commands = re.findall(r"^    autotune (.+?)( &)?$", PAGE, re.MULTILINE)
    assert [bool(beside) for _, beside in commands] == [True, True, False]
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "autotune", *shlex.split(words)], cwd=tmp_path, stderr=subprocess.PIPE, text=True
        )
        for words, _ in commands
    ]
    try:
        said = "".join(process.communicate(timeout=120)[1] for process in started).splitlines()
    finally:
        for process in started:
            process.kill()
    assert [process.returncode for process in started] == [0, 0, 0], said
    printed = re.findall(r"^    (\d.*)$", PAGE, re.MULTILINE)
    assert len(printed) == 3
    for line in printed:
        assert any(each.endswith(line) or f" {line}, " in each or each.startswith(f"{line}, ") for each in said), (
            line,
            said,
        )
    (program,) = re.findall(r"```python\n(from .*?)```", PAGE, re.DOTALL)[:1]
    shown = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=True
    )
    rows = shown.stdout.splitlines()
    assert len(rows) == 3 and all(re.fullmatch(r"\d+ \[ ?True\] 80", row) for row in rows), rows


def test_the_lines_of_python(tmp_path: Path) -> None:
    *_, program = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert "GatedVoltages" in program
    (port,) = free_ports(1, socket.SOCK_DGRAM)
    names = {
        "streams.gate": "GatedVoltages",
        "streams.samples": "SampleInfo",
        "streams.voltages": "VoltageInfo",
        "network.endpoints": "endpoints",
        "network.received": "ReceivedSamples",
        "network.receiver": "Listening",
        "network.voltage_outlet": "VoltageOutlet",
    }
    lines = [f"from autotune.engines.{module} import {name}" for module, name in names.items()]
    lines += ["info = VoltageInfo(64, 2, 8, 16, 128, SampleInfo(10, 2, 4e6, 4096))", program, "sink.close()"]
    code = "\n".join(lines).replace("7150", str(port))
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, timeout=120, check=True)


@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_an_engine_listens_where_its_file_says_and_nowhere_else(tmp_path: Path, transport: str) -> None:
    with ended(Air(tmp_path, transport, n_antennas=1)) as air:
        for start, ports in ((air.x, air.voltage_ports), (partial(air.f, 0), air.sample_ports[0])):
            process = start().waits_for("heaps are received at")  # an F-engine connects to an X-engine at once
            expected = {f"{transport} 0100007F:{port:04X}" for port in ports}
            n_sending = int(transport == "udp" and ports == air.sample_ports[0])  # what sends by udp has a port, too

            def listens_there(process: Process = process, n: int = n_sending, places: set[str] = expected) -> bool:
                found = process.listens_at
                sending = {place for place in found if place.startswith("udp 00000000:")}
                return found - sending == places and len(sending) == n

            process.waits_until(listens_there)


@pytest.mark.quick
def test_tables_name_every_counter() -> None:
    text = section("Counters")
    sent = {field.name for field in fields(dsim_service.DsimCounts)}
    made = {
        *f_service.FService.counted,
        *x_service.XService.counted,
        "saturated",
        "power_dbfs",
        "latency_s",
        "heaps_failed",
    }
    assert {*COUNTERS, *OTHER_COUNTERS, *made, *sent} <= {*CODE.findall(text)}
    starred = {*re.findall(r"`(\w+)` \*", text)}
    assert starred == {*COUNTERS, "placed", "too_old", "incomplete", "kernel_drops"} - {"stops", "no_data"}


@pytest.mark.quick
def test_signals_are_of_the_language() -> None:
    texts = re.findall(r'^    "(.*?)"(?: +# with names\.(\w+) = "(.*?)")?$', section("Digitiser"), re.MULTILINE)
    assert len(texts) == 3
    for text, name, value in texts:
        parsed_signal(text, 1712e6, named_values({name: value} if name else {}, 1712e6, "names"), "signals[0]")
    assert all(f"`{form}`" in section("Digitiser") for form in FORMS.values())
