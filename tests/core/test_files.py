"""Files are read whole and within bounds, and written whole or not at all; errors name them."""

import errno
import gzip
import os
import zlib
from pathlib import Path

import numpy as np
import pytest

from autotune import UsageError
from autotune.core.files import check_free, content_of, named_errors, unzipped, write_whole

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("n", [0, 1, 999, 1000])
def test_what_is_packed_is_bounded_before_it_is_kept(n: int) -> None:
    data = os.urandom(n)
    assert unzipped(gzip.compress(data), 1000) == data
    assert data.startswith(unzipped(gzip.compress(data)[:-9], 1000)), "of what was cut off there is a part"
    with pytest.raises(OSError, match="more than 1000 bytes when it is unpacked"):
        unzipped(gzip.compress(bytes(1 << 26)), 1000)
    with pytest.raises(OSError, match="more than 100 times as long"):
        unzipped(gzip.compress(bytes((1 << 26) + 1)), 1 << 30)
    assert unzipped(gzip.compress(bytes(1 << 26)), 1 << 30) == bytes(1 << 26)


def test_damage_in_what_is_packed_is_an_error() -> None:
    packed = bytearray(gzip.compress(os.urandom(5000)))
    packed[2000] ^= 0xFF
    with pytest.raises(zlib.error):
        unzipped(bytes(packed), 10_000)


def test_a_file_is_bounded_and_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(bytes(100))
    assert content_of(path, 100) == bytes(100)
    with pytest.raises(OSError, match="it has 100 bytes, and such a file has at most 99"):
        content_of(path, 99)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="it is a pipe"):
        content_of(tmp_path / "pipe")


def test_a_disk_that_fills_up_has_the_files_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_whole(tmp_path / "x", b"old")

    def full(self: Path, data: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full)
        with pytest.raises(OSError, match="No space left") as failed:
            write_whole(path, b"new")
    assert failed.value.filename == str(path) and path.read_bytes() == b"old" and list(tmp_path.iterdir()) == [path]
    with pytest.raises(OSError, match="4096 requested and 0 written") as failed, named_errors(path):
        raise OSError("4096 requested and 0 written")  # as NumPy says it
    assert (failed.value.errno, failed.value.filename) == (errno.ENOSPC, str(path))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is full")
def test_numpy_names_a_full_disk() -> None:
    full = Path("/dev/full")
    with pytest.raises(OSError, match=r"stored whole|No space") as failed, named_errors(full), full.open("wb") as file:
        np.save(file, np.zeros(1 << 20))
    assert failed.value.errno == errno.ENOSPC


def test_what_is_there_stays(tmp_path: Path) -> None:
    path = tmp_path / "x"
    assert check_free(path) == path
    path.touch()
    assert check_free(path, overwrite=True) == path
    with pytest.raises(UsageError, match="x: it exists; give another name, remove it, or replace it by --overwrite"):
        check_free(path)
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    for other in (tmp_path, tmp_path / "gone"):
        with pytest.raises(UsageError, match=r"it exists; give another name, remove it$"):
            check_free(other, overwrite=True)
