"""ddc's tensor templates: each part compiles with nothing but what its head says that it needs."""

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest
from autotune.kernels.ddc import Ddc
from autotune.kernels.ddc.tensor import TensorGeometry

from autotune import Config, TrialFailure
from autotune.devices import find_device
from autotune.source.render import _environment, library_path, render

from .test_ddc_int8 import MUTATED
from .test_ddc_tensor import SHORT, TENSOR
from .test_ddc_wgmma import CHAINED, CHAINS, WGMMA

KERNEL = Ddc()
FOLDER = library_path() / "ddc" / "tensor"
ALWAYS = ("lib/vector.cuh",)  # has ceil_div; the problem's constants are there, too
VARIANTS: dict[str, tuple[Any, Config]] = {  # of a part, one that has it; of others, CHAINED
    "bytes": MUTATED["two"],
    "fields": MUTATED["fields"],
    "unrolled": (SHORT, WGMMA),
    "sync": (SHORT, TENSOR),
    "fragments": (SHORT, TENSOR),
}
PARTS = sorted(path.name for path in FOLDER.glob("*.cuh") if not path.name.startswith("kernel_"))


def needs_of(part: str) -> list[str]:
    """The files that the head of a part names."""
    head = re.search(r"^// Needs(.*?)^// Provides", (FOLDER / part).read_text(), re.MULTILINE | re.DOTALL)
    assert head is not None or part == "shape.cuh", f"{part} says what it needs, and then what it provides"
    return re.findall(r"(?:lib/)?\w+\.cuh", head[1]) if head else []


def with_needs(part: str) -> list[str]:
    """The files that a part needs, and those that these need, each behind its own, and the part."""
    before = [name for need in needs_of(part) if "/" not in need for name in with_needs(need)]
    libraries = [need for need in needs_of(part) if "/" in need]
    return list(dict.fromkeys([*libraries, *before, part]))


def source_of(part: str, without: str = "") -> tuple[str, str]:
    """The text of a part behind what it needs, and a kernel that does nothing; and its name."""
    name = next((name for name in VARIANTS if name in part), "")
    problem, config = VARIANTS.get(name, (CHAINED, CHAINS))
    shape = TensorGeometry(problem, config)
    s8 = shape.takes_bytes
    settings = f'element="{"s8" if s8 else "f16"}", sum="{"s32" if s8 else "f32"}", register="{"r" if s8 else "f"}"'
    settings += ", widths=(shape.columns_per_mma,), starts=true"
    wgmma = f"typedef {'int' if s8 else 'float'} Sum;\n{{% with {settings} %}}\n"
    lines = [
        f"constexpr int {field.upper()} = {{{{ problem.{field} }}}};" for field in ("taps", "decimation", "sample_bits")
    ]
    for file in dict.fromkeys([*ALWAYS, *with_needs(part)]):
        if file == without:
            continue
        include = f'{{% include "{file if "/" in file else f"ddc/tensor/{file}"}" %}}\n'
        lines.append(f"{wgmma}{include}{{% endwith %}}\n" if file == "lib/wgmma.cuh" else include)
    lines.append('extern "C" __global__ void ddc(float* baseband) { *baseband = 1; }\n')
    context = {"problem": problem, "config": config, "shape": shape}
    return _environment(library_path(), False).from_string("\n".join(lines)).render(context), name


def compile_part(part: str, without: str = "") -> None:
    text, name = source_of(part, without)
    variant = dataclasses.replace(render(KERNEL, *VARIANTS.get(name, (CHAINED, CHAINS))), source=text, numbered=text)
    host = find_device("host")
    host.module.compile(variant, host.device, ("plain",))


@pytest.mark.parametrize("part", PARTS)
def test_a_part_needs_what_it_says(part: str) -> None:
    compile_part(part)


@pytest.mark.parametrize(
    ("part", "without"), [(part, need) for part in PARTS for need in needs_of(part) if Path(need).name != "wgmma.cuh"]
)
def test_a_part_says_nothing_that_it_does_not_need(part: str, without: str) -> None:
    with pytest.raises(TrialFailure, match=r"no arguments to|not (been )?declared|not name a t|not a template"):
        compile_part(part, without)
