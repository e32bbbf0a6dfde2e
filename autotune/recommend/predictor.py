"""Renders the best candidate for a problem without a record, and makes sure that it compiles.

Answers are kept in the user's cache, so that the second start of a program need not find them again.

If a configuration does not compile, spills many registers, needs more shared memory than the device has, or (if
verification is requested) is wrong at an edge size, the next candidate replaces it.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from importlib.util import find_spec
from threading import RLock

from ..core.config import Config
from ..core.definition import Device, Kernel, Launch, baked_values, runtime_fields
from ..core.errors import TrialFailure, UsageError, one_line
from ..core.kept import keep, make_folder, take
from ..core.launch import function_named
from ..core.problem import Problem
from ..core.schema import Unsound, dataclass_of, parse
from ..runtime import gpu, nvrtc
from ..runtime.edge_check import check_edges
from ..runtime.lookup import DEFAULT, FAR, Prediction, refusal
from ..runtime.tune_once import Attempt
from ..runtime.wisdom import Loss
from .candidates import RULE, Candidate, N, candidates, scores
from .distance import apart
from .experience import Experience

JINJA = "jinja2>=3.1"
NO_JINJA = f'a config for this problem can be rendered with Jinja2, which is missing: pip install "{JINJA}"'
FOLDER = "predictions"  # the user's cache has it
AHEAD = "predicted and rendered when the package was written"
LITTLE = 500  # bytes that a thread may spill: the fastest recorded configs of channelise spill up to 464
Text = Callable[[], tuple[str, str]]  # returns (key, source)
_as_prediction = dataclass_of(Prediction)


@dataclass(frozen=True)
class Predictor:
    """Implements ``runtime.lookup.Predicting``, and keeps its rendered sources.

    Args:
        experiences: returns the experiences, by kernel.
        ahead: returns configurations that were rendered in advance, each with its text, for (kernel, problem, device).
        identity: returns a digest of everything but the compiler that determines answers, which are then kept.
        verifies: whether predictions are checked at edge sizes on the current GPU.
    """

    experiences: Callable[[], Mapping[str, Experience]]
    ahead: Callable[[str, Problem, Device], Iterable[tuple[Config, Text]]] = lambda kernel, problem, device: ()
    identity: Callable[[], str] = lambda: ""
    verifies: bool = False
    _sources: dict[str, Text] = field(default_factory=dict)
    _predictions: dict[tuple[object, ...], list[tuple[Problem, Prediction]]] = field(default_factory=dict)
    _lock: RLock = field(default_factory=RLock)

    def verifying(self) -> "Predictor":
        """Returns a predictor that checks its predictions."""
        return replace(self, verifies=True, _predictions={})

    def source(self, key: str) -> str | None:
        """Returns the source of one of this predictor's predictions, or None."""
        return self._sources[key]()[1] if key in self._sources else None

    def rendered(self, kernel: Kernel[Problem], problem: Problem, config: Config) -> str:
        """Renders a config and keeps its source, whose key it returns. Raises TrialFailure if it does not render."""
        text = partial(_text, kernel, problem, config)
        self._sources[key := text()[0]] = text
        return key

    def predicted(self, kernel: Kernel[Problem], problem: Problem, device: Device) -> Prediction | str:
        """Returns the first of ``candidates`` that is usable, or one line that says why there is none.

        A prediction is reused for all runtime sizes within FAR octaves.
        """
        place = kernel.name, device, tuple(baked_values(problem).items())
        with self._lock:
            for at, known in self._predictions.get(place, ()):
                if apart(_sizes(at), _sizes(problem)) <= FAR and refusal(kernel, problem, known.config, device) is None:
                    return known
            answer = self._predict(kernel, problem, device)
            if not isinstance(answer, str):
                self._predictions.setdefault(place, []).append((problem, answer))
            return answer

    def default(self, kernel: Kernel[Problem], problem: Problem, device: Device) -> Prediction | str:
        """Returns the kernel's own default, rendered, or one line that says why there is none."""

        def rule() -> list[Candidate]:
            config = kernel.default_config(problem, device)
            return [Candidate(config, DEFAULT, RULE, 0.0, self.loss(kernel, problem, device, DEFAULT, config))]

        return self._rendered(rule, kernel, problem, device)

    def loss(self, kernel: Kernel[Problem], problem: Problem, device: Device, tier: str, config: Config) -> Loss | None:
        """Returns what choices like this one lose at problems that were left out; None: unknown."""
        experience = self._by_kernel.get(kernel.name)
        if experience is None:
            return None
        return experience.loss(device, tier, float(scores(experience, kernel, problem, device, [config])[0][0]))

    def candidates(
        self, kernel: Kernel[Problem], problem: Problem, device: Device, n: int = N
    ) -> tuple[Candidate, ...]:
        """Returns ``candidates`` from what was recorded on any device; (): nothing was.

        Raises UsageError if no configuration is allowed.
        """
        experience = self._by_kernel.get(kernel.name)
        return () if experience is None else candidates(experience, kernel, problem, device, n)

    def contenders(self, kernel: Kernel[Problem], problem: Problem, device: Device, n: int) -> tuple[Attempt, ...]:
        """Returns up to ``n`` candidates that render and that the device allows, to be tried at a first use.

        Raises UsageError if no configuration is allowed.
        """
        found: list[Attempt] = []
        for one in self.candidates(kernel, problem, device, 2 * n):
            if len(found) < n and refusal(kernel, problem, one.config, device) is None:
                with suppress(TrialFailure):
                    found.append(Attempt(one.config, one.tier, _text(kernel, problem, one.config)[0]))
        return tuple(found)

    # ------------------------------------------------------------------ parts
    @cached_property
    def _by_kernel(self) -> Mapping[str, Experience]:
        return self.experiences()

    def _predict(self, kernel: Kernel[Problem], problem: Problem, device: Device) -> Prediction | str:
        ahead = ((Prediction(config, "", AHEAD), text) for config, text in self.ahead(kernel.name, problem, device))
        answer = self._first(ahead, kernel, problem, device)
        has_jinja, path = find_spec("jinja2") is not None, None
        if not isinstance(answer, str) or (answer and not has_jinja):
            return answer
        with suppress(OSError, UsageError, Unsound):  # a cache may be of no use: no home, no space, others may write it
            if has_jinja and not self.verifies and (identity := self.identity()):
                compiler = device.kind != "cuda" or nvrtc.available() or nvrtc.described(device.arch)
                asked = json.dumps([identity, kernel.name, asdict(problem), asdict(device), compiler], default=str)
                name = f"{kernel.name}-{hashlib.sha256(asked.encode()).hexdigest()[:32]}.prediction"
                path = make_folder(gpu.cache_folder().parent, FOLDER) / name
            if path is not None and (stored := take(path)) is not None:
                kept: Prediction = _as_prediction(parse(stored[0]))
                config = kernel.space.parse(kept.config)  # it is in the space, since values end up in code
                self._sources[kept.source_key] = partial(_text, kernel, problem, config)
                return replace(kept, config=config)
        experience = self._by_kernel.get(kernel.name)
        if experience is None or not experience.knows(device):
            where = f"a GPU of {device.arch}" if device.kind == "cuda" else device.name
            return f"no problem of {kernel.name} was recorded on {where}"
        answer = self._rendered(partial(self.candidates, kernel, problem, device), kernel, problem, device)
        with suppress(OSError):
            if path is not None and not isinstance(answer, str):
                keep(path, json.dumps(asdict(answer), default=dict).encode(), {})
        return answer

    def _rendered(
        self, find: Callable[[], Iterable[Candidate]], kernel: Kernel[Problem], problem: Problem, device: Device
    ) -> Prediction | str:
        """Returns the first usable one of the candidates, rendered, or why there is none."""
        if find_spec("jinja2") is None:
            return NO_JINJA
        try:
            asked = [Prediction(one.config, "", one.why, tier=one.tier, left_out=one.loss) for one in find()]
        except (UsageError, TrialFailure) as error:
            return one_line(str(error))
        texts = ((one, partial(_text, kernel, problem, one.config)) for one in asked)
        return self._first(texts, kernel, problem, device)

    def _first(
        self, asked: Iterable[tuple[Prediction, Text]], kernel: Kernel[Problem], problem: Problem, device: Device
    ) -> Prediction | str:
        """Returns the first usable one, or why there is none; if all spill, the first that does."""
        refused, spilling = list[str](), list[Prediction]()
        for one, text in asked:
            try:
                if (reason := refusal(kernel, problem, one.config, device)) is not None:
                    raise UsageError(reason)
                key, source = text()
                built, spills = _built(kernel, kernel.launch(problem, one.config), source, device)
                if self.verifies:
                    checked = check_edges(kernel, problem, one.config, source, device, gpu.current())
                    built += f", right at {len(checked)} edge sizes"
            except (TrialFailure, UsageError) as error:
                refused.append(f"{one.config} gives way: {one_line(str(error))}")
                continue
            why = "; ".join([f"{one.why}, {built}", *refused])
            found, self._sources[key] = replace(one, source_key=key, why=why, verified=self.verifies), text
            if not spills:
                return found
            spilling.append(found)
            refused.append(f"{one.config} gives way: it {built}")
        if spilling:
            return replace(spilling[0], why=f"{spilling[0].why}; so do all others that were tried")
        return "; ".join(refused)


def _text(kernel: Kernel[Problem], problem: Problem, config: Config) -> tuple[str, str]:
    """Returns the key and the source of a config. Raises TrialFailure if it does not render."""
    from ..rendering.render import render  # it imports Jinja2, which a package may lack

    variant = render(kernel, problem, config, numbered=False)
    return variant.key, variant.source


def _built(kernel: Kernel[Problem], launch: Launch, source: str, device: Device) -> tuple[str, bool]:
    """Returns the compiler's figures in words, and if many registers spill. Raises UsageError if it cannot run."""
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
