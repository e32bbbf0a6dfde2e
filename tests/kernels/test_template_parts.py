"""Templates in parts: each compiles with nothing but what its head says that it needs, and the head names all of it.

The head of a part, such as

    // Needs     part.cuh (Part, part_at), lib/vector.cuh (ceil_div)
    // Provides  Output: part, store

names files, and in parentheses the names that it takes from each. Constants of the definition are there for all parts.
"""

import re
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import pytest

from autotune import Config, Kernel, TrialFailure
from autotune.core.library import library_path
from autotune.devices import find_device
from autotune.rendering.render import _environment, render
from autotune.runtime import nvrtc

from .test_beamform import GOLDENS as BEAMFORM
from .test_beamform import KERNEL as BEAMFORM_KERNEL
from .test_channelise import GOLDENS as CHANNELISE
from .test_channelise import KERNEL as CHANNELISE_KERNEL
from .test_correlate import GOLDENS as CORRELATE
from .test_correlate import KERNEL as CORRELATE_KERNEL
from .test_ddc_int8 import MUTATED
from .test_ddc_tensor import KERNEL as DDC_KERNEL
from .test_ddc_tensor import SHORT, TENSOR
from .test_ddc_wgmma import CHAINED, CHAINS, WGMMA

LIB = library_path() / "lib"
MISSING = r"no arguments to|not (been )?declared|not name a t|not a template|is undefined|has no member|expected"
KEYWORDS = "return|else|case|const|constexpr|static|inline|explicit|typedef|typename|volatile|extern|new|goto|__\\w+"


@dataclass(frozen=True)
class Head:
    needs: dict[str, tuple[str, ...]]  # names by file
    provides: str


def text_of(folder: str, file: str) -> str:
    return (library_path() / ("" if "/" in file else folder) / file).read_text()


def head_of(text: str) -> Head | None:
    """What a head says; None without one."""
    found = re.search(r"^// Needs ((?:.*\n//  )*.*)\n// Provides ((?:.*\n//  )*.*)", text, re.MULTILINE)
    if found is None:
        return None
    needs = re.findall(r"((?:lib/)?\w+\.cuh)(?:\s*\(([^)]*)\))?", found[1].replace("\n//", ""))
    return Head({file: tuple(re.findall(r"\w+", names)) for file, names in needs}, found[2])


@dataclass(frozen=True)
class Family:
    """The parts of one template, and variants that have them: by a part of the file's name, or else ``""``."""

    kernel: Kernel[Any]
    folder: str  # below templates
    variants: dict[str, tuple[Any, Any]]
    before: dict[str, str] = field(default_factory=dict)  # what a file of the library takes from the kernel's own file


FAMILIES = (
    Family(
        BEAMFORM_KERNEL,
        "beamform",
        {"operands": BEAMFORM["planes"], "tensor": BEAMFORM["half"], "": BEAMFORM["staged"]},
    ),
    Family(
        CHANNELISE_KERNEL,
        "channelise",
        {"kernel_columns": CHANNELISE["two"], "kernel_rows": CHANNELISE["two"], "": CHANNELISE["default"]},
    ),
    Family(
        CORRELATE_KERNEL,
        "correlate",
        {
            "wgmma_convert": CORRELATE["wgmma_nibbles"],
            "wgmma": CORRELATE["wgmma_clusters"],
            "pair_product": CORRELATE["pairs"],
            "": CORRELATE["nibbles"],
        },
    ),
    Family(
        DDC_KERNEL,
        "ddc/tensor",
        {
            "bytes": MUTATED["two"],
            "fields": MUTATED["fields"],
            "unrolled": (SHORT, WGMMA),
            "sync": (SHORT, TENSOR),
            "fragments": (SHORT, TENSOR),
            "": (CHAINED, CHAINS),
        },
        {"lib/wgmma.cuh": 'typedef {{ "int" if shape.takes_bytes else "float" }} Sum;\n'},
    ),
)


@dataclass(frozen=True)
class Part:
    family: Family
    file: str

    def __str__(self) -> str:
        return f"{self.family.folder}/{self.file}"

    @property
    def text(self) -> str:
        return text_of(self.family.folder, self.file)

    @property
    def looked_up(self) -> list[str]:
        """The files that it needs, but for those whose functions ddc calls with its parameters' constants alone."""
        head = head_of(self.text)
        return [file for file in head.needs if file not in ("lib/wgmma.cuh", "lib/vector.cuh")] if head else []

    @property
    def variant(self) -> tuple[Any, Config]:
        problem, config = next(v for name, v in self.family.variants.items() if name in self.file)
        return problem, Config(config)


PARTS = [
    Part(family, path.name)
    for family in FAMILIES
    for path in sorted((library_path() / family.folder).glob("*.cuh"))
    if family.folder != "ddc/tensor" or not path.name.startswith("kernel_")  # those include the others themselves
]
each_part = pytest.mark.parametrize("part", PARTS, ids=str)


# ---------------------------------------------------------------------- heads
def code_of(text: str) -> str:
    """C++ without comments, strings, lines of the preprocessor and what Jinja fills in."""
    text = re.sub(r"\{%.*?%\}|\{#.*?#\}", "", re.sub(r"\{\{.*?\}\}", "0", text), flags=re.DOTALL)
    text = re.sub(r'//.*|"(?:\\.|[^"\\\n])*"', "", text)
    return re.sub(r"^\s*#.*$", "", text, flags=re.MULTILINE)


def names_in(text: str) -> set[str]:
    """The names that a file declares outside of all braces."""
    outside, depth = "", 0
    for character in code_of(text):
        depth += (character == "{") - (character == "}")
        outside += character if depth == 0 and character != "}" else ";" if character == "}" and depth == 0 else ""
    names: set[str] = set()
    for statement in re.sub(r"template <[^;{]*?>\n", "", outside).split(";"):
        statement = re.sub(r"__(launch_bounds|cluster_dims|align)__\([^)]*\)|alignas\([^)]*\)", "", statement)
        if "__device__" in statement or "__global__" in statement:
            names |= set(re.findall(r"(\w+)\(", statement)[:1])
        elif found := re.search(
            r"\b(?:struct|class)\s+(\w+)|\busing (\w+)|\btypedef\b.*?(\w+)(?:\[[^\]]*\])*$", statement
        ):
            names |= set(filter(None, found.groups()))
        elif "const" in statement:
            names |= set(re.findall(r"(\w+)(?:\[\w*\])*\s*=(?!=)", statement))
    head = head_of(text)
    return names | (set(re.findall(r"\w+", head.provides)) if head and "{{ name }}" in text else set())


@cache
def names_of(folder: str) -> dict[str, set[str]]:
    """What each part of a folder, and each file of the library, declares."""
    siblings = {path.name: names_in(path.read_text()) for path in (library_path() / folder).glob("*.cuh")}
    return siblings | {f"lib/{path.name}": names_in(path.read_text()) for path in LIB.glob("*.cuh")}


def findings(part: Part, text: str) -> list[str]:
    """What the head of a part says too much or too little, for a text of it."""
    head, code = head_of(text), code_of(text)
    if head is None:
        return [] if part.file == "shape.cuh" else ["it does not say what it needs, and then what it provides"]
    type_and_name = rf"\b(?!(?:{KEYWORDS})\b)[A-Za-z_][\w:]*(?:<[^<>;(){{}}]*>)?[&*]*\s+(?=[&*]*([A-Za-z_]\w*))"
    own = names_in(text) | set(re.findall(type_and_name, code))
    used = set(re.findall(r"(?<![\w.:])(?<!->)([A-Za-z_]\w*)", code)) - own
    found = []
    declared = names_of(part.family.folder)
    words = set(re.findall(r"\w+", head.provides))
    if not declared[part.file] & words:
        found.append("it provides nothing that it declares")
    named = {name for names in head.needs.values() for name in names}
    for file, names in declared.items():
        is_alternative = not head.needs.keys() & {file} and names & used <= named  # another file has the same names
        for name in sorted(names & used - set(head.needs.get(file, ()))):
            if file != part.file and not is_alternative:
                found.append(f"it uses {name} of {file}")
    for file, needed in head.needs.items():
        provided = head_of(text_of(part.family.folder, file))
        words = set(re.findall(r"\w+", provided.provides)) if provided else set(needed)
        found += [f"it does not use {name} of {file}" for name in needed if name not in used]
        found += [f"{file} does not have {name}" for name in needed if name not in declared.get(file, ())]
        found += [f"{file} does not say that it provides {name}" for name in needed if name not in words]
        found += [f"it does not say what it takes from {file}"] if not needed else []
    return found


@each_part
def test_a_head_names_all_that_a_part_uses(part: Part) -> None:
    assert findings(part, part.text) == []


@each_part
def test_a_head_without_one_of_its_names_is_found(part: Part) -> None:
    head = head_of(part.text)
    before, provides, behind = part.text.partition("// Provides")
    for file, names in head.needs.items() if head else ():
        for name in names:
            mutant = re.sub(rf"({re.escape(file)}\s*\([^)]*?)\b{name}\b", r"\1", before)
            assert mutant != before
            assert any(name in finding for finding in findings(part, mutant + provides + behind)), f"{name} of {file}"


# ---------------------------------------------------------------------- compiling
def with_needs(folder: str, file: str) -> list[str]:
    """The files that a file needs, and those that these need, each behind its own, and the file."""
    head = head_of(text_of(folder, file)) or Head({}, "")
    before = [
        name for need in sorted(head.needs, key=lambda need: "/" not in need) for name in with_needs(folder, need)
    ]
    return list(dict.fromkeys([*before, file]))


def include(family: Family, file: str) -> str:
    """The statement that includes a file, with the variables that the template gives it."""
    statement = f'{{% include "{file if "/" in file else f"{family.folder}/{file}"}" %}}\n'
    own = [family.kernel.template, *(library_path() / family.folder).glob("*.cuh")]
    given = re.compile(rf"^\{{% with .*%\}}\n{re.escape(statement)}\{{% endwith %\}}\n", re.MULTILINE)
    with_block = next((found[0] for path in own if (found := given.search(path.read_text()))), statement)
    return family.before.get(file, "") + with_block


def source_of(part: Part, without: str = "") -> str:
    """The text of a part behind the definition's constants and what it needs, and a kernel if it has none."""
    family, (problem, config) = part.family, part.variant
    constants = family.kernel.template.read_text().partition("{% include")[0]
    files = [file for file in with_needs(family.folder, part.file) if file != without]
    lines = [re.sub(r"\{% if [^%]*%\}\s*$", "", constants), *(include(family, file) for file in files)]
    if not part.file.startswith("kernel_") or part.file in ("kernel_columns.cuh", "kernel_tables.cuh"):
        lines.append(f'extern "C" __global__ void {family.kernel.name}(float* one) {{ *one = 1; }}\n')
    context = {"problem": problem.__dict__, "config": dict(config), **family.kernel.constants(problem, config)}
    return _environment(library_path(), False).from_string("\n".join(lines)).render(context)


def compile_part(part: Part, without: str = "") -> None:
    """The host's compiler looks up the names of a template where it is written, not only where it is used."""
    source, host = source_of(part, without), find_device("host")
    variant = replace(render(part.family.kernel, *part.variant), source=source, numbered=source, also=())
    host.module.compile(variant, host.device, ("plain",))


@pytest.mark.one_in(3)
@each_part
def test_a_part_compiles_with_what_it_names(part: Part) -> None:
    """Compiles by the host's compiler and by NVRTC; kernels take NVRTC a second, and are compiled whole elsewhere."""
    compile_part(part)
    if nvrtc.available() is None and not part.file.startswith("kernel_"):
        nvrtc.compile_cubin(source_of(part), part.family.kernel.name, "sm_90", ("--std=c++17",))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("part", [part for part in PARTS if part.looked_up], ids=str)
def test_a_part_does_not_compile_without_the_first_file_that_it_names(part: Part) -> None:
    with pytest.raises(TrialFailure, match=MISSING):
        compile_part(part, part.looked_up[0])
