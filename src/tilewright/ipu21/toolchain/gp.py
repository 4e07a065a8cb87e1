"""`.gp` archives, the output of the vendor's compiler: one relocatable object per target.

A `.gp` file is one packed Cap'n Proto message. The root's first list holds one entry per target: pointer 0
its name, 1 its architecture, 2 the compiler's description of codelets (its schema is not public:
open), 3 a list of which the first element is the ELF object (derived from a published sample).
"""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import ObjectError
from .capnp_message import Message, looks_packed, unpack
from .objects import ObjectFile

PREFERENCE = ("ipu21", "ipu2")
"""Architectures whose code runs here, best first."""
MAXIMUM_TARGETS = 64
_ELF = b"\x7fELF"


@dataclass(frozen=True, slots=True)
class GpTarget:
    """One target of an archive: its name (such as `ipu2:cpp`), its architecture, and its ELF object."""

    name: str
    architecture: str
    elf: bytes


def is_gp(data: bytes) -> bool:
    """True if the data begins like a `.gp` archive."""
    return not data.startswith(_ELF) and looks_packed(data)


def read_gp(data: bytes, *, name: str = "<archive>") -> list[GpTarget]:
    """The targets of an archive, in order. Raises ObjectError naming `name` and the place of the fault."""
    message = Message(unpack(data, name=name), name=name)
    targets: list[GpTarget] = []
    for entry in message.root().structs(0):
        if len(targets) >= MAXIMUM_TARGETS:
            raise ObjectError(f"the archive has over {MAXIMUM_TARGETS} targets", where=name)
        parts = entry.datas(3)
        elf = next((part for part in parts if part.startswith(_ELF)), None)
        if elf is None:
            raise ObjectError(f"target {entry.text(0)} has no ELF object", where=name)
        targets.append(GpTarget(entry.text(0), entry.text(1), elf))
    if not targets:
        raise ObjectError("the archive has no target", where=name)
    return targets


def choose_target(targets: list[GpTarget], *, name: str, wanted: str | None = None) -> GpTarget:
    """The target to use: the one named `wanted`, or the best that runs here. Raises ObjectError."""
    listed = ", ".join(target.name for target in targets)
    if wanted is not None:
        for target in targets:
            if wanted in (target.name, target.architecture):
                return target
        raise ObjectError(f"the archive has no target {wanted}", where=name, hint=f"it has {listed}")
    for architecture in PREFERENCE:
        for target in targets:
            if target.architecture == architecture:
                return target
    raise ObjectError(
        "no target of the archive runs on ipu21", where=name, hint=f"it has {listed}; compile for ipu21"
    )


def extract_object(data: bytes, *, name: str = "<archive>", target: str | None = None) -> ObjectFile:
    """The relocatable object of an archive for this machine. Raises ObjectError."""
    chosen = choose_target(read_gp(data, name=name), name=name, wanted=target)
    return ObjectFile.from_bytes(chosen.elf, name=f"{name}({chosen.name})")
