"""What drifts by more than max_delay_diff in the file of an F-engine is left out and counted."""

import socket
from pathlib import Path

import numpy as np
import pytest

from autotune.engines.corrections.delays import DelayModel, Piece
from autotune.engines.files.delay_file import write_delays
from autotune.engines.jobs import Running
from autotune.engines.network.endpoints import Endpoint
from autotune.engines.network.sample_outlet import SampleOutlet
from autotune.engines.service.f_service import FService, f_service_settings

from ..network.ports import free_ports
from .in_process import running

C, TAPS, PACKET, N_PACKETS, HEAP = 64, 4, 128, 512, 16
STEP, WINDOW = 2 * C, 2 * C * TAPS
N_SPECTRA = (N_PACKETS * PACKET - WINDOW) // STEP + 1


@pytest.mark.parametrize(("said", "n_in"), [("max_delay_diff = 200\n", 2 * PACKET + 1), ("", N_SPECTRA)])
def test_spectra_beyond_it_are_counted(tmp_path: Path, said: str, n_in: int) -> None:
    """A delay grows by 1 from spectrum to spectrum; 200 samples are kept as 2 packets, and the other's delay is 0."""
    ports = free_ports(2, socket.SOCK_STREAM)
    drifts = DelayModel(Piece(0, 0.0, rate=1 / STEP))
    write_delays(tmp_path / "d.toml", {"*": [DelayModel(), drifts]})
    path = tmp_path / "f.toml"
    path.write_text(
        f"sample_rate_hz = 1e6\npacket = {PACKET}\nchunk = {64 * PACKET}\n{said}"
        f'[from]\nlisten = ["127.0.0.1:{ports[0]}", "127.0.0.1:{ports[1]}"]\ntransport = "tcp"\n'
        f'[to]\nchannels = {C}\ntaps = {TAPS}\nspectra_per_heap = {HEAP}\ndelays = "d.toml"\nfile = "v.h5"\n'
    )
    settings = f_service_settings(path)
    with running(FService(settings, Running(device="host"), print), once=True) as service:
        outlet = SampleOutlet(settings.info, "tcp", [[Endpoint("127.0.0.1", port)] for port in ports])
        for pol in range(2):
            payload = np.random.default_rng(pol).integers(0, 256, (N_PACKETS, PACKET * 10 // 8), dtype=np.uint8)
            times = PACKET * np.arange(N_PACKETS)
            outlet.send(pol, outlet.packets(times, pol, payload, np.zeros(N_PACKETS, np.int64)), times)
        outlet.close()
        assert service.ends() == 0
        made = service.made()
        assert made["spectra_beyond"] == N_SPECTRA - n_in
        assert made["heaps_out"] == n_in // HEAP
        assert made["heaps_missing"] == N_SPECTRA // HEAP - made["heaps_out"]
