"""The kernel's tables of sockets: a read that lacks an open connection closes nothing."""

from pathlib import Path

import pytest

from autotune.engines.network import kernel_sockets
from autotune.engines.network.kernel_sockets import MISSED_READS, Connections

pytestmark = pytest.mark.quick
HEAD = "  sl  local_address rem_address   st\n"
OPEN = "   0: 0100007F:{port:04X} 0100007F:8000 {state}\n"


@pytest.fixture
def proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(kernel_sockets, "PROC", tmp_path)
    return tmp_path / "tcp"


def table(*ports: int, state: str = "01") -> str:
    return HEAD + "".join(OPEN.format(port=port, state=state) for port in ports)


def test_a_connection_that_one_read_lacks_is_open(proc: Path) -> None:
    watched = Connections({7148, 7149})
    for text in (table(7148), *[HEAD] * (MISSED_READS - 1), table(7148), *[HEAD] * (MISSED_READS - 1)):
        proc.write_text(text)
        assert watched.n_closed() == 0


def test_one_that_several_reads_lack_has_closed_and_stays_so(proc: Path) -> None:
    watched = Connections({7148, 7149})
    closed = []
    for text in (table(7148, 7149), *[table(7149)] * MISSED_READS, table(7149), *[table(6000)] * MISSED_READS):
        proc.write_text(text)
        closed.append(watched.n_closed())
    assert closed == [*[0] * MISSED_READS, 1, 1, *[1] * (MISSED_READS - 1), 2]


@pytest.mark.parametrize(("state", "n"), [("08", 0), ("0A", 1), ("06", 1)])
def test_data_may_wait_after_the_other_end_has_closed(proc: Path, state: str, n: int) -> None:
    """CLOSE_WAIT is open; LISTEN and TIME_WAIT are not."""
    watched = Connections({7148})
    for text in (table(7148), *[table(7148, state=state)] * MISSED_READS):
        proc.write_text(text)
        found = watched.n_closed()
    assert found == n


def test_a_port_that_never_had_a_connection_has_not_closed(proc: Path) -> None:
    watched = Connections({7148})
    proc.write_text(HEAD)
    assert [watched.n_closed() for _ in range(2 * MISSED_READS)] == [0] * (2 * MISSED_READS)
