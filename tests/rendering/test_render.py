"""Rendering: pure, named, and with line directives that vanish without a trace."""

import re

import pytest

from autotune import Config, TrialFailure
from autotune.devices import cuda
from autotune.rendering.render import render
from autotune.source.registry import all_kernels, load_kernel

from ..conftest import EXAMPLE, FAULTY

pytestmark = pytest.mark.quick

H200 = cuda.of_architecture("sm_90")


@pytest.mark.parametrize("name", [*all_kernels(), EXAMPLE, FAULTY])
def test_the_numbered_source_without_its_directives_is_the_plain_one(name: str) -> None:
    kernel = load_kernel(name)
    for problem in kernel.tuned:
        variant = render(kernel, problem, kernel.default_config(problem, H200))
        assert re.sub(r'^#line \d+ "[^"]*"\n', "", variant.numbered, flags=re.M) == variant.source
        assert variant.numbered.count("#line") >= 1


@pytest.mark.parametrize("name", [*all_kernels(), EXAMPLE])
def test_line_directives_name_the_line_of_the_template(name: str) -> None:
    """Each rendered line without a Jinja expression stands at the very line that its directive says."""
    kernel = load_kernel(name)
    problem = kernel.tuned[0]
    variant = render(kernel, problem, kernel.default_config(problem, H200))
    from autotune.core.library import library_path

    folders = [kernel.template.parent, library_path()]
    templates: dict[str, list[str]] = {}
    line, name_now, checked = 0, "", 0
    for text in variant.numbered.splitlines()[1:]:
        if directive := re.fullmatch(r'#line (\d+) "(.*)"', text):
            line, name_now = int(directive[1]), directive[2]
            if name_now not in templates:
                path = next(f / name_now for f in folders if (f / name_now).is_file())
                templates[name_now] = path.read_text().splitlines()
            continue
        original = templates[name_now][line - 1]
        if "{{" not in original and "{%" not in original and "{#" not in original:
            assert text == original, (name_now, line)
            checked += 1
        line += 1
    assert checked > 20


def test_rendering_twice_gives_the_same_text_and_key() -> None:
    kernel = load_kernel(EXAMPLE)
    problem, config = kernel.tuned[0], Config(kernel.default)
    assert render(kernel, problem, config) == render(kernel, problem, config)
    other = render(kernel, problem, Config({**kernel.default, "UNROLL": 4}))
    assert other.key != render(kernel, problem, config).key


def test_runtime_fields_do_not_enter_the_source() -> None:
    kernel = load_kernel(EXAMPLE)
    a, b = kernel.problem({"n_chan": 1}), kernel.problem({"n_chan": 1000})
    config = Config(kernel.default)
    assert render(kernel, a, config).key == render(kernel, b, config).key


@pytest.mark.parametrize(
    "arguments", [("voltage", "power", "n_chan"), ("n_chan", "power", "voltage"), ("power", "n_chan")]
)
def test_arguments_in_another_order_than_the_signature_are_refused(
    monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    kernel = load_kernel(EXAMPLE)
    monkeypatch.setattr(type(kernel), "arguments", arguments)
    with pytest.raises(TrialFailure) as failure:
        render(kernel, kernel.tuned[0], Config(kernel.default))
    assert failure.value.status == "definition_failed"
    said = rf"detect\.py:\d+: detect has arguments = \({', '.join(arguments)}\), but detect\(\) in detect\.cu\.j2 takes"
    assert re.search(rf"{said} \(power, voltage, n_chan\)", failure.value.message)


def test_arguments_that_the_signature_names_otherwise_are_rendered(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = load_kernel(EXAMPLE)
    monkeypatch.setattr(type(kernel), "arguments", ("power", "voltage", "n"))
    assert render(kernel, kernel.tuned[0], Config(kernel.default)).kernel == "detect"


def test_an_unknown_name_in_a_template_is_told_with_file_and_line() -> None:
    kernel = load_kernel(FAULTY)
    with pytest.raises(TrialFailure) as failure:
        render(kernel, kernel.tuned[0], Config(FAULT="template_error"))
    assert failure.value.status == "render_failed"
    assert re.search(r"faulty\.cu\.j2:\d+: .*NOTHING.* config \(with FAULT, WGS\)", failure.value.message)
