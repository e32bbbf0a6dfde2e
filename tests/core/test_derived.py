"""What is derived is what definitions say by hand, and what cannot be derived is asked for by name."""

import re
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import autotune
from autotune import Config, Kernel, Launch, Space, Tolerance, UsageError, Work, array_in, array_out, ceil_div, when
from autotune.core.definition import DefinitionError, problem_name
from autotune.core.derived import arguments_in, first_config, sizes_of
from autotune.source.registry import load_kernel

from ..conftest import DEFINITIONS, EXAMPLE

pytestmark = pytest.mark.quick

ACCUMULATE, DEQUANTIZE, DETECT = load_kernel("accumulate"), load_kernel("dequantize"), load_kernel(EXAMPLE)
INTEGRATE, CONVOLVE, SAXPY = (load_kernel(str(DEFINITIONS / f"{n}.py")) for n in ("integrate", "convolve", "saxpy"))
BY_HAND = (ACCUMULATE, DEQUANTIZE, DETECT, INTEGRATE, CONVOLVE, SAXPY)


def read_shapes(kernel: Any, problem: Any) -> dict[str, tuple[int, ...]]:
    return {name: array.shape for name, array in kernel.arrays(problem).items() if array.read}


@pytest.mark.parametrize("kernel", BY_HAND, ids=lambda kernel: kernel.name)
def test_what_is_derived_is_what_is_written_by_hand(kernel: Any) -> None:
    for problem in (*kernel.tuned, *kernel.extra_problems):
        if kernel is not CONVOLVE:  # which does not count the margin of its image
            assert Kernel.work(kernel, problem).bytes == kernel.work(problem).bytes
        small = replace(problem, **kernel.host_sizes)
        shapes = read_shapes(kernel, small)
        by_hand = {name: getattr(small, name) for name in asdict(small) if name in kernel.sizes(problem, shapes)}
        if kernel is ACCUMULATE:
            del by_hand["n_receivers"]  # n (n + 1) / 2 baselines
        assert Kernel.sizes(kernel, problem, shapes) == by_hand
    assert arguments_in(kernel.template.read_text(), kernel.name) in (kernel.arguments, None)


@pytest.mark.parametrize(
    ("kernel", "config", "shared"),
    [
        (DETECT, {}, ""),
        (INTEGRATE, {}, ""),
        (CONVOLVE, {}, ""),
        (SAXPY, {}, ""),
        (DEQUANTIZE, {}, "n_beams=1,n_freqs=1,n_times=8 n_beams=2,n_freqs=2,n_times=1032"),
        (DEQUANTIZE, {"UNROLL": 4}, "n_beams=1,n_freqs=1,n_times=8 n_beams=2,n_freqs=2,n_times=4104"),
        (ACCUMULATE, {}, "n_channels=1,n_receivers=1 n_channels=2,n_receivers=11"),
    ],
)
def test_edge_problems_are_among_those_written_by_hand(kernel: Any, config: dict[str, Any], shared: str) -> None:
    problem, chosen = kernel.tuned[0], Config({**kernel.default, **config})
    derived, by_hand = Kernel.edge_problems(kernel, problem, chosen), kernel.edge_problems(problem, chosen)
    assert len(set(derived)) == len(derived)
    both = [one for one in by_hand if one in derived]
    expected = shared.split() or by_hand
    assert len(both) == len(expected)
    assert all(problem_name(one).endswith(str(end)) for one, end in zip(both, shared.split(), strict=False))
    for one in derived:
        assert min(kernel.launch(one, chosen).grid) > 0


# ---------------------------------------------------------------------- a definition that leaves out all it can
@dataclass(frozen=True)
class Fir:
    taps: int = autotune.baked(4)
    n_out: int = autotune.runtime(1000)
    n_pols: int = autotune.runtime(2)
    scale: float = autotune.runtime(1.0)

    def __post_init__(self) -> None:
        if self.n_out < 3:
            raise ValueError("n_out is at least 3")


class Waste(Kernel[Fir]):  # with the template of ``waste``, of the same arguments
    space = Space(WGS=(32, 64), KIND=("a", "b"), DEPTH=when((3, 4), KIND="b"))
    kernel_name = "waste"

    @property
    def source_path(self) -> Path:
        return DEFINITIONS / "waste.py"

    def arrays(self, problem: Fir) -> Any:
        n_in = problem.n_out + problem.taps - 1
        rows = array_in(np.float32, problem.n_pols, n_in)
        return {"y": array_out(np.float32, problem.n_pols, problem.n_out), "x": rows}

    def launch(self, problem: Fir, config: Config) -> Launch:
        return Launch((ceil_div(problem.n_out, config.WGS), problem.n_pols, 1), (config.WGS, 1, 1))

    def work(self, problem: Fir) -> Work:
        return Work(flops=7)

    def inputs(self, problem: Fir, rng: np.random.Generator) -> dict[str, Any]:
        return {"x": rng.normal(size=self.arrays(problem)["x"].shape).astype(np.float32)}

    def reference(self, problem: Fir, **inputs: Any) -> dict[str, np.ndarray]:
        return {}

    def tolerance(self, problem: Fir) -> Tolerance:
        return Tolerance()


def test_what_is_left_out_is_filled_in() -> None:
    kernel = Waste()
    assert kernel.tuned == (Fir(),)
    assert kernel.default == {"WGS": 32, "KIND": "a"} == first_config(kernel.space)
    assert kernel.arguments == ("y", "x", "n")
    assert kernel.work(Fir()) == Work(7, 4 * 2 * (1000 + 1003))
    edges = [(p.n_out, p.n_pols) for p in kernel.edge_problems(Fir(), Config(kernel.default))]
    assert edges == [(3, 1), (33, 2), (63, 1), (3, 2)]
    shape = np.empty((5, 40), np.float32)
    assert kernel.problem_for({"taps": 11}, {"x": shape}) == Fir(11, 30, 5)
    assert kernel.problem_for({"scale": 2.0}, {"x": np.empty(40, np.float32)}).n_out == 1000  # the checks say why


def test_sizes_that_inputs_do_not_determine_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def flat(self: Any, problem: Fir) -> Any:
        return {"y": array_out(np.float32, problem.n_out), "x": array_in(np.float32, problem.n_pols * problem.n_out)}

    monkeypatch.setattr(Waste, "arrays", flat)
    x = {"x": np.empty(60, np.float32)}
    asked = (
        r"x \[60\]\) do not determine n_out, n_pols; .*problem=\{\"n_out\": 1000, \"n_pols\": 2\}\) or waste\(n_out="
    )
    with pytest.raises(UsageError, match=asked):
        Waste().problem_for({}, x)
    assert Waste().problem_for({"n_pols": 3}, x) == Fir(n_out=20, n_pols=3)
    with pytest.raises(UsageError, match="do not determine n_out;"):  # 60 is not 7 n_out
        Waste().problem_for({"n_pols": 7}, x)


@dataclass(frozen=True)
class Row:
    n: int = autotune.runtime(64)


@pytest.mark.parametrize(
    ("extent", "found"),
    [("n", 6), ("2 * n", 3), ("n // 2", None), ("n + 2", 4), ("min(n, 100)", None), ("n * n", None)],
)
def test_only_axes_that_say_the_size_are_believed(extent: str, found: int | None) -> None:
    def shapes(problem: Row) -> dict[str, tuple[int, ...]]:
        return {"x": (eval(extent, {"n": problem.n, "min": min}),)}

    assert sizes_of(shapes, Row(), ("n",), {"x": (6,)}) == ({} if found is None else {"n": found})


def test_arguments_are_read_from_signatures() -> None:
    start = 'extern "C" __global__ __launch_bounds__({{ config.WGS }})\nvoid fir('
    plain = "float* __restrict__ y, // first\n {{ type }}* x, Pair<int, 2> p, const __grid_constant__ CUtensorMap m)\n{"
    assert arguments_in(start + plain, "fir") == ("y", "x", "p")
    assert arguments_in(start + "void) {", "fir") == ()
    assert arguments_in(start + "{% if a %}float* y{% endif %}) {", "fir") is None


def test_a_definition_without_arguments_or_template_says_so(tmp_path: Path) -> None:
    (tmp_path / "detect.py").write_text(re.sub(r"\n    arguments = .*", "", Path(EXAMPLE).read_text()))
    with pytest.raises(DefinitionError, match=r"detect has no template: there is no detect\.cu\.j2 beside it"):
        load_kernel(str(tmp_path / "detect.py"))
    (tmp_path / "detect.cu.j2").write_text('extern "C" __global__ void other(float* y) {}')
    with pytest.raises(DefinitionError, match=r"template, detect\.cu\.j2, in which no function detect\(\) .* is found"):
        load_kernel(str(tmp_path / "detect.py"))
