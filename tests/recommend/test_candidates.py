"""What is recommended: in which order, with which losses, and what these are made of."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from math import exp, fsum, log, log2
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autotune import Config, Device, UsageError
from autotune.core.device import Device as AnyDevice
from autotune.core.problem import named_fields
from autotune.recommend import learning
from autotune.recommend.candidates import candidates, scores
from autotune.recommend.distance import apart
from autotune.recommend.experience import Experience, MeasuredProblem, as_json, read_experience
from autotune.recommend.learning import MOST_ROWS, OF_OTHER_KERNELS, learnt, with_losses
from autotune.recommend.model_columns import ABSENT, ModelColumns
from autotune.recommend.predictor import Predictor
from autotune.runtime.bounds import LOSS_AFTER
from autotune.source.registry import load_kernel

from ..conftest import EXAMPLE
from ..recorded import A100, DEFAULT, H100, H200, HOST, TALL, WIDE

pytestmark = pytest.mark.quick

KERNEL = load_kernel(EXAMPLE)
PROBLEM = KERNEL.problem({"n_time": 100, "n_chan": 4096})
CONFIGS = KERNEL.space.enumerate(PROBLEM, H200).configs
SIZES = [(n_time, n_chan) for n_time in (64, 90, 128, 181, 256) for n_chan in (1000, 4000, 16000, 64000)]


def law(config: Config, n_time: int) -> float:
    """Many threads are fast, and more so where there are many times; the default is half as fast as the best."""
    threads = abs(log(config.BLOCK_C * config.BLOCK_T / (1024 if n_time < 150 else 256)))
    return 1.0 + 0.4 * threads + (0.05 if config.UNROLL == 1 else 0.0)


def measured(n_time: int, n_chan: int, device: Device = H200, configs: Iterable[Config] = CONFIGS) -> MeasuredProblem:
    times = {config: law(config, n_time) for config in configs}
    best = min(times.values())
    pairs = sorted(((config, time / best) for config, time in times.items()), key=lambda pair: pair[1])
    fields = asdict(KERNEL.problem({"n_time": n_time, "n_chan": n_chan}))
    return MeasuredProblem(fields, device, tuple(pairs), 1e-5, len(CONFIGS))


EVERYTHING = [measured(*size) for size in SIZES]
EXPERIENCE = with_losses(KERNEL, EVERYTHING)


def test_the_first_is_nearly_the_best_where_nothing_was_recorded() -> None:
    for n_time in (75, 220):
        problem = KERNEL.problem({"n_time": n_time, "n_chan": 8000})
        found = candidates(EXPERIENCE, KERNEL, problem, H200)
        best = min(law(config, n_time) for config in CONFIGS)
        assert law(found[0].config, n_time) / best - 1 <= found[0].bound < 0.2
        assert len(found) == len({one.config for one in found}) == 8


def test_the_rule_a_winner_and_unlike_trees_are_among_the_first_four() -> None:
    first = candidates(EXPERIENCE, KERNEL, PROBLEM, H200, 4)
    rule = KERNEL.default_config(PROBLEM, H200)
    winner = EXPERIENCE.nearest(named_fields(PROBLEM), H200)[0][1].measured[0][0]
    assert {rule, winner} <= {one.config for one in first[:3]}
    assert [one.bound for one in first[:2]] == sorted(one.bound for one in first[:2])
    _, alone = scores(EXPERIENCE, KERNEL, PROBLEM, H200, CONFIGS)
    assert CONFIGS[int(np.argmin(alone))] in [one.config for one in first]


def test_what_is_learnt_goes_before_the_rule_only_if_its_bound_is_lower() -> None:
    for order in (("predicted", "default"), ("default", "predicted")):
        bounds = dict(zip(order, (0.1, 0.2), strict=True)) | {"nearest": 0.3}
        rows = [loss for loss in EXPERIENCE.losses if loss.tier in bounds]
        losses = tuple(replace(loss, bound=bounds[loss.tier], up_to=9.0) for loss in rows)
        one = replace(EXPERIENCE, losses=losses)
        worse = replace(one, problems=one.problems[:1])  # its winner is another config
        assert candidates(worse, KERNEL, PROBLEM, H200)[0].tier == order[0]
    equal = replace(EXPERIENCE, losses=tuple(replace(loss, bound=0.1, up_to=9.0) for loss in EXPERIENCE.losses))
    assert candidates(equal, KERNEL, PROBLEM, H200)[0].tier == "default"


def test_a_winner_that_the_trees_expect_to_be_slow_is_never_the_first() -> None:
    losses = tuple(replace(loss, bound=0.01 if loss.tier == "nearest" else 0.1) for loss in EXPERIENCE.losses)
    slowest = max(CONFIGS, key=lambda config: law(config, 100))
    for config, tier in ((EVERYTHING[0].measured[0][0], "nearest"), (slowest, "default")):
        only = replace(measured(100, 4096), measured=((config, 1.0),))
        found = candidates(replace(EXPERIENCE, problems=(only,), losses=losses), KERNEL, PROBLEM, H200)
        assert found[0].tier == tier and "nearest" in [one.tier for one in found[:3]]


def test_a_rule_outside_of_a_sample_is_scored_itself() -> None:
    """Where the allowed configs are a sample, the kernel's own default may lie outside of it."""
    rule = KERNEL.default_config(PROBLEM, H200)
    some = tuple(config for config in CONFIGS if config != rule)
    whole, sample = (
        next(one for one in candidates(EXPERIENCE, KERNEL, PROBLEM, H200, 8, configs) if one.config == rule)
        for configs in (CONFIGS, some)
    )
    assert sample == whole and sample.predicted > 0


def test_a_loss_counts_what_the_left_out_sweep_itself_missed() -> None:
    """All of each space was measured here; of a few, as much as sweeps of so few miss is added."""
    few = [measured(*size, configs=[DEFAULT, WIDE, TALL, *CONFIGS[:9]]) for size in SIZES]
    shallow = with_losses(KERNEL, few)
    missed = LOSS_AFTER[12][0]
    assert min(loss.median for loss in shallow.losses) >= round(missed, 4)
    assert min(loss.median for loss in EXPERIENCE.losses) < missed


def test_losses_are_of_problems_that_were_left_out_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """No tree that tells a loss has seen the problem, on any device."""
    seen: list[list[Mapping[str, object]]] = []
    fit, lost = learning._fitted, learning._lost
    monkeypatch.setattr(
        learning, "_fitted", lambda given, *more: seen.append([one.given.problem for one in given]) or fit(given, *more)
    )

    def told(one: Any, predicted: Any, others: Any) -> Any:
        same = one.given.problem in seen[-1]
        assert not same or one.given.device.name not in {other.device.name for other in others}
        return lost(one, predicted, others)

    monkeypatch.setattr(learning, "_lost", told)
    found = with_losses(KERNEL, [*EVERYTHING[:8], *(measured(*size, H100) for size in SIZES[:8])])
    assert {loss.where for loss in found.losses} == {H200.name, H100.name, "sm_90"}
    assert {loss.tier for loss in found.losses if loss.where == "sm_90"} == {"architecture", "default", "predicted"}


@pytest.mark.parametrize("slope", [1.0, 0.5, 0.0, -0.5])
def test_nine_of_ten_further_losses_are_within_their_rows_and_bounds_do_not_decrease(slope: float) -> None:
    rng = np.random.default_rng(1)

    def drawn(n: int) -> list[tuple[float, float]]:
        predicted = rng.uniform(0.02, 0.3, n)
        return list(zip(predicted, 0.1 * (predicted / 0.1) ** slope * rng.lognormal(0, 0.7, n), strict=True))

    rows = learning._rows("a GPU", "default", drawn(400))
    assert len(rows) == MOST_ROWS and {row.n for row in rows} == {400}
    assert [row.bound for row in rows] == sorted(row.bound for row in rows)
    assert (rows[-1].bound > 1.5 * rows[0].bound) == (slope > 0)
    further = [(loss, next((row for row in rows if at <= row.up_to), rows[-1])) for at, loss in drawn(4000)]
    assert 0.86 < np.mean([loss <= row.bound for loss, row in further]) < 0.94
    assert 0.45 < np.mean([loss <= row.median for loss, row in further]) < 0.55


def test_few_problems_prove_little() -> None:
    (one,) = learning._rows("a GPU", "default", [(0.1, 0.02), (0.2, 0.03)])
    assert (one.n, one.bound) == (2, OF_OTHER_KERNELS) and one.median == pytest.approx(0.025, abs=1e-3)
    assert learning._rows("a GPU", "default", [(0.1, 0.02), (0.2, 0.9)])[0].bound == pytest.approx(0.9)


def test_a_choice_beyond_all_that_were_left_out_loses_as_much_more_as_is_predicted() -> None:
    last = max((loss for loss in EXPERIENCE.losses if loss.tier == "default"), key=lambda loss: loss.up_to)
    assert EXPERIENCE.loss(H200, "default", last.up_to) == last
    beyond = EXPERIENCE.loss(H200, "default", last.up_to + log(1.5))
    assert beyond is not None and beyond.bound == pytest.approx(1.5 * (1 + last.bound) - 1, abs=1e-3)
    assert beyond.median == pytest.approx(1.5 * (1 + last.median) - 1, abs=1e-3)


def test_other_devices_losses_are_told_as_theirs_and_none_of_another_architecture() -> None:
    config = KERNEL.default_config(PROBLEM, H100)
    predictor = Predictor(lambda: {KERNEL.name: EXPERIENCE})
    assert getattr(predictor.loss(KERNEL, PROBLEM, H100, "default", config), "where", "") == H200.name
    assert predictor.loss(KERNEL, PROBLEM, A100, "default", config) is None
    assert Predictor(dict).loss(KERNEL, PROBLEM, H200, "default", config) is None
    assert EXPERIENCE.knows(H100) and not EXPERIENCE.knows(A100)


def test_a_kernel_of_the_host_has_them_from_its_second_problem_on() -> None:
    one = with_losses(KERNEL, [measured(64, 1000, HOST)])
    assert one.losses == () and candidates(one, KERNEL, PROBLEM, HOST)[0].tier == "default"
    two = with_losses(KERNEL, [measured(64, 1000, HOST), measured(90, 4000, HOST)])
    assert {loss.tier for loss in two.losses} == {"default", "nearest", "predicted"}
    assert candidates(two, KERNEL, PROBLEM, HOST)[0].bound >= OF_OTHER_KERNELS


def test_records_of_another_definition_are_left_out_and_none_is_an_error() -> None:
    strange = MeasuredProblem({"colour": 3}, H200, ((DEFAULT, 1.0),), 1e-6)
    assert learnt(KERNEL, [strange, *EVERYTHING]).problems == learnt(KERNEL, EVERYTHING).problems
    with pytest.raises(ValueError, match="nothing was measured of detect"):
        learnt(KERNEL, [strange])
    with pytest.raises(UsageError):
        candidates(EXPERIENCE, KERNEL, PROBLEM, replace(H200, max_threads_per_block=1))


def test_it_survives_json_and_is_the_same_each_time(tmp_path: Path) -> None:
    text = json.dumps(as_json([EXPERIENCE]))
    content = json.loads(text)
    read = read_experience("detect", content["kernels"]["detect"], content["devices"])
    assert json.dumps(as_json([read])) == text == json.dumps(as_json([with_losses(KERNEL, EVERYTHING)]))
    assert candidates(read, KERNEL, PROBLEM, H200) == candidates(EXPERIENCE, KERNEL, PROBLEM, H200)
    fewer = with_losses(KERNEL, EVERYTHING[::3])
    assert fewer.by_rule != EXPERIENCE.by_rule and fewer.losses != EXPERIENCE.losses


# ---------------------------------------------------------------------- columns
def test_a_distance_is_the_same_in_any_order_of_the_fields() -> None:
    """Names have another order in each process: a sum rounded on its way would make equally near problems unequal."""
    one = {f"n_{name}": 7 for name in "abcdefg"}
    assert apart(one, dict.fromkeys(one, 1)) == fsum([log2(7)] * 7) != sum([log2(7)] * 7)


def test_columns_are_octaves_words_and_steps_from_the_rule() -> None:
    columns = ModelColumns.of([({"n_time": 64, "window": "hann"}, [DEFAULT, Config(BLOCK_C=32, MODE="a")])])
    assert columns.names[:5] == ("n_time", "window", "bytes", "operations", "multiprocessors")
    assert columns.words == {"MODE": ("a",), "window": ("hann",)}
    device = AnyDevice("a host", "host", "host")
    table = columns.table(KERNEL, PROBLEM, device, [DEFAULT, WIDE, Config(BLOCK_C=32, MODE="b")], DEFAULT)
    at = {name: table[:, i] for i, name in enumerate(columns.names)}
    assert at["n_time"].tolist() == [log2(100)] * 3 and at["window"].tolist() == [ABSENT] * 3
    assert at["BLOCK_C"].tolist() == [6.0, 7.0, 5.0] and at["MODE"].tolist() == [ABSENT, ABSENT, -1.0]
    assert at["BLOCK_C off the rule"].tolist() == [0.0, 1.0, -1.0] and at["MODE off the rule"].tolist() == [
        0.0,
        0.0,
        1.0,
    ]
    assert at["is the rule"].tolist() == [1.0, 0.0, 0.0]
    steps = at["steps from the rule"] ** 2
    assert steps[0] == 0 and steps[1] == pytest.approx(0.7 + 1.0)  # BLOCK_C by an octave, UNROLL by two
    assert columns.n_plain == len(columns.names) - len(columns.parameters) - 2


def test_the_experience_is_small(tmp_path: Path) -> None:
    assert isinstance(EXPERIENCE, Experience) and len(str(as_json([EXPERIENCE]))) < 100_000
    assert exp(min(scores(EXPERIENCE, KERNEL, PROBLEM, H200, CONFIGS)[0])) < 1.2
