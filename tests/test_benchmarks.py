"""Benchmarks need a GPU and minutes, but what they take from the package must be there, and what it does must work."""

import ast
import json
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from autotune.engines.corrections.delays import DelayModel, Piece
from autotune.engines.corrections.gains import Gains
from autotune.engines.f.band import Band
from autotune.engines.f.sample_buffers import LoadedChunk
from autotune.engines.f.voltage_buffers import BandSettings, Voltages
from autotune.engines.kernels.choice import CHAIN, CHANNELISE, Kernels
from autotune.engines.machine.backend import Event
from autotune.engines.machine.host_backend import HostBackend
from autotune.engines.run.bay import Bay
from autotune.engines.streams.samples import SampleInfo, Samples
from autotune.records.record import read_sweeps
from autotune.runtime.bounds import LOSS_AFTER

from .conftest import EXAMPLE
from .engines.f.test_band import HEAP, PACKET, WEIGHTS, C
from .recorded import DEFAULT, H100, H200, record

FILES = sorted((Path(__file__).parent.parent / "benchmarks").glob("*.py"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_what_a_benchmark_imports_is_there(file: Path) -> None:
    imports = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.ImportFrom)]
    own = [node for node in imports if node.module and node.module.split(".")[0] == "autotune"]
    for node in own:
        module = import_module(node.module or "")
        missing = [name.name for name in node.names if not hasattr(module, name.name)]
        assert [name for name in missing if find_spec(f"{node.module}.{name}") is None] == []


def test_all_benchmarks_are_listed() -> None:
    text = (FILES[0].parent / "README.md").read_text()
    assert [file.name for file in FILES if f"`{file.name}`" not in text] == []


def test_the_main_thread_is_measured_without_a_gpu() -> None:
    script = str(next(file for file in FILES if file.stem == "main_thread"))
    words = ["--chunks", "16", "--runs", "1", "--log-chunk", "22", "--profile"]
    told = subprocess.run([sys.executable, script, *words], capture_output=True, text=True, timeout=120)
    assert told.returncode == 0, told.stderr
    lines = [line for line in told.stdout.splitlines() if " us a chunk, " in line]
    assert [line.split(",")[0] for line in lines] == [CHAIN, CHANNELISE] * 2
    assert all(" events, " in line and " sends, " in line for line in lines) and "function calls" in told.stdout


def test_spaces_are_enumerated_beside_kernel_tuner() -> None:
    script = str(next(file for file in FILES if file.stem == "enumeration"))
    words = [sys.executable, script, "dedispersion", "4.5 million", "--runs", "1"]
    told = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert told.returncode == 0, told.stderr
    _, small, large = told.stdout.splitlines()
    assert small.split()[:2] == ["dedispersion", "11130"] and small.endswith("the same configs")
    assert large.split()[:3] == ["4.5", "million", "98920"] and "drawn at random" in large


def test_winners_are_measured_side_by_side() -> None:
    words = ["--kernel", "dequantize", "--device", "simulated:0", "--sweeps", "2", "--trials", "6"]
    script = str(next(file for file in FILES if file.stem == "repeatability"))
    told = subprocess.run([sys.executable, script, *words], capture_output=True, text=True, timeout=120)
    assert told.returncode == 0, told.stderr
    last = [line.split() for line in told.stdout.splitlines()[-2:]]
    assert [line[0] for line in last] == ["0", "1"] and "fastest" in last[0] + last[1]


def test_choices_of_engines_are_compared(tmp_path: Path) -> None:
    results = tmp_path / "results"
    for device in (H100, H200):
        record(results, device, {DEFAULT: 20.0})
    words = ["--results", str(results), "--without", H100.name, "--device", "host", "--json", str(tmp_path / "found")]
    words += ["--channels", "64", "--bits", "8", "--log-chunk", "15", "--antennas", "2", "--x-channels", "1"]
    script = str(next(file for file in FILES if file.stem == "engine_choices"))
    told = subprocess.run(
        [sys.executable, script, *words, "--repeats", "1"], capture_output=True, text=True, timeout=240
    )
    assert told.returncode == 0, told.stderr
    banks, slices = told.stdout.splitlines()[-2:]
    assert banks.startswith("64 channels, 8 bits  chain") and banks.endswith("unknown   as always with kernels on host")
    assert slices.startswith("2 antennas           1") and ", 32 " in slices
    found = json.loads((tmp_path / "found").read_text())
    assert [row["chosen"] for row in found["choices"]] == ["chain", "1"]
    assert [list(row["measured"]) for row in found["choices"]] == [
        ["chain", "channelise"],
        ["1", "2", "4", "8", "16", "32"],
    ]
    choices = loaded("engine_choices")
    assert len(choices.find_sweeps(choices.without(results, H100.name, tmp_path / "others"))) == 1


def test_predicted_times_are_compared_with_recorded_ones(tmp_path: Path) -> None:
    for n_chan in (1000, 4000, 16000):
        record(tmp_path, H200, {DEFAULT: n_chan / 100}, n_chan=n_chan)
    script = str(next(file for file in FILES if file.stem == "expected_times"))
    words = [str(tmp_path), "--kernel", EXAMPLE]
    told = subprocess.run([sys.executable, script, *words], capture_output=True, text=True, timeout=120)
    assert told.returncode == 0, told.stderr
    assert told.stdout.splitlines()[-1].split()[1:3] == ["sm_90", "3"]


def loaded(name: str) -> ModuleType:
    spec = spec_from_file_location(name, next(file for file in FILES if file.stem == name))
    assert spec and spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("bank", [CHAIN, CHANNELISE])
def test_recorded_work_of_a_band_makes_the_same_voltages_again(bank: str) -> None:
    """Also when the band has sent other offsets, delays and phases from the same pinned memory since then."""
    replay, packets, n_recorded = loaded("replay"), 16, 9
    backend, info = replay.Recorder(HostBackend()), SampleInfo(10, 2, 1e6, PACKET)
    bay = Bay(backend, Kernels(backend, lambda line: None, filter_bank=bank))
    settings = BandSettings(C, WEIGHTS, 8, HEAP, heaps_per_batch=4, max_delay_diff=200)
    delays = [DelayModel(Piece(0, 20.3, -4e-4, 0.1, 1e-5)), DelayModel(Piece(0, 12.7, 3e-4))]
    made = list[tuple[Voltages, np.ndarray]]()

    def deliver(buffer: Voltages) -> tuple[Event, ...]:
        made.append((buffer, buffer.memory.copy()))
        return ()

    band = Band(bay, info, settings, delays=delays, gains=Gains(C, 2, 0.05), deliver=deliver)
    chunk, received = packets * PACKET, np.ones((2, packets), bool)
    rows = np.random.default_rng(0).integers(0, 256, (2, (band.head + chunk) * 10 // 8), np.uint8)

    def take(number: int) -> None:
        band.take(LoadedChunk(rows, 10, 0, number * chunk - band.head, Samples(number * chunk, received), ()))

    take(0)
    take(1)
    made.clear()
    chunks = []
    for number in range(2, 2 + n_recorded):
        with backend.recording() as work:
            take(number)
        chunks.append(work)
    assert len(made) == n_recorded and not any(np.array_equal(made[0][1], memory) for _, memory in made[1:])
    kept, n_calls = list(made), [len(work) for work in chunks]
    take(2 + n_recorded)
    assert [len(work) for work in chunks] == n_calls, "nothing is kept that was not recorded"
    for buffer, _ in kept:
        buffer.memory[...] = 99
    for number, (work, (buffer, memory)) in enumerate(zip(chunks, kept, strict=True)):
        replay.again(work)
        if number >= settings.n_buffers:  # buffers before have been cleared with all others
            assert np.array_equal(buffer.memory, memory)
    launched = {"pfb_fir", "Fourier transform", "postproc"} if bank == CHAIN else {"channelise"}
    assert replay.content(chunks).keys() == {*launched, "send", "zero", "event"}
    seconds, n_late = replay.timed(chunks, 2, backend.stream())
    assert seconds > 0 and n_late == 2 * n_recorded, "on host all work is done before the next is given"


def test_what_sweeps_missed_is_of_todays_records() -> None:
    """`python benchmarks/bounds.py results` prints the table of autotune/runtime/bounds.py."""
    bounds = loaded("bounds")
    sweeps, _ = read_sweeps([FILES[0].parents[1] / "results"])
    assert bounds.table(sweeps, LOSS_AFTER) == LOSS_AFTER
    assert bounds.table(sweeps[::3], LOSS_AFTER) != LOSS_AFTER
