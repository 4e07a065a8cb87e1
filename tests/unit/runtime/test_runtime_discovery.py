"""Listing devices never claims a card, and says why."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilewright.errors import DeviceError, UsageError
from tilewright.runtime import list_devices, open_device

pytestmark = pytest.mark.unit


def test_simulator_is_always_there(tmp_path: Path) -> None:
    (info,) = list_devices(nodes=tmp_path / "none", pci=tmp_path / "none")
    assert info.name == "sim" and info.usable and not info.reason


def test_nodes_are_listed_with_the_reason(tmp_path: Path) -> None:
    for name in ("ipu10", "ipu2", "ipu2_ex", "ipu2_mem", "ipu", "xipu3"):
        (tmp_path / name).touch()
    found = list_devices(nodes=tmp_path, pci=tmp_path / "none")
    assert [info.name for info in found] == ["sim", "ipu:2", "ipu:10"]
    assert not found[1].usable and "no driver for cards" in found[1].reason


def test_card_without_node(tmp_path: Path) -> None:
    for name, vendor in (
        ("0000:01:00.0", "0x1d95\n"),
        ("0000:02:00.0", "0x8086\n"),
        ("0000:03:00.0", "junk"),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "vendor").write_text(vendor)
    (tmp_path / "0000:04:00.0").mkdir()
    found = list_devices(nodes=tmp_path / "none", pci=tmp_path)
    assert [info.name for info in found] == ["sim", "pci:0000:01:00.0"]
    assert not found[1].usable and "kernel module is not loaded" in found[1].reason


def test_names_that_cannot_be_opened() -> None:
    with pytest.raises(UsageError, match="no device is called 'gpu'"):
        open_device("gpu")
    with pytest.raises(DeviceError, match="ipu:99: there is no such device"):
        open_device("ipu:99")
    with pytest.raises(UsageError, match="no engine 'fast' \\(translated or reference\\)"):
        open_device("sim", engines="fast")
    with pytest.raises(UsageError, match="ipu:0: only the simulator has engines"):
        open_device("ipu:0", engines="reference")
