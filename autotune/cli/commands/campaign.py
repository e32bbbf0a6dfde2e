"""`autotune campaign` and `autotune worker`: many problems on many devices."""

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated

import typer

from ...analysis.fields import assignments, common_fields, own_fields, told_common
from ...core.errors import UsageError
from ...core.units import percent, seconds_text
from ...system.installation import install_with
from ...system.shell import command, definition_words
from ..console import ProgressLine, ProgressText, note, print_json, stdout
from ..stopped import STANDS, stopped
from ..tables import print_table
from .options import JsonOption

if TYPE_CHECKING:
    from ...campaign.campaign import Campaign
    from ...campaign.task_worker import TaskResult

N_FAILURES_TOLD = 5
CompileOption = Annotated[
    int | None,
    typer.Option(
        "--compile-processes",
        min=1,
        max=1024,
        help="Compiler processes per device. [default: this machine's cores divided by its GPUs]",
    ),
]
CaOption = Annotated[
    Path | None,
    typer.Option(
        "--tls-ca",
        help="For tls://: the certificate (PEM) of the authority that signed all certificates. [default: "
        "distributed.comm.tls.ca-file of Dask's configuration]",
    ),
]
CertOption = Annotated[
    Path | None,
    typer.Option("--tls-cert", help="This process's certificate (PEM). [default: from Dask's configuration]"),
]
KeyOption = Annotated[
    Path | None,
    typer.Option(
        "--tls-key", help="Its private key (PEM), unless --tls-cert holds it. [default: from Dask's configuration]"
    ),
]


def campaign(
    file: Annotated[Path, typer.Argument(help="What to tune: a TOML file, see docs/campaigns.md.")],
    device: Annotated[
        list[str],
        typer.Option(
            "--device", help="cuda:0, ...; repeatable. [default: those of the file, else all GPUs here, else host]"
        ),
    ] = [],
    scheduler: Annotated[
        str,
        typer.Option(
            "--scheduler",
            help="tls://host:8786: use the workers of a Dask scheduler. [default: a cluster on this machine]",
        ),
    ] = "",
    tls_ca: CaOption = None,
    tls_cert: CertOption = None,
    tls_key: KeyOption = None,
    compile_processes: CompileOption = None,
    results: Annotated[
        Path | None,
        typer.Option("--results", help="The folder for recorded sweeps. [default: that of the file, else results]"),
    ] = None,
    draw: Annotated[
        int | None, typer.Option("--draw", min=0, help="Draw so many problems from the file's [[ranges]]. [default: 0]")
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", min=0, help="The seed of --draw. [default: 0]")] = None,
    recorded: Annotated[
        bool | None,
        typer.Option("--recorded", help="Also tune each problem that the results have for these devices."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Tune every problem of a grid on all devices. The same command, run again, resumes where it stopped."""
    _need_dask()
    from ...campaign.campaign import run_campaign
    from ...campaign.campaign_plan import read_plan
    from ...campaign.security import Certificates

    certificates = Certificates(tls_ca, tls_cert, tls_key)
    if scheduler:
        _warn(scheduler)
    elif tls_ca or tls_cert or tls_key:
        raise UsageError("--tls-ca, --tls-cert and --tls-key are for --scheduler tls://host:8786")
    plan = read_plan(file, results, draw=draw, seed=seed, recorded=recorded)
    done = run_campaign(plan, _Console(), scheduler or None, tuple(device) or None, compile_processes, certificates)
    if json:
        print_json(_summary(done, plan.settings.results))
    else:
        _print(done, plan.settings.results, plan.kernel)
    if done.interrupted:
        raise stopped(STANDS["campaign"])
    if done.failed:
        raise typer.Exit(1)


def worker(
    scheduler: Annotated[str, typer.Argument(help="The scheduler's address, such as tls://host:8786.")],
    device: Annotated[
        list[str], typer.Option("--device", help="cuda:0, ...; repeatable. [default: all GPUs here, else host]")
    ] = [],
    tls_ca: CaOption = None,
    tls_cert: CertOption = None,
    tls_key: KeyOption = None,
    compile_processes: CompileOption = None,
) -> None:
    """Lend the devices of this host to a campaign, until Ctrl-C. All hosts must share the results folder."""
    _need_dask()
    from ...campaign.cluster import all_devices, serve
    from ...campaign.security import Certificates, security_for

    security = security_for(scheduler, Certificates(tls_ca, tls_cert, tls_key))
    _warn(scheduler)
    devices = tuple(device) or all_devices()
    note(f"serving {', '.join(devices)} to {scheduler}; press Ctrl-C to stop")
    serve(scheduler, devices, security, compile_processes)
    note("stopped by Ctrl-C; the campaign goes on with its other workers, and with this one when it runs again")


def _warn(scheduler: str) -> None:
    from ...campaign.security import warning

    if text := warning(scheduler):
        note(text)


def _need_dask() -> None:
    """Raises UsageError unless Dask is installed. Campaigns import it late: the import outlasts most commands."""
    if missing := [name for name in ("distributed", "cryptography") if find_spec(name) is None]:
        raise UsageError(f"campaigns need {' and '.join(missing)}, which are not installed: {install_with('campaign')}")


class _Console:
    """Shows a progress bar on a terminal, and a line every few seconds elsewhere."""

    def __init__(self) -> None:
        self._line: ProgressLine | None = None
        self._total = self._failed = 0

    def begin(self, title: str, n_total: int) -> None:
        self.end()
        note(title)
        self._total, self._line = n_total, ProgressLine(n_total)

    def tuned(self, one: "TaskResult", n_done: int) -> None:
        self._failed += bool(one.error)
        progress = ProgressText("", assignments(one.problem), f": {one.error or seconds_text(one.median_s)}")
        if self._failed:
            progress = replace(progress, end=f"{progress.end}; {self._failed} failed")
        if self._line is not None and self._line.update(n_done, progress):
            note(f"  {n_done} of {self._total}{self._line.left(n_done)}: {progress}")

    def end(self) -> None:
        if self._line is not None:
            self._line.end()
            self._line = None


def _summary(done: "Campaign", results: Path) -> dict[str, object]:
    return {
        "results": str(results),
        "devices": done.devices,
        "problems": done.n_problems,
        "tuned": sum(not o.error for o in done.tuned),
        "wall_s": done.wall_s,
        "idle_share": done.idle_share,
        "spent_s": done.spent_s,
        "compile_s": done.compile_s,
        "compile_share": done.compile_share,
        "trials": dict(done.counts),
        "new_trials": done.n_new,
        "interrupted": done.interrupted,
        "outcomes": [vars(o) for o in done.tuned],
    }


def _print(done: "Campaign", results: Path, kernel: str) -> None:
    tuned = [o for o in done.tuned if not o.error]
    gains = [o.speed_up for o in tuned if o.speed_up]
    best = sorted((o for o in tuned if o.speed_up), key=lambda o: -(o.speed_up or 0.0))[:3]
    if best:
        ((_, common),) = common_fields([kernel] * len(tuned), [o.problem for o in tuned]).items()
        for text in told_common({"them": common}):
            stdout.print(text, markup=False)
        rows = [
            (assignments(own_fields(o.problem, common)), seconds_text(o.median_s), f"{o.speed_up:.2f}", o.device)
            for o in best
        ]
        print_table(("the largest speed-ups", "median", "x default", "device"), rows, cut="the largest speed-ups")
    stdout.print(f"problems     {len(tuned)} of {done.n_problems} tuned, {len(done.failed)} failed", markup=False)
    for failed in done.failed[:N_FAILURES_TOLD]:
        stdout.print(f"  {assignments(failed.problem)}: {failed.error}", markup=False)
    if gains:
        stdout.print(f"speed-up     {median(gains):.2f} x the default (median), up to {max(gains):.2f}")
    counts = ", ".join(f"{n} {status}" for status, n in sorted(done.counts.items(), key=lambda item: -item[1]))
    stdout.print(f"trials       {counts or 'none'}; {done.n_new} new in this run", markup=False)
    parts = ", ".join(f"{what} {seconds_text(s)}" for what, s in done.spent_s.items() if s >= 0.1)
    stdout.print(f"time         {seconds_text(done.wall_s)} wall; summed over concurrent sweeps: {parts or 'nothing'}")
    busy, compiling = 1.0 - done.idle_share, done.compile_share
    what = "compilation is the bottleneck" if compiling > busy else "the devices are the bottleneck"
    stdout.print(f"devices      {', '.join(done.devices)}, idle {percent(done.idle_share)}", markup=False)
    stdout.print(f"compilers    {seconds_text(done.compile_s)} of work, busy {percent(compiling)}; {what}")
    if done.interrupted:
        stdout.print("next         run the same command again to resume")
    elif tuned:
        emit = command("autotune", "emit", results, "--out", "tuned", *definition_words(kernel))
        stdout.print(f"next         {emit}, or {command('autotune', 'portfolio', results)}", markup=False)
