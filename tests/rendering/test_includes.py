"""What a template includes in quotes is a part of its source: of the key, of the digest, and of a package."""

import re
import shutil
from pathlib import Path

import pytest

from autotune import Config, TrialFailure
from autotune.records.folder import find_sweeps
from autotune.rendering.includes import with_includes
from autotune.rendering.render import Variant, render
from autotune.source.registry import load_kernel

from ..commands import autotune
from ..conftest import EXAMPLE

SUM = "sum += v.x * v.x + v.y * v.y"
LINE = re.compile(r'^#line \d+ "[^"]*"\n', re.MULTILINE)


def example(folder: Path, directive: str = '#include "power.h"', part: str = SUM + ";\n") -> Path:
    """The example's definition, whose template includes the line with the arithmetic."""
    folder.mkdir()
    definition = Path(shutil.copy(EXAMPLE, folder))
    text = Path(EXAMPLE).with_name("detect.cu.j2").read_text()
    assert f"{SUM};" in text
    definition.with_name("detect.cu.j2").write_text(text.replace(f"{SUM};", f"\n{directive}\n"))
    definition.with_name("power.h").write_text(part)
    return definition


def rendered(definition: Path) -> Variant:
    kernel = load_kernel(str(definition))
    return render(kernel, kernel.tuned[0], Config(kernel.default))


def test_a_file_beside_the_template_is_a_part_of_the_source_and_its_key(tmp_path: Path) -> None:
    definition = example(tmp_path / "kernel", part=f"// in this order\n{SUM};\n")
    before = rendered(definition)
    assert f"// in this order\n{SUM};" in before.source and "#include" not in before.source
    assert LINE.sub("", before.numbered) == before.source
    n = definition.with_name("detect.cu.j2").read_text().split("\n").index('#include "power.h"') + 1
    assert f'#line 1 "power.h"\n// in this order\n{SUM};\n\n#line {n + 1} "detect.cu.j2"\n' in before.numbered
    definition.with_name("power.h").write_text("sum += v.y * v.y + v.x * v.x;\n")
    assert rendered(definition).key != before.key


@pytest.mark.parametrize(
    ("directive", "why"),
    [
        ('#include "there_is_none.h"', "there is no such file beside the template"),
        ("#include POWER", 'may #include "file" and #include <header>'),
        ('# include_next "power.h"', 'may #include "file" and #include <header>'),
        ("#include <../power.h>", "name a file in quotes"),
        ("#include </usr/include/power.h>", "name a file in quotes"),
        ('/* so */ #include "there_is_none.h"', "there is no such file beside the template"),
        ('/* so\n*/ #include "there_is_none.h"', "there is no such file beside the template"),
        ('%:include "there_is_none.h"', "there is no such file beside the template"),
    ],
)
def test_what_no_text_can_be_found_of_is_refused_with_its_line(directive: str, why: str, tmp_path: Path) -> None:
    definition = example(tmp_path / "kernel", directive)
    with pytest.raises(TrialFailure) as failure:
        rendered(definition)
    assert failure.value.status == "render_failed" and why in failure.value.message
    assert re.match(r"detect\.cu\.j2:\d+: ", failure.value.message) and "\n" not in failure.value.message


def test_includes_in_comments_and_texts_are_none() -> None:
    text = '// #include "a.h"\n/*\n#include "a.h"\n*/\nconst char* t = "/*";\n#include <cuda_fp16.h>\n'
    assert with_includes(text, "x", (), numbered=True) == text


@pytest.mark.parametrize("header", ["cuda_fp16.h", "cuComplex.h", "cub/cub.cuh", "stdint.h", "cmath"])
def test_a_header_of_cudas_or_cs_in_quotes_is_looked_for_where_those_are_and_nowhere_else(header: str) -> None:
    text = f'#include "{header}"\nint a;\n'
    assert with_includes(text, "x", (), numbered=False) == f"#include <{header}>\nint a;\n"


def test_files_that_include_each_other(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "a.h").write_text('#pragma once\n#include "b.h"\nint a;\n')
    (tmp_path / "parts" / "b.h").write_text("#pragma once\nint b;\n")
    text = '#include "parts/a.h"\n#include "parts/a.h"\n#include "parts/b.h"\n'
    found = with_includes(text, "x", (tmp_path,), numbered=False)
    assert found.split() == ["int", "b;", "int", "a;"]
    (tmp_path / "loop.h").write_text('#include "loop.h"\n')
    with pytest.raises(TrialFailure, match=r"loop\.h:1: .*more than 32 files include each other"):
        with_includes('#include "loop.h"\n', "x", (tmp_path,), numbered=False)
    (tmp_path / "noise.h").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(TrialFailure, match=r'x:1: #include "noise\.h": noise\.h is not text'):
        with_includes('#include "noise.h"\n', "x", (tmp_path,), numbered=False)


@pytest.mark.thorough
def test_times_do_not_outlive_an_included_file_and_packages_have_it(tmp_path: Path) -> None:
    definition, results = example(tmp_path / "kernel"), tmp_path / "results"
    words = ["--device", "host", "--only", "BLOCK_C=32", "--only", "BLOCK_T=4", "--results", str(results)]

    def swept() -> int:
        done = autotune("sweep", "--kernel", str(definition), *words)
        assert done.returncode == 0, done.stderr
        (folder,) = find_sweeps(results)
        return len(folder.trials())

    assert (swept(), swept()) == (2, 2)
    done = autotune("emit", str(results), "--kernel", str(definition), "--out", str(tmp_path / "tuned"))
    assert done.returncode == 0, done.stderr
    sources = [path.read_text() for path in (tmp_path / "tuned" / "sources").iterdir()]
    assert sources and all(SUM in text and "#include" not in text for text in sources)
    definition.with_name("power.h").write_text("sum += v.y * v.y + v.x * v.x;\n")
    done = autotune("emit", str(results), "--kernel", str(definition), "--out", str(tmp_path / "tuned"))
    assert done.returncode == 2 and "the template of detect has changed since" in done.stderr
    assert swept() == 4
