"""Assembler, disassembler, objects and linker for IPU21 tile code."""

from .assembler import assemble
from .diagnostics import AssemblyFaults, Diagnostic
from .disassembler import disassemble
from .image import LinkedImage, LinkedSegment
from .linker import CODE_REGION, link
from .objects import Group, ObjectFile, ObjectSection, ObjectSymbol, Relocation

__all__ = [
    "CODE_REGION",
    "AssemblyFaults",
    "Diagnostic",
    "Group",
    "LinkedImage",
    "LinkedSegment",
    "ObjectFile",
    "ObjectSection",
    "ObjectSymbol",
    "Relocation",
    "assemble",
    "disassemble",
    "link",
]
