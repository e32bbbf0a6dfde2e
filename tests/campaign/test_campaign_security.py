"""A campaign's processes: where they listen, and that they speak to nobody without a certificate of theirs."""

import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from autotune import UsageError
from autotune.records.folder import find_sweeps

from ..conftest import EXAMPLE
from ..family import descendants, open_files

pytest.importorskip("distributed")
pytest.importorskip("cryptography")

from distributed import Security

from autotune.campaign.security import Certificates, security_for, warning

PYTHON = [sys.executable, "-m"]
LISTENING = "0A"
LOOPBACK = {"0100007F", "00000000000000000000000001000000", "0000000000000000FFFF00000100007F"}  # as /proc has them


def plan(path: Path, n_problems: int) -> Path:
    file = path / "campaign.toml"
    sizes = ", ".join(str(64 + i) for i in range(n_problems))
    file.write_text(
        f"kernel = '{EXAMPLE}'\nrevisit = 0\n[grid]\nn_chan = [{sizes}]\n[problem]\nn_time = 32\n"
        "[sweep]\ntrials = 6\nsampler = 'random'\n"
    )
    return file


def listening(pids: list[int]) -> list[tuple[str, int]]:
    """(address in hex, port) of every TCP socket on which one of the processes listens."""
    files = [file for pid in pids for file in open_files(pid)]
    inodes = {file[len("socket:[") : -1] for file in files if file.startswith("socket:[")}
    found = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == LISTENING and words[9] in inodes:
                address, _, port = words[1].partition(":")
                found.append((address, int(port, 16)))
    return found


def answers(port: int, context: ssl.SSLContext | None, within_s: float = 2.0) -> bool:
    """Whether Dask speaks to us there: it says which version it is of, without being asked."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=within_s) as plain:
            if context is None:
                return bool(plain.recv(1))
            with context.wrap_socket(plain) as encrypted:
                return bool(encrypted.recv(1))
    except OSError:  # refused, or nothing said
        return False


def strangers() -> list[ssl.SSLContext]:
    """One without a certificate, and one with a certificate of its own; both trust whoever answers."""
    found = [ssl.create_default_context(), Security.temporary().get_connection_args("client")["ssl_context"]]
    for context in found:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return found


def strangers_answered(ports: set[int]) -> list[int]:
    """Where a stranger on this host is spoken to."""
    asked = [(port, context) for port in ports for context in (None, *strangers())]
    with ThreadPoolExecutor(len(asked)) as pool:
        told = pool.map(lambda each: answers(*each), asked)
        return [port for (port, _), spoken in zip(asked, told, strict=True) if spoken]


@pytest.mark.thorough
def test_a_local_campaign_listens_on_loopback_and_speaks_to_no_stranger(tmp_path: Path) -> None:
    devices = ["--device", "simulated:0", "--device", "simulated:1"]
    words = ["autotune", "campaign", str(plan(tmp_path, 200)), *devices, "--results", str(tmp_path / "r"), "--json"]
    slow = {**os.environ, "AUTOTUNE_SIMULATED_COMPILE_S": "1.0"}  # it runs for as long as we look
    campaign = subprocess.Popen([*PYTHON, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=slow)
    try:
        while not list(tmp_path.glob("r/**/trials.jsonl")) and campaign.poll() is None:
            time.sleep(0.05)
        sockets = listening([campaign.pid, *descendants(campaign.pid)])
        spoken_to = strangers_answered({port for _, port in sockets})
        is_running = campaign.poll() is None
        campaign.send_signal(signal.SIGINT)
        out, progress = campaign.communicate(timeout=240)
    finally:
        campaign.kill()
    assert is_running, progress
    assert len(sockets) >= 5, f"the scheduler's, and two of each worker: {sockets}\n{progress}"
    assert {address for address, _ in sockets} <= LOOPBACK, sockets
    assert spoken_to == []
    assert campaign.returncode == 130 and json.loads(out)["interrupted"], progress


# ---------------------------------------------------------------------- many hosts, over TLS
@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder made by the commands of docs/campaigns.md."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    folder = tmp_path_factory.mktemp("certificates")
    return made_certificates(folder)


def options(folder: Path, *, ca: str = "--tls-ca") -> list[str]:
    return [ca, str(folder / "ca.pem"), "--tls-cert", str(folder / "cert.pem"), "--tls-key", str(folder / "key.pem")]


def made_certificates(folder: Path) -> Path:
    """Returns the folder, with certificates made by the commands of docs/campaigns.md."""
    page = (Path(__file__).parents[2] / "docs" / "campaigns.md").read_text()
    commands = [line.strip() for line in page.splitlines() if line.startswith("    openssl ")]
    assert len(commands) == 3
    subprocess.run(" && ".join(commands), shell=True, cwd=folder, check=True, capture_output=True, timeout=120)
    return folder


def test_a_campaign_over_tls_and_a_client_without_a_certificate(tmp_path: Path, certificates: Path) -> None:
    told = tmp_path / "scheduler.json"
    told.touch()
    words = [
        "--protocol",
        "tls",
        "--host",
        "127.0.0.1",
        "--port",
        "0",
        "--no-dashboard",
        "--dashboard-address",
        "127.0.0.1:0",
        "--scheduler-file",
        str(told),
    ]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    started = [
        subprocess.Popen(
            [*PYTHON, "distributed.cli.dask_scheduler", *words, *options(certificates, ca="--tls-ca-file")], **quiet
        )
    ]
    try:
        while not told.read_text().endswith("}") and started[0].poll() is None:  # there before it is written
            time.sleep(0.05)
        tls = json.loads(told.read_text())["address"]
        assert tls.startswith("tls://")
        serve = ["autotune", "worker", tls, "--device", "simulated:0", *options(certificates)]
        started.append(subprocess.Popen([*PYTHON, *serve], **quiet))
        words = ["--scheduler", tls, "--results", str(tmp_path / "r"), "--json", *options(certificates)]
        for _ in range(20):  # until the worker is there
            command = [*PYTHON, "autotune", "campaign", str(plan(tmp_path, 3)), *words]
            done = subprocess.run(command, capture_output=True, text=True, timeout=240)
            if "has no workers" not in done.stderr:
                break
        family = descendants(started[1].pid)
        sockets = listening([started[1].pid, *family])
        ours = security_for(tls, Certificates(*(certificates / f"{name}.pem" for name in ("ca", "cert", "key"))))
        port = int(tls.rpartition(":")[2])
        assert answers(port, ours.get_connection_args("client")["ssl_context"], within_s=60.0)
        ports = {port, *(port for _, port in sockets)}
        spoken_to = strangers_answered(ports)
        started[1].send_signal(signal.SIGINT)
        started[1].wait(120)
        strange = made_certificates(tmp_path)
        mixed = ["--tls-ca", str(certificates / "ca.pem"), *options(strange)[2:]]  # whom the scheduler refuses
        refused = [
            subprocess.run([*PYTHON, *serve[:5], *given], capture_output=True, text=True, timeout=240)
            for given in (options(strange), mixed)
        ]
    finally:
        for process in started:
            process.kill()
            process.wait(30)
    assert spoken_to == []
    for each in refused:
        *_, line = each.stderr.strip().splitlines()
        assert each.returncode == 2 and "Traceback" not in each.stderr, each.stderr
        assert line.startswith(f"autotune: the scheduler at {tls} and this side do not trust each other"), line
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["tuned"] == 3 and len(find_sweeps(tmp_path / "r")) == 3
    assert sockets and {address for address, _ in sockets} <= LOOPBACK, "it reaches the scheduler there"
    assert "warning" not in done.stderr


def test_files_that_are_no_certificates_are_one_line(certificates: Path, tmp_path: Path) -> None:
    ca, cert, key = (certificates / name for name in ("ca.pem", "cert.pem", "key.pem"))
    rubbish = tmp_path / "rubbish.pem"
    rubbish.write_text("no certificate")
    for files, says in (
        (Certificates(), "needs --tls-ca FILE, or distributed.comm.tls.ca-file"),
        (Certificates(ca=ca), "needs --tls-cert FILE"),
        (Certificates(ca, cert, tmp_path / "none.pem"), "cannot read .*none.pem: No such file"),
        (Certificates(tmp_path, cert, key), "cannot read .*Is a directory"),
        (Certificates(rubbish, cert, key), "rubbish.pem is not a certificate in PEM"),
        (Certificates(ca, rubbish, key), "is not a certificate with its private key"),
        (Certificates(ca, cert), "is not a certificate with its private key"),
        (Certificates(ca, ca, key), "is not a certificate with its private key"),
    ):
        with pytest.raises(UsageError, match=says):
            security_for("tls://host:8786", files)
    with pytest.raises(UsageError, match="--tls-ca has no effect at tcp://"):
        security_for("tcp://host:8786", Certificates(ca))
    assert security_for("tls://host:8786", Certificates(ca, cert, key)).require_encryption


@pytest.mark.parametrize(
    "address", ["x", "", "tls://", "tls://host", "host:8786", "ucx://host:1", "tcp://host:x", "tcp://["]
)
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(UsageError, match="is not a scheduler's address; write tls://host:8786"):
        security_for(address, Certificates())


def test_an_open_port_beyond_loopback_is_told() -> None:
    assert "can run code there as you" in warning("tcp://10.1.2.3:8786") and "\n" not in warning("tcp://node7:8786")
    assert not any(map(warning, ("tls://node7:8786", "tcp://127.0.0.1:8786", "tcp://[::1]:8786", "tcp://localhost:1")))
