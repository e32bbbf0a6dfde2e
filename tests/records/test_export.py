"""Exports: each format is read back by the program it is for, and says what was recorded, failures and all."""

import io
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from autotune import Config, UsageError, load
from autotune.cli.commands.export import export
from autotune.core.config import merged_order
from autotune.core.errors import Status
from autotune.records.export import kernel_tuner, t4
from autotune.records.export.parquet import uniform
from autotune.records.folder import SweepFolder
from autotune.records.record import SweepRecord
from autotune.records.trial_log import append

from .. import outcomes

pytestmark = pytest.mark.quick


def recorded(path: Path) -> SweepRecord:
    return SweepRecord.of(SweepFolder(path))


# ---------------------------------------------------------------------- tables
def test_csv_is_a_row_a_trial(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcomes.sweep(tmp_path / "results")
    export([tmp_path / "results"], "csv", tmp_path / "trials.csv")
    export([tmp_path / "results"], "csv")
    text = (tmp_path / "trials.csv").read_text()
    assert text == capsys.readouterr().out
    table = pd.read_csv(io.StringIO(text))
    assert len(table) == 16 and table["status"].tolist()[6:] == outcomes.FAILURES


def test_parquet_reads_back_equal(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    outcomes.sweep(tmp_path / "results")
    export([tmp_path / "results"], "parquet", tmp_path / "trials.parquet")
    again, table = pd.read_parquet(tmp_path / "trials.parquet"), uniform(load(tmp_path / "results"))
    assert {str(again[name].dtype) for name in ("WGS", "SG_SIZE", "registers", "problem.taps")} == {"Int64"}
    lists = ["verified_on", "grid", "block"]
    for name in lists:
        as_lists = [None if cell is None else list(cell) for cell in again[name]]
        assert as_lists == list(table[name]) and isinstance(table[name][0], list)
    pd.testing.assert_frame_equal(again.drop(columns=lists), table.drop(columns=lists))


def test_a_column_of_several_types_becomes_text() -> None:
    table = pd.DataFrame({"a": pd.Series([1, "x", None], dtype=object), "b": pd.Series([{"c": 1}, None, {}])})
    again = uniform(table).fillna("missing")
    assert list(again["a"]) == ["1", "x", "missing"] and list(again["b"]) == ['{"c": 1}', "missing", "{}"]


def test_without_pyarrow_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes.sweep(tmp_path / "results")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UsageError, match=r"pip install pyarrow, or pip install .*\[parquet\]"):
        export([tmp_path / "results"], "parquet", tmp_path / "trials.parquet")
    assert not (tmp_path / "trials.parquet").exists()


# ---------------------------------------------------------------------- T4
def test_t4_is_valid_by_the_public_schema(tmp_path: Path) -> None:
    jsonschema, file_utils = pytest.importorskip("jsonschema"), pytest.importorskip("kernel_tuner.file_utils")
    outcomes.sweep(tmp_path / "results")
    export([tmp_path / "results"], "t4", tmp_path / "one.json")
    for name in ("results", "metadata"):
        version, schema = file_utils.output_file_schema(name)
        content = json.loads((tmp_path / f"one-{name}.json").read_text())
        jsonschema.validate(content, schema)
        assert content["schema_version"] == version
    assert content["metadata"]["environment"]["requirements"] == ["python==3.12.3", "numpy==2.5.2"]
    assert content["metadata"]["autotune"]["commit"] == "0123456789ab"


def test_t4_tells_how_each_trial_ended(tmp_path: Path) -> None:
    content = t4.results(recorded(outcomes.sweep(tmp_path)))
    by_config = {Config(r["configuration"]): r for r in content["results"]}
    ended = {t.status: by_config[t.config] for t in outcomes.trials()[5:]}
    assert {status: r["invalidity"] for status, r in ended.items()} == {
        "measured": "correct",
        "constraint": "constraints",
        "definition_failed": "compile",
        "render_failed": "compile",
        "compile_failed": "compile",
        "resources": "runtime",
        "launch_failed": "runtime",
        "timed_out": "timeout",
        "wrong": "correctness",
        "noisy": "runtime",
        "skipped": "constraints",
    }
    assert {status for status, r in ended.items() if r["correctness"] == 1} == {"measured", "noisy"}
    assert set(t4.INVALIDITY) == set(Status) == {*kernel_tuner.ERROR, "measured"}
    best = by_config[outcomes.BEST]
    measured = {m["name"]: (m["value"], m["unit"]) for m in best["measurements"]}
    assert measured["time"] == (pytest.approx(0.2), "ms") and best["objectives"] == ["time"]
    assert measured["time_final_round"] == (pytest.approx(0.204), "ms")
    assert measured["registers"] == (44, "per thread") and measured["gb_per_s"] == (100.0, "GB/s")
    assert best["times"]["runtimes"] == pytest.approx([0.18, 0.2, 0.22])
    assert (best["times"]["compilation_time"], best["times"]["validation"]) == (250, 125)
    assert "compilation" not in ended["compile_failed"]["times"]  # it took a while that was not recorded
    assert ended["render_failed"]["times"]["compilation"] == 0
    assert not any(m["name"] == "time" for m in ended["wrong"]["measurements"])


# ---------------------------------------------------------------------- Kernel Tuner
def test_kernel_tuner_reads_the_cache_file(tmp_path: Path) -> None:
    util = pytest.importorskip("kernel_tuner.util")
    export([outcomes.sweep(tmp_path / "results")], "kernel-tuner", tmp_path / "filter.json")
    cache = util.read_cache(str(tmp_path / "filter.json"), open_cache=False)
    assert cache["device_name"] == "NVIDIA H200" and cache["problem_size"] == [16, 4096]
    assert cache["tune_params_keys"] == ["ALGORITHM", "WGS", "SG_SIZE", "PHASES"]
    assert cache["tune_params"]["PHASES"] == [2, 4, 8, "absent"] and cache["tune_params"]["WGS"] == [64, 128, 256]
    entries = cache["cache"]
    assert entries["register,128,absent,4"]["time"] == pytest.approx(0.2)
    decoded = [Config({n: e[n] for n in cache["tune_params_keys"] if e[n] != "absent"}) for e in entries.values()]
    assert decoded == [t.config for t in outcomes.trials()]
    errors = {e["status"]: str(e["__error__"]) for e in entries.values() if "__error__" in e}
    assert errors == kernel_tuner.ERROR
    assert {type(e["__error__"]) for e in entries.values() if "__error__" in e} == {
        util.InvalidConfig,
        util.CompilationFailedConfig,
        util.RuntimeFailedConfig,
    }


@pytest.mark.filterwarnings("ignore")
def test_kernel_tuner_tunes_in_simulation_from_it(tmp_path: Path) -> None:
    """Over the configs that ran, as its tune_cache does; and over all, failures and conditional parameters included."""
    util = pytest.importorskip("kernel_tuner.util")
    from kernel_tuner import tune_kernel
    from kernel_tuner.interface import tune_cache

    file = tmp_path / "filter.json"
    export([outcomes.sweep(tmp_path / "results")], "kernel-tuner", file)
    before = file.read_bytes()
    ran, environment = tune_cache(str(file), quiet=True)
    assert len(ran) == 6 and environment["best_config"]["time"] == pytest.approx(0.2)
    cache = json.loads(before)
    known = {tuple(entry[name] for name in cache["tune_params_keys"]) for entry in cache["cache"].values()}
    found: dict[str, list[dict[str, Any]]] = {}
    for strategy, limits in (("brute_force", {}), ("genetic_algorithm", {"time_limit": 60, "max_fevals": 15})):
        found[strategy], environment = tune_kernel(
            "filter",
            "",
            (16, 4096),
            [],
            cache["tune_params"],
            restrictions=[util.FunctionConstraint(lambda *values: values in known)],
            cache=str(file),
            simulation_mode=True,
            strategy=strategy,
            strategy_options=limits,
            quiet=True,
        )
        assert environment["device_name"] == "NVIDIA H200"
    assert sum("__error__" in result for result in found["brute_force"]) == len(outcomes.FAILURES)
    assert found["genetic_algorithm"] and file.read_bytes() == before


def test_the_word_for_absent_is_no_value_and_reserved_names_are_refused(tmp_path: Path) -> None:
    path = outcomes.sweep(tmp_path)
    folder = SweepFolder(path)
    trial = outcomes.trials()[0]
    append(folder.path, replace(trial, number=99, config=Config(ALGORITHM="absent", WGS=64)))
    assert json.loads(kernel_tuner.cache(recorded(path)))["autotune"]["absent"] == "absent_"
    append(folder.path, replace(trial, number=100, config=Config(time=3)))
    with pytest.raises(UsageError, match="the parameter 'time' has the name of a key"):
        kernel_tuner.cache(recorded(path))


def test_a_config_recorded_again_counts_once_with_its_latest_trial(tmp_path: Path) -> None:
    path = outcomes.sweep(tmp_path)
    append(path, replace(outcomes.trials()[0], number=16))
    assert [t.number for t in recorded(path).trials] == [*range(1, 17)]
    assert len(t4.results(recorded(path))["results"]) == 16


def test_merged_order_keeps_each_configs_own() -> None:
    assert merged_order([Config(A=1, B=1, D=1), Config(A=2, C=1, D=1), Config(E=1, A=3)]) == ["E", "A", "C", "B", "D"]


# ---------------------------------------------------------------------- files
def test_a_folder_of_sweeps_becomes_a_folder_of_files(tmp_path: Path) -> None:
    for taps in (16, 32):
        outcomes.sweep(tmp_path / "results", taps=taps)
    export([tmp_path / "results"], "t4", tmp_path / "t4")
    export([tmp_path / "results"], "kernel-tuner", tmp_path / "kernel-tuner")
    names = sorted(
        str(p.relative_to(tmp_path)) for kind in ("t4", "kernel-tuner") for p in (tmp_path / kind).rglob("*.json")
    )
    assert names == [
        "kernel-tuner/NVIDIA_H200/filter/taps=16,n_samples=4096.json",
        "kernel-tuner/NVIDIA_H200/filter/taps=32,n_samples=4096.json",
        "t4/NVIDIA_H200/filter/taps=16,n_samples=4096-metadata.json",
        "t4/NVIDIA_H200/filter/taps=16,n_samples=4096-results.json",
        "t4/NVIDIA_H200/filter/taps=32,n_samples=4096-metadata.json",
        "t4/NVIDIA_H200/filter/taps=32,n_samples=4096-results.json",
    ]


@pytest.mark.parametrize(
    ("format", "out", "says"),
    [
        ("t4", None, "writes several files for 2 sweeps; name a folder"),
        ("kernel-tuner", None, "writes several files for 2 sweeps; name a folder"),
        ("kernel-tuner", "one.json", "is one file, and there are 2 sweeps: name a folder"),
        ("t4", "file.txt", "is one file, and there are 2 sweeps: name a folder"),
        ("parquet", None, "is not text; name a file"),
        ("csv", "folder", "is a folder; --format csv writes one file"),
    ],
)
def test_a_place_that_does_not_suit_is_told(tmp_path: Path, format: str, out: str | None, says: str) -> None:
    for taps in (16, 32):
        outcomes.sweep(tmp_path / "results", taps=taps)
    (tmp_path / "folder").mkdir()
    (tmp_path / "file.txt").touch()
    with pytest.raises(UsageError, match=says):
        export([tmp_path / "results"], format, tmp_path / out if out else None)


def test_two_sweeps_never_share_a_file(tmp_path: Path) -> None:
    outcomes.sweep(tmp_path / "a")
    outcomes.sweep(tmp_path / "b")
    with pytest.raises(UsageError, match="would be written to the same files"):
        export([tmp_path], "kernel-tuner", tmp_path / "out")
    assert not (tmp_path / "out").exists()
