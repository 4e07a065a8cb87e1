"""The runtime's session drives the simulated chip: the worked example as a call, one array in and one out."""

from __future__ import annotations

import numpy as np
import pytest
import worked_example as example

from tilewright.ipu21.simulator.device import SimulatedDevice
from tilewright.package.reader import read_package
from tilewright.package.records import HOST_SLICE, SLICE, Binding, HostCall, Package
from tilewright.package.writer import write_package
from tilewright.runtime.device import Device
from tilewright.runtime.session import Session

pytestmark = pytest.mark.sim


def package() -> Package:
    """Three u32 elements, padded to four on the host's side; the program's packets carry three."""

    def tile_slice(tile: int, address: int) -> np.ndarray[tuple[int], np.dtype[np.void]]:
        return np.array([(tile, address, 0, 16, 0, 1, 1, 0, 3, 4)], SLICE)

    def host_slice(offset: int) -> np.ndarray[tuple[int], np.dtype[np.void]]:
        return np.array([(1, offset, 0, 16)], HOST_SLICE)

    call = HostCall("run", 0, 4, host_slice(0), host_slice(0x1000), 1, [1], [1])
    result = example.worked_package()
    result.host_exchange.calls = [call]
    result.inputs = [
        Binding("x", "uint32", "uint32", (3,), "row-major", (1, 3), tile_slice(0, example.LANDING))
    ]
    result.outputs = [
        Binding("y", "uint32", "uint32", (3,), "row-major", (1, 3), tile_slice(53, example.TARGET))
    ]
    return result


def test_the_simulator_is_a_device() -> None:
    assert isinstance(SimulatedDevice(), Device)


def test_words_come_back_through_the_file_format() -> None:
    values = np.array([0xDEADBEEF, 1, 0xFFFFFFFF], np.uint32)
    stored = read_package(write_package(package()))
    with SimulatedDevice() as device, Session(device, stored) as session:
        outputs = session.run({"x": values})
        assert outputs["y"].tolist() == values.tolist()
        assert device.waits_for() is None
