"""Predicts a configuration for a problem without a record, renders it, and makes sure that it compiles.

If a configuration does not compile, spills many registers, needs more shared memory than the device has, or (if
verification is requested) is wrong at an edge size, the next one of the ranking replaces it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from importlib.util import find_spec
from threading import RLock

from ..core.config import Config
from ..core.definition import Device, Kernel, Launch, baked_values, runtime_fields
from ..core.errors import TrialFailure, UsageError, one_line
from ..core.launch import function_named
from ..core.problem import Problem, named_fields
from ..runtime import gpu, nvrtc
from ..runtime.edge_check import check_edges
from ..runtime.lookup import FAR, Prediction, refusal
from ..transfer.experience import DEFAULT, MODEL, Experience, candidates
from ..transfer.neighbour import apart
from .kept_ranking import KeptRankings

HOW = {MODEL: "expected to be the fastest by {n} recorded problems near it", DEFAULT: "where this kernel starts"}
NEAREST = "the winner of the nearest recorded problem"
JINJA = "jinja2>=3.1"
LITTLE = 500  # bytes that a thread may spill: the fastest recorded configs of channelise spill up to 464
Text = Callable[[], tuple[str, str]]  # returns (key, source)


@dataclass(frozen=True)
class Predictor:
    """Implements ``runtime.lookup.Predicting``, and keeps its rendered sources.

    Args:
        experiences: returns the experiences, by kernel.
        ahead: returns configurations that were rendered in advance, each with its text, for (kernel, problem, device).
        identity: returns a digest of everything that determines rankings, for the user's cache; "": rankings are not
            cached.
        verifies: whether predictions are checked at edge sizes on the current GPU.
    """

    experiences: Callable[[], Mapping[str, Experience]]
    ahead: Callable[[str, Problem, Device], Iterable[tuple[Config, Text]]] = lambda kernel, problem, device: ()
    identity: Callable[[], str] = lambda: ""
    verifies: bool = False
    _sources: dict[str, str] = field(default_factory=dict)
    _predictions: dict[tuple[object, ...], list[tuple[Problem, Prediction]]] = field(default_factory=dict)
    _lock: RLock = field(default_factory=RLock)

    def verifying(self) -> "Predictor":
        """Returns a predictor that checks its predictions."""
        return replace(self, verifies=True, _predictions={})

    def source(self, key: str) -> str | None:
        """Returns the source of one of this predictor's predictions, or None."""
        return self._sources.get(key)

    def rendered(self, kernel: Kernel[Problem], problem: Problem, config: Config) -> str:
        """Renders a config and keeps its source, whose key it returns. Raises TrialFailure if it does not render."""
        from ..rendering.render import render

        variant = render(kernel, problem, config)
        self._sources[variant.key] = variant.source
        return variant.key

    def predicted(self, kernel: Kernel[Problem], problem: Problem, device: Device) -> Prediction | str:
        """Returns the configuration that recorded problems predict to be the fastest, or one line that says why not.

        A prediction is reused for all runtime sizes within FAR octaves.
        """
        place = kernel.name, device, tuple(baked_values(problem).items())
        with self._lock:
            for at, prediction in self._predictions.get(place, ()):
                if (
                    apart(_sizes(at), _sizes(problem)) <= FAR
                    and refusal(kernel, problem, prediction.config, device) is None
                ):
                    return prediction
            answer = self._predict(kernel, problem, device)
            if not isinstance(answer, str):
                self._predictions.setdefault(place, []).append((problem, answer))
            return answer

    def default(self, kernel: Kernel[Problem], problem: Problem, device: Device) -> Prediction | str:
        """Returns the kernel's own default, rendered, or one line that says why there is none."""
        try:
            config = kernel.default_config(problem, device)
        except (UsageError, TrialFailure) as error:
            return one_line(str(error))
        return self._first(self._rendered_texts([config], kernel, problem), kernel, problem, device, HOW[DEFAULT])

    def ranking(self, kernel: Kernel[Problem], problem: Problem, device: Device) -> Iterable[Config]:
        """Returns configurations in the order of their expected times, the fastest first.

        (): no problem was recorded on a GPU of this architecture. Raises UsageError if no configuration is allowed.
        """
        experience = self._experience_by_kernel.get(kernel.name)
        if experience is None or not experience.knows(device):
            return ()
        if experience.method == DEFAULT:  # it comes first, so the model is often not needed
            return candidates(experience, kernel, problem, device)
        identity = self.identity()
        kept = KeptRankings(identity) if identity else None
        if kept is not None and (ranking := kept.get(kernel, problem, device)):
            return ranking  # their values end up in code, so ``get`` has checked that they are in the space
        configs = tuple(candidates(experience, kernel, problem, device))
        if kept is not None:
            kept.put(kernel, problem, device, configs)
        return configs

    # ------------------------------------------------------------------ parts
    @cached_property
    def _experience_by_kernel(self) -> Mapping[str, Experience]:
        return self.experiences()

    def _predict(self, kernel: Kernel[Problem], problem: Problem, device: Device) -> Prediction | str:
        ahead = list(self.ahead(kernel.name, problem, device))
        if ahead:
            answer = self._first(ahead, kernel, problem, device, "predicted and rendered when the package was written")
            if not isinstance(answer, str):
                return answer
        if find_spec("jinja2") is None:
            return self._no_jinja
        experience = self._experience_by_kernel.get(kernel.name)
        if experience is None or not experience.knows(device):
            where = f"a GPU of {device.arch}" if device.kind == "cuda" else device.name
            return f"no problem of {kernel.name} was recorded on {where}"
        try:
            configs = self.ranking(kernel, problem, device)
        except (UsageError, TrialFailure) as error:
            return one_line(str(error))
        why = HOW.get(experience.method, NEAREST).format(n=len(experience.near(named_fields(problem), device)))
        return self._first(self._rendered_texts(configs, kernel, problem), kernel, problem, device, why)

    @property
    def _no_jinja(self) -> str:
        return f'a config for this problem can be rendered with Jinja2, which is missing: pip install "{JINJA}"'

    def _rendered_texts(
        self, configs: Iterable[Config], kernel: Kernel[Problem], problem: Problem
    ) -> Iterator[tuple[Config, Text]]:
        if find_spec("jinja2") is None:
            return
        from ..rendering.render import render

        def text(config: Config) -> tuple[str, str]:
            variant = render(kernel, problem, config)
            return variant.key, variant.source

        for config in configs:
            yield config, partial(text, config)

    def _first(
        self,
        configs: Iterable[tuple[Config, Text]],
        kernel: Kernel[Problem],
        problem: Problem,
        device: Device,
        why: str,
    ) -> Prediction | str:
        """Returns the first usable one of ``configs``, or why there is none; if all spill, the first that does."""
        refused: list[str] = []
        spilling: list[tuple[Prediction, str]] = []
        try:
            for config, text in configs:
                try:
                    if (reason := refusal(kernel, problem, config, device)) is not None:
                        raise UsageError(reason)
                    key, source = text()
                    built, spills = _built(kernel, kernel.launch(problem, config), source, device)
                    if self.verifies:
                        checked = check_edges(kernel, problem, config, source, device, gpu.current())
                        built += f", right at {len(checked)} edge sizes"
                except (TrialFailure, UsageError) as error:
                    refused.append(f"{config} gives way: {one_line(str(error))}")
                    continue
                prediction = Prediction(config, key, "; ".join([f"{why}, {built}", *refused]), self.verifies)
                if spills:
                    spilling.append((prediction, source))
                    refused.append(f"{config} gives way: it {built}")
                    continue
                self._sources[key] = source
                return prediction
        except UsageError as error:  # no further config is allowed
            refused.append(one_line(str(error)))
        if spilling:
            prediction, self._sources[spilling[0][0].source_key] = spilling[0]
            return replace(prediction, why=f"{prediction.why}; so do all others that were tried")
        return "; ".join(refused) or self._no_jinja


def _built(kernel: Kernel[Problem], launch: Launch, source: str, device: Device) -> tuple[str, bool]:
    """Compiles a source. Returns the compiler's figures in words, and whether it spills many registers.

    Raises:
        UsageError: when the source does not compile, or needs more shared memory than the device has.
    """
    if device.kind != "cuda":
        return f"not compiled for {device.name}", False
    if nvrtc.available() is not None:
        return "not compiled: there is no NVRTC here", False
    own = function_named(kernel.name, launch)
    names = dict.fromkeys((own, *(step.function or own for step in launch.steps)))
    cubin = gpu.cubin_of(source, own, device.arch, tuple(names)[1:])
    n_spilled = 0
    for step in launch.steps:
        figures = cubin.of(step.function or own)
        n_spilled = max(n_spilled, figures.spill_bytes or 0)
        n_shared = step.shared_bytes + (figures.shared_bytes or 0)
        if n_shared > device.max_shared_bytes:
            raise UsageError(f"{step.function or own} needs {n_shared} bytes of shared memory, {device.name} has fewer")
    if n_spilled > LITTLE:
        return f"spills {n_spilled} bytes of registers", True
    spills = f"spills {n_spilled} bytes" if n_spilled else "no spills"
    return f"compiled for {device.arch}: {cubin.registers} registers, {spills}", False


def _sizes(problem: Problem) -> dict[str, object]:
    return {name: getattr(problem, name) for name in runtime_fields(type(problem))}
