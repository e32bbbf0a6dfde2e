"""Chooses the configurations that an engine runs, and says of each where it comes from."""

from collections.abc import Callable
from typing import Any

from ..source.registry import load_kernel
from .backend import Backend, Launcher

Tell = Callable[[str], None]


class Kernels:
    """Gives launchers of kernels by name. What is known of a choice is told once, when it is made."""

    def __init__(self, backend: Backend, tell: Tell) -> None:
        self._backend, self._tell = backend, tell

    def launcher(self, name: str, **fields: Any) -> tuple[Launcher, Any]:
        """Returns a launcher for the baked fields, loaded, and the problem of the largest sizes.

        Raises:
            UsageError: when no configuration is allowed for them.
        """
        kernel = load_kernel(name)
        problem = kernel.problem(self._smallest(name, fields))
        config = kernel.default_config(problem, self._backend.device)
        self._tell(f"{name}: {config}, the default; expected slowdown: unknown")
        return self._backend.launcher(kernel, problem, config), problem

    @staticmethod
    def _smallest(name: str, fields: dict[str, Any]) -> dict[str, Any]:
        if name == "pfb_fir":
            step = fields["n_channels"] * (1 if fields["sample_bits"] == 64 else 2)
            return {"n_samples": (fields["n_spectra"] + fields["taps"] - 1) * step, **fields}
        return fields
