"""A file system without flock, as Lustre may be: whoever needs a lock says what to do, and whoever can goes on."""

import errno
import fcntl
import os
from pathlib import Path

import pytest

from autotune import UsageError
from autotune.core.files import lock
from autotune.records.folder_lock import is_at_work, locked
from autotune.runtime.tune_once import _alone
from autotune.system.lock import device_lock

pytestmark = pytest.mark.quick


@pytest.fixture(params=[errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP])
def reason(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    def flock(file: int, how: int) -> None:
        raise OSError(request.param, os.strerror(request.param))

    monkeypatch.setattr(fcntl, "flock", flock)
    return os.strerror(request.param)


def test_a_sweep_names_its_folder_and_what_to_do(reason: str, tmp_path: Path) -> None:
    told = f"the file system of {tmp_path} has no locks (flock: {reason}): choose a folder for records on another one"
    with pytest.raises(UsageError) as refused, locked(tmp_path, lambda line: None):
        pass
    assert str(refused.value).startswith(told)
    (tmp_path / "trials.jsonl").touch()
    assert not is_at_work(tmp_path)


def test_a_device_names_the_folder_of_locks(reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUTOTUNE_LOCK_DIR", str(tmp_path))
    with pytest.raises(UsageError, match="AUTOTUNE_LOCK_DIR") as refused, device_lock("x", lambda line: None):
        pass
    assert f"the file system of {tmp_path} has no locks (flock: {reason})" in str(refused.value)


def test_a_first_use_goes_on_alone(reason: str, tmp_path: Path) -> None:
    with _alone(tmp_path / "cache" / "first-use" / "x.first", 1.0, lambda: None) as is_first:
        assert is_first


def test_a_lock_is_free_once(tmp_path: Path) -> None:
    with open(tmp_path / "x", "w") as one, open(tmp_path / "x") as other:
        assert lock(one.fileno(), tmp_path, "") and not lock(other.fileno(), tmp_path, "")
        assert not lock(other.fileno(), tmp_path, "", is_shared=True)
