"""Which devices there are, and opening one by name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tilewright.errors import DeviceError, UsageError

from .device import Device

SIMULATOR = "sim"
GRAPHCORE_VENDOR = 0x1D95
"""PCI vendor id (known, PCI ID repository)."""

_NODE = re.compile(r"ipu(\d+)")
_NO_DRIVER = "this version of Tilewright has no driver for cards"


@dataclass(frozen=True)
class DeviceInfo:
    """A device as listed. `reason` says why it cannot be used, and is empty when it can."""

    name: str
    description: str
    usable: bool
    reason: str = ""


def list_devices(*, nodes: Path = Path("/dev"), pci: Path = Path("/sys/bus/pci/devices")) -> list[DeviceInfo]:
    """The simulator, then every card the system shows. Never opens a card or changes its state.

    `nodes` and `pci` are where device nodes and PCI functions are looked for.
    """
    found = [DeviceInfo(SIMULATOR, "simulated IPU21 chip, 1,472 tiles", True)]
    numbers = sorted(int(match[1]) for path in _entries(nodes) if (match := _NODE.fullmatch(path.name)))
    found += [
        DeviceInfo(f"ipu:{number}", str(nodes / f"ipu{number}"), False, _NO_DRIVER) for number in numbers
    ]
    if not numbers:
        reason = f"no device node {nodes / 'ipu0'}: the kernel module is not loaded; {_NO_DRIVER}"
        found += [
            DeviceInfo(f"pci:{path.name}", "Graphcore card on the PCI bus", False, reason)
            for path in _entries(pci)
            if _vendor(path) == GRAPHCORE_VENDOR
        ]
    return found


def open_device(name: str = SIMULATOR, *, check: bool = False, engines: str | None = None) -> Device:
    """Open a device: `sim`, or `ipu:N` for a card. Use it as a context manager or call `close`.

    Args:
        check: the simulator looks for more than the machine would notice: memory nobody has written, races
            between workers, stores into code, words nobody hears. A little slower.
        engines: how the simulator executes: `translated` (workers as native code, the default) or
            `reference` (the definition, slower). Results, cycles and errors are the same.

    Raises UsageError for a name that means nothing or a card that should check or simulate, and DeviceError
    for a device that is absent or not usable.
    """
    if name == SIMULATOR:
        # The simulator brings its compiler with it, which takes a second to load: only when asked for.
        from tilewright.ipu21.simulator.checks import Checks
        from tilewright.ipu21.simulator.choice import TRANSLATED
        from tilewright.ipu21.simulator.device import SimulatedDevice
        from tilewright.ipu21.simulator.hazards import PhaseChecks

        chosen = engines or TRANSLATED
        if not check:
            return SimulatedDevice(engines=chosen)
        phase_checks = PhaseChecks(listening=True, unwritten=True)
        return SimulatedDevice(checks=Checks.thorough(), phase_checks=phase_checks, engines=chosen)
    if check:
        raise UsageError("only the simulator can check a run", where=name)
    if engines is not None:
        raise UsageError("only the simulator has engines to choose from", where=name)
    if not re.fullmatch(r"ipu:\d+", name):
        raise UsageError(f"no device is called {name!r}", hint="known: sim, ipu:0, ipu:1, ...")
    info = next((info for info in list_devices() if info.name == name), None)
    if info is None:
        raise DeviceError(
            "there is no such device", where=name, hint="`tilewright devices` lists what there is"
        )
    raise DeviceError(info.reason, where=name, hint="use `sim`")


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _vendor(function: Path) -> int | None:
    try:
        return int((function / "vendor").read_text(encoding="ascii"), 16)
    except (OSError, ValueError):
        return None
