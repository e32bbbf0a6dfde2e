"""Caches: what is damaged, or may be somebody else's, is neither executed nor believed but made anew."""

import json
import logging
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autotune import Config, Launch, TrialFailure, UsageError
from autotune.devices import host as module
from autotune.devices import simulated
from autotune.devices.host import build, own_files, toolchain
from autotune.rendering.render import Variant
from autotune.runtime import gpu, nvrtc
from autotune.system.cache import cache_dir, prune, scratch_dir

from ..devices.bench import variant
from ..waiting import DEADLINE_S

TEXT = """
extern "C" __global__ void put(int* out, int n)
{
    __shared__ int s[32];
    s[threadIdx.x] = n;
    out[threadIdx.x] = s[threadIdx.x];
}
"""
SCALE = 'extern "C" __global__ void scale(float* y) { y[threadIdx.x] *= 2; }\n'
Damage = Callable[[Path], object]


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def open_to_others(path: Path) -> None:
    path.chmod(0o666)


def give_away(path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a file to another user")
    os.chown(path, 12345, 12345)


def replace_by_a_link(path: Path) -> None:
    path.rename(path.with_suffix(".elsewhere"))
    path.symlink_to(path.with_suffix(".elsewhere"))


DAMAGES = [flip, cut, empty, Path.unlink, open_to_others, give_away, replace_by_a_link]


def compiled(comment: str, text: str = TEXT) -> Any:
    return module.compile(variant(f"{text}// {comment}", "put"), module.DEVICE, ("plain",))


def outputs_of(binary: Any) -> list[int]:
    """What the kernel puts for 7."""
    session = module.open("host")
    buffer = session.buffer("out", (32,), np.dtype(np.int32), written=True)
    session.load(binary, "plain").launch(Launch((1, 1, 1), (32, 1, 1)), [buffer, np.int32(7)])
    return buffer.read().tolist()  # type: ignore[no-any-return]


# ---------------------------------------------------------------------- the host's libraries
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_library_that_is_not_what_was_kept_is_compiled_again(damage: Damage) -> None:
    good = compiled(f"library {damage.__name__}")
    path = good.files["plain"]
    before = path.read_bytes()
    damage(path)
    again = compiled(f"library {damage.__name__}")
    assert not again.cached and path.stat().st_size == len(before)
    assert path.stat().st_uid == os.geteuid() and path.stat().st_mode & 0o022 == 0 and not path.is_symlink()
    assert compiled(f"library {damage.__name__}").cached
    assert outputs_of(again) == [7] * 32


def change_a_number(path: Path) -> None:
    facts = json.loads(path.read_text())
    facts["variables"][0]["n_bytes"] *= 2
    path.write_text(json.dumps(facts))


@pytest.mark.parametrize("damage", [*DAMAGES, change_a_number])
def test_facts_that_are_not_what_was_kept_are_made_again(damage: Damage) -> None:
    good = compiled(f"facts {damage.__name__}")
    damage(good.files["plain"].with_suffix(".json"))
    again = compiled(f"facts {damage.__name__}")
    assert (again.cached, again.shared_bytes) == (False, 128)


def test_a_good_library_under_another_name_is_not_taken() -> None:
    one, other = (compiled(f"name {i}").files["plain"] for i in (1, 2))
    for path in (one, one.with_suffix(".json")):
        shutil.copy(path, other.with_suffix(path.suffix))
    assert not compiled("name 2").cached


def test_what_many_compiles_share_is_made_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Forgets what was looked at, as another process would find it: each looks at these files once."""
    monkeypatch.setenv("AUTOTUNE_CACHE_DIR", str(tmp_path))
    header = build.shim_header("plain")
    paths = build.runtime_library(), header, header.with_name(f"{header.name}.gch")
    sizes = [path.stat().st_size for path in paths]
    for path in paths:
        flip(path)
    own_files._seen.clear()
    assert (build.runtime_library(), build.shim_header("plain")) == paths[:2]
    assert [build.take(path) is not None for path in paths] == [True] * 3
    assert paths[0].stat().st_size == sizes[0]
    assert compiled("shared").shared_bytes == 128


# ---------------------------------------------------------------------- what decides what a source becomes
def test_the_compilers_flags_are_a_part_of_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = compiled("flags")
    found = toolchain.find_compiler()
    fast = toolchain.Compiler((*found.command, "-ffast-math"), found.version, found.is_gcc)
    monkeypatch.setattr(build, "find_compiler", lambda: fast)
    assert compiled("flags").files != plain.files
    monkeypatch.setattr(build, "find_compiler", lambda: found)
    monkeypatch.setenv("CPATH", "/nowhere")
    assert fast.key != found.key and compiled("flags").files != plain.files


@pytest.mark.parametrize("name", ["{folder}/factor.hpp", "factor.hpp"])
def test_headers_that_a_source_includes_are_a_part_of_the_key(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    text = f'#include "{name.format(folder=tmp_path)}"\n' + TEXT.replace("= n;", "= FACTOR * n;")
    found = []
    for factor in (2, 3, 2):
        (tmp_path / "factor.hpp").write_text(f"#define FACTOR {factor}\n")
        binary = compiled("included", text)
        found.append((outputs_of(binary)[0], binary.cached))
    assert found == [(14, False), (21, False), (14, True)]
    (tmp_path / "factor.hpp").unlink()
    with pytest.raises(TrialFailure, match=r"factor\.hpp: No such file") as failure:
        compiled("included", text)
    assert failure.value.status == "compile_failed"


# ---------------------------------------------------------------------- compilers that are killed
def fake_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str) -> None:
    """A compiler that at step -c first does what ``script`` says, the number of times that ``n`` had been called."""
    path = tmp_path / "g++"
    count = f"echo >> {tmp_path}/calls; n=$(wc -l < {tmp_path}/calls)"
    path.write_text(f'#!/bin/sh\ncase " $* " in *" -c "*) {count}; {script};; esac\nexec g++ "$@"\n')
    path.chmod(0o755)
    found = toolchain.find_compiler()
    broken = toolchain.Compiler((str(path),), found.version, found.is_gcc)
    monkeypatch.setattr(build, "find_compiler", lambda: broken)


@pytest.mark.parametrize(
    "death",
    ["kill -9 $$", "kill $$", "echo 'g++: fatal error: Killed signal terminated program cc1plus' >&2; exit 1"],
)
def test_a_compiler_that_is_killed_says_nothing_of_the_source(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, death: str
) -> None:
    fake_compiler(monkeypatch, tmp_path, f"[ $n = 1 ] && {{ {death}; }}")
    assert compiled(f"killed once by {death}").shared_bytes == 128
    (tmp_path / "calls").unlink()
    fake_compiler(monkeypatch, tmp_path, death)
    with pytest.raises(TrialFailure, match="twice, as something killed it") as failure:
        compiled(f"killed twice by {death}")
    assert failure.value.status == "compile_failed" and len((tmp_path / "calls").read_text().split("\n")) == 3


def test_a_cache_that_is_deleted_while_a_compiler_runs_is_made_anew(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AUTOTUNE_CACHE_DIR", str(tmp_path / "cache"))
    found = tmp_path / "cache" / "host"
    fake_compiler(monkeypatch, tmp_path, f'g++ "$@"; code=$?; rm -rf {tmp_path}/cache; exit $code')
    made = compiled("deleted")
    assert not made.cached and [path.name for path in found.glob("*.so")] == [made.files["plain"].name]
    assert {path.stat().st_mode & 0o777 for path in (found, found.parent)} == {0o700}


def test_a_compilers_message_is_kept_to_a_size() -> None:
    with pytest.raises(TrialFailure) as failure:
        compiled("long", TEXT.replace("= n;", f"= {'n' * 100_000};"))
    assert len(failure.value.message) < 2500 and "more characters" in failure.value.message


# ---------------------------------------------------------------------- cubins, and what is simulated
def spoil_a_figure(path: Path) -> None:
    facts = json.loads(path.with_suffix(".json").read_text())
    facts["registers"] += 1
    path.with_suffix(".json").write_text(json.dumps(facts))


@pytest.mark.parametrize("damage", [*DAMAGES, spoil_a_figure])
def test_a_cubin_that_is_not_what_was_kept_is_compiled_again(tmp_path: Path, damage: Damage) -> None:
    good = nvrtc.cached_cubin(tmp_path, SCALE, "scale", "sm_80")
    assert good.path is not None
    damage(good.path)
    again = nvrtc.cached_cubin(tmp_path, SCALE, "scale", "sm_80")
    assert (again.cached, again.registers) == (False, good.registers)
    assert good.path.read_bytes() == again.data and good.path.stat().st_mode & 0o022 == 0
    assert nvrtc.cached_cubin(tmp_path, SCALE, "scale", "sm_80").cached


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_is_simulated_is_made_again(damage: Damage) -> None:
    device = simulated.describe("simulated:0")
    names = [f"k[n={i}|A=1]" for i in range(10)]
    made = next(name for name in names if simulated._unit("fails", name) >= simulated.FAILING)
    given = Variant("k", made, f"damaged-{damage.__name__}", "", "", Config({"A": 1}))
    good = simulated.compile(given, device)
    path = good.files["formula"]
    before = path.read_bytes()
    damage(path)
    again = simulated.compile(given, device)
    assert not again.cached and path.read_bytes() == before
    simulated.open("simulated:0").load(again, "formula")


# ---------------------------------------------------------------------- folders
def test_folders_are_made_for_their_user_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AUTOTUNE_CACHE_DIR", str(tmp_path / "a" / "b"))
    folder = cache_dir("host")
    assert [path.stat().st_mode & 0o777 for path in (folder, folder.parent)] == [0o700, 0o700]
    shutil.rmtree(folder.parent)
    assert cache_dir("host").is_dir()


DELETING = """
import shutil, sys, time
while True:
    shutil.rmtree(sys.argv[1], ignore_errors=True)
    time.sleep(0.004)
"""


def test_folders_are_made_and_tidied_while_another_process_deletes_the_cache(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    root, n_made = tmp_path / "cache", 0
    monkeypatch.setenv("AUTOTUNE_CACHE_DIR", str(root))
    deleting = subprocess.Popen([sys.executable, "-c", DELETING, str(root)])
    try:
        deadline = time.monotonic() + DEADLINE_S
        while n_made < 200 and time.monotonic() < deadline:
            n_made += not (root / "host").exists()
            cache_dir("host")
            prune("host")
            with scratch_dir():
                pass
    finally:
        deleting.kill()
        deleting.wait()
    assert n_made == 200, "the cache was not deleted often enough"


@pytest.mark.parametrize("which", ["host", ".", ".."])
@pytest.mark.parametrize("mode", [0o777, 0o775])
def test_a_folder_that_others_may_write_is_not_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, which: str, mode: int, caplog: pytest.LogCaptureFixture
) -> None:
    if which == ".." and mode == 0o775:
        return  # whom a user shares a group with may move the cache, and a group's own place for caches is common
    root = tmp_path / "shared" / "cache"
    monkeypatch.setenv("AUTOTUNE_CACHE_DIR", str(root))
    cache_dir("host"), cache_dir("cubin")
    bad = (root / which).resolve()
    bad.chmod(mode)
    with pytest.raises(UsageError, match="may be written by others") as refused:
        cache_dir("host")
    remedy = f"chmod go-w {bad} " if which == ".." else f"chmod -R go-w {root} "
    assert remedy in str(refused.value) and f"{bad} may be" in str(refused.value)
    if which != "host":  # so it goes to packages, too: they do without
        with caplog.at_level(logging.WARNING, "autotune"):
            assert gpu._trusted_folder() != root / "cubin"
        assert remedy in caplog.text
    bad.chmod(mode | 0o1000)  # as /tmp is
    if which != "host":
        assert cache_dir("host") == root / "host"


def test_a_folder_of_another_user_is_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder to another user")
    monkeypatch.setenv("AUTOTUNE_CACHE_DIR", str(tmp_path / "cache"))
    cache_dir("host")
    os.chown(tmp_path / "cache", 12345, 12345)
    with pytest.raises(UsageError, match="belongs to user 12345: chown -R 0 "):
        cache_dir("host")
    assert gpu._trusted_folder() != tmp_path / "cache" / "cubin"


def test_a_folder_that_cannot_be_made_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("AUTOTUNE_CACHE_DIR", str(tmp_path / "file"))
    with pytest.raises(UsageError, match=r"cannot be made .*: name a folder that you may write"):
        cache_dir("host")


@pytest.mark.quick
def test_a_file_that_is_not_used_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    path = compiled("told").files["plain"]
    for _ in range(2):
        path.chmod(0o666)
        assert not compiled("told").cached
    told = [record.getMessage() for record in caplog.records if record.name == "autotune"]
    assert told == [f"{path} in the cache is not used but made anew: others may write it (mode 666)"]
