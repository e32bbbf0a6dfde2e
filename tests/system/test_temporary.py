"""What killed processes leave in the temporary folder is cleared by the next one; what others use stays."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from autotune.devices.host import toolchain
from autotune.system import temporary

from ..waiting import DEADLINE_S, wait_until

HOLDS = """
import sys, time
from autotune.devices.host.toolchain import run_tool
from autotune.system.temporary import temporary_folder
with temporary_folder() as folder:
    (folder / "ccLEFT.s").write_text("")
    print(folder, flush=True)
    run_tool(["/bin/sh", "-c", "echo > $TMPDIR/ccOURS.s; echo $TMPDIR >&2; sleep 600"])
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def test_a_killed_process_leaves_nothing_behind_the_next_start(folder: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLDS], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        own = Path(holder.stdout.readline().strip())
        wait_until(lambda: list(folder.glob("autotune-*/ccOURS.s")))
        temporary.clear_left(folder)  # it lives
        assert own.is_dir() and len(list(folder.glob("autotune-*/ccOURS.s"))) == 1
        holder.kill()
        holder.wait(DEADLINE_S)
    assert own.is_dir()
    temporary.clear_left(folder)
    assert list(folder.iterdir()) == []


def test_what_is_somebody_elses_stays(folder: Path) -> None:
    machine, began = temporary._machine(), temporary._began(os.getpid())
    kept = {
        f"autotune-{machine}-{os.getpid()}-{began}-abc",  # of a process that lives
        f"autotune-00000000-{2**22 + 1}-5-abc",  # of another machine, whose processes are not known here
        "autotune-abcdefgh",
        "other",
    }
    old = f"autotune-00000000-{os.getpid()}-{began}-abc"  # of another machine, or of this one before it booted
    gone = {f"autotune-{machine}-{2**22 + 1}-5-abc", f"autotune-{machine}-{os.getpid()}-1-abc", old}
    for name in kept | gone:  # the second number came again
        (folder / name).mkdir()
        (folder / name / "x").write_text("")
    os.utime(folder / old, (0, 0))
    target = folder / "other"
    link = folder / f"autotune-{machine}-{2**22 + 2}-5-abc"
    link.symlink_to(target)
    temporary.clear_left(folder)
    assert {path.name for path in folder.iterdir()} == kept | {link.name} and (target / "x").is_file()


def test_a_compiler_writes_into_a_folder_that_is_removed(folder: Path) -> None:
    outcome = toolchain.run_tool(["/bin/sh", "-c", "echo > $TMPDIR/cc.s; echo $TMPDIR"])
    used = Path(outcome.output.strip())
    assert used.parent == folder and temporary.NAME.fullmatch(used.name) and not used.exists()
