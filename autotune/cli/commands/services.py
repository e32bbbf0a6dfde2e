"""`autotune dsim`, `fengine` and `xengine`: a digitiser, an F-engine and an X-engine on the network."""

from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...core.errors import UsageError
from ...engines.jobs import Running
from ...system.installation import install_with
from ..console import note, print_json, stdout
from .declared_options import with_settings
from .engine_options import running
from .options import JsonOption

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...engines.service.served import Serving

ConfigFile = Annotated[Path, typer.Argument(help="A TOML file, described in docs/network.md.")]
OnceOption = Annotated[
    bool, typer.Option("--once", help="End when all senders have ended their streams. [default: wait for new streams]")
]
CheckOption = Annotated[
    bool, typer.Option("--check", help="Say ports, memory, latency, tolerance and dumps a chunk; open nothing.")
]
StatusOption = Annotated[float, typer.Option("--status", min=0.1, help="Seconds between two status lines.")]
STATUS_S = 5.0


@contextmanager
def with_spead2() -> "Iterator[None]":
    """Turns a missing spead2 into a UsageError that says how to install it."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name != "spead2":
            raise
        raise UsageError(
            f"streams on the network need spead2: pip install spead2, or {install_with('network')}"
        ) from error


def dsim(config: ConfigFile, json: JsonOption = False, status: StatusOption = STATUS_S) -> None:
    """Send the samples of a simulated digitiser by SPEAD: tones, noise, delays, and deliberate faults of the network.

    It runs until all samples are sent, or Ctrl-C. At the end it prints its counts.
    """
    with with_spead2():
        from ...engines.service.dsim_service import Dsim, dsim_settings
        from ...engines.service.run_service import stopped_by_signals, told_every
        from ...engines.service.served import at_level

        tell = at_level(note)
        digitiser = Dsim(dsim_settings(config), tell)
        with stopped_by_signals(digitiser.stop), told_every(status, tell, digitiser.line):
            digitiser.run()
    _counts(digitiser.snapshot(), digitiser.line(), json)


@with_settings(Running, without=("chunk",))
def fengine(
    config: ConfigFile,
    once: OnceOption = False,
    check: CheckOption = False,
    json: JsonOption = False,
    status: StatusOption = STATUS_S,
    **options: Any,
) -> None:
    """Run an F-engine on the network: samples of a digitiser in, voltages of channels out, both by SPEAD.

    It runs until Ctrl-C or SIGTERM, and restarts when its stream restarts. Exit code: 0 stopped on request, 1 nothing
    can be received or written, 2 wrong usage, 3 the device failed repeatedly.
    """

    def service() -> "Serving":
        from ...engines.service.f_service import FService, f_service_settings

        return FService(f_service_settings(config), running(options), note)

    _serve(service, once, check, json, status)


@with_settings(Running, without=("chunk", "filter_bank"))
def xengine(
    config: ConfigFile,
    once: OnceOption = False,
    check: CheckOption = False,
    json: JsonOption = False,
    status: StatusOption = STATUS_S,
    **options: Any,
) -> None:
    """Run an X-engine on the network: voltages of F-engines in, visibilities out, to SPEAD or files.

    It runs until Ctrl-C or SIGTERM, and restarts when its streams restart. Exit code: 0 stopped on request, 1 nothing
    can be received or written, 2 wrong usage, 3 the device failed repeatedly.
    """

    def service() -> "Serving":
        from ...engines.service.x_service import XService, x_service_settings

        return XService(x_service_settings(config), running(options), note)

    _serve(service, once, check, json, status)


def _serve(service: Callable[[], "Serving"], once: bool, check: bool, json: bool, status: float) -> None:
    with with_spead2():
        serving = service()
        if check:
            stdout.print("\n".join(serving.check()), markup=False)
            return
        from ...engines.service.run_service import ServiceState, run_service, status_line

        state = ServiceState()
        try:
            code = run_service(serving, note, once=once, status_s=status, state=state)
        finally:
            serving.close()
    _counts(state.snapshot(), status_line(serving, state), json)
    raise typer.Exit(code)


def _counts(counts: dict[str, Any], line: str, json: bool) -> None:
    if json:
        print_json(counts)
    elif line:
        note(line)
