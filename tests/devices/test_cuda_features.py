"""The page of CUDA's features says what is so: each is compiled by NVRTC and run on host, or refused by name."""

import pytest

from ..cuda_features.features import GROUPS, HERE, KERNEL, PAGE, Feature, features, page, run


@pytest.fixture(scope="module")
def found() -> list[Feature]:
    return list(features())


def test_host_runs_each_or_names_what_it_lacks(found: list[Feature]) -> None:
    assert {f.name: f.host for f in found if f.host != "runs" and not f.host.startswith("refused: no ")} == {}


def test_nvrtc_compiles_all_but_launches_from_device_code(found: list[Feature]) -> None:
    assert [f.name for f in found if f.nvrtc != "compiles"] == ["launches"]


def test_the_page_says_so(found: list[Feature]) -> None:
    assert PAGE.read_text() == page(found), "run python -m tests.cuda_features"


@pytest.mark.gpu
@pytest.mark.parametrize("group", GROUPS)
def test_a_gpu_gives_the_same_answers(group: str) -> None:
    text = (HERE / f"{group}.cu").read_text()
    assert {name: end for name, end in run(text, KERNEL.findall(text), "cuda:0").items() if end != "runs"} == {}
