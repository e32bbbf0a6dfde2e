"""Transport ibv: what it asks spead2 for, and one line where the machine does not have what it takes."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spead2
import spead2.send

from autotune import UsageError
from autotune.engines.network import ibverbs
from autotune.engines.network.endpoints import endpoints
from autotune.engines.network.received import ReceivedSamples
from autotune.engines.network.receiver import Listening, add_readers
from autotune.engines.network.voltage_outlet import VoltageOutlet
from autotune.engines.streams.samples import SampleInfo
from autotune.engines.streams.voltages import VoltageInfo

from ..service.air import Air, ended

CARD = "192.0.2.1"
PLACES = endpoints("239.1.1.1+1:7148")
PAIRS = [("239.1.1.1", 7148), ("239.1.1.2", 7148)]
SAMPLES = SampleInfo(8, 2, 1e6, 256)
VOLTAGES = VoltageInfo(64, 2, 8, 16, 128, SAMPLES)


def receive(interface: str = CARD) -> None:
    source = ReceivedSamples(SAMPLES, Listening([PLACES], "ibv", interface))
    source.lend([np.zeros((2, 2048), np.uint8) for _ in range(6)])


def send(interface: str = CARD) -> None:
    VoltageOutlet(VOLTAGES, 0, 1, "ibv", PLACES, interface=interface)


@pytest.mark.parametrize(
    ("act", "begin"),
    [(receive, "nothing can be received at"), (send, "nothing can be sent to")],
)
def test_what_is_missing_is_said_in_one_line(
    act: Any, begin: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    begin = f"{begin} 239.1.1.1:7148, 239.1.1.2:7148 by ibv: "

    def refused(interface: str = CARD) -> str:
        with pytest.raises(UsageError) as error:
            act(interface)
        assert str(error.value).startswith(begin) and "\n" not in str(error.value)
        return str(error.value)[len(begin) :]

    assert refused("") == "it needs an interface, the address of the card"
    monkeypatch.setattr(ibverbs, "LIBRARIES", ("libnowhere.so.1",))
    assert refused() == "libnowhere.so.1 of rdma-core is not installed"
    monkeypatch.setattr(ibverbs, "LIBRARIES", ())
    monkeypatch.setattr(ibverbs, "CARDS", tmp_path)
    assert refused() == f"there is no card with ibverbs in {tmp_path}"
    (tmp_path / "mlx5_0").mkdir()
    assert refused(), "spead2 says that it is not one"


def test_a_member_has_one_reader_of_all_its_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ibverbs, "check_ibverbs", lambda interface: None)
    asked: list[Any] = []

    class Member:
        add_udp_ibv_reader = asked.append

    add_readers(Member(), PLACES, Listening([PLACES], "ibv", CARD))  # type: ignore[arg-type]
    (config,) = asked
    assert (config.endpoints, config.interface_address) == (PAIRS, CARD)


def test_a_stream_has_all_destinations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ibverbs, "check_ibverbs", lambda interface: None)
    asked: list[Any] = []
    queues = [spead2.InprocQueue(), spead2.InprocQueue()]

    def stream(pool: Any, config: Any, given: Any) -> Any:
        asked.append(given)
        return spead2.send.InprocStream(pool, queues, config)

    monkeypatch.setattr(spead2.send, "UdpIbvStream", stream)
    send()
    (given,) = asked
    assert (given.endpoints, given.interface_address, given.ttl) == (PAIRS, CARD, 4)


def test_engines_without_such_a_card_end_with_a_line(tmp_path: Path) -> None:
    with ended(Air(tmp_path, "ibv", n_antennas=1)) as air:
        for engine, status, begin in (
            (air.x(), 1, "nothing can be received at"),
            (air.f(0), 2, "nothing can be sent to"),
        ):
            assert engine.ends() == status
            (line,) = [line for line in engine.lines if "by ibv" in line]
            assert f"{begin} 127.0.0.1:{air.voltage_ports[0]} by ibv: it needs an interface" in line
        assert not (tmp_path / "vis.h5").exists(), "nothing will come into it"
