"""The launchers that correlate voltages and make dumps: kernels, or NumPy on host."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..machine.host_backend import HostBackend
from ..run.bay import Bay
from .numpy_correlator import NumpyAccumulate, NumpyCorrelate, UsedBatches
from .slices import slices_of
from .x_settings import XSettings, accumulate_fields, correlate_fields

XLaunch = Callable[..., None]  # a call like that of ``machine.backend.Launcher``


@dataclass(frozen=True)
class XLaunchers:
    """Launchers with the arguments of ``correlate`` and ``accumulate``, and their problems with the largest sizes."""

    correlate: XLaunch
    batches: Any  # correlate's problem; its fields first_batch and n_used select batches of a chunk
    accumulate: XLaunch
    dump: Any
    n_slices: int  # slices of the accumulators


def x_launchers(bay: Bay, settings: XSettings) -> XLaunchers:
    """Returns the launchers of an X-engine. Raises UsageError when the settings are not a problem of the kernels."""
    kernels, backend = bay.kernels, bay.backend
    if isinstance(backend, HostBackend) and kernels.uses_numpy:
        line = f"correlation of {settings.n_antennas} antennas: NumPy; as always on host"
        kernels.decided(("correlation", settings), lambda: (None, line))
        correlate = NumpyCorrelate(backend, settings)
        return XLaunchers(correlate, UsedBatches(), NumpyAccumulate(), UsedBatches(), 1)
    n_slices = slices_of(settings, kernels, backend.device.kind)
    return XLaunchers(
        *kernels.launcher("correlate", **correlate_fields(settings, n_slices)),
        *kernels.launcher("accumulate", **accumulate_fields(settings, n_slices)),
        n_slices,
    )
