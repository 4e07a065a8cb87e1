"""Assembler, disassembler, objects and linker for IPU21 tile code."""

from .assembler import assemble
from .diagnostics import AssemblyFaults, Diagnostic
from .objects import ObjectFile, ObjectSection, ObjectSymbol, Relocation

__all__ = ["AssemblyFaults", "Diagnostic", "ObjectFile", "ObjectSection", "ObjectSymbol", "Relocation", "assemble"]
