"""Numbers and record shapes of ELF32 as Colossus uses it (known: published target description, objects)."""

from __future__ import annotations

import struct

HEADER = struct.Struct("<16sHHIIIIIHHHHHH")
SECTION_HEADER = struct.Struct("<IIIIIIIIII")
PROGRAM_HEADER = struct.Struct("<IIIIIIII")
SYMBOL = struct.Struct("<IIIBBH")
RELA = struct.Struct("<IIi")

IDENT = b"\x7fELF" + bytes([1, 1, 1, 255, 0]) + bytes(7)
"""ELFCLASS32, little endian, version 1, ELFOSABI_STANDALONE."""
MACHINE = 248
FLAGS_IPU21 = 0x21
FLAGS_IPU2 = 0x02
ARCHITECTURES = {0: "unstated", 0x01: "ipu1", FLAGS_IPU2: "ipu2", FLAGS_IPU21: "ipu21"}
"""Low byte of the header flags -> architecture (known)."""
FLAGS_MASK = 0xFF

ET_REL = 1
ET_EXEC = 2
PT_LOAD = 1

SHT_PROGBITS = 1
SHT_SYMTAB = 2
SHT_STRTAB = 3
SHT_RELA = 4
SHT_NOTE = 7
SHT_NOBITS = 8
SHT_REL = 9
SHT_GROUP = 17
SHT_SYMTAB_SHNDX = 18

SHF_WRITE = 1
SHF_ALLOC = 2
SHF_EXECINSTR = 4
SHF_INFO_LINK = 0x40
SHF_GROUP = 0x200

GRP_COMDAT = 1

SHN_UNDEF = 0
SHN_LORESERVE = 0xFF00
SHN_ABS = 0xFFF1
SHN_COMMON = 0xFFF2

BINDING_NUMBERS = {"local": 0, "global": 1, "weak": 2}
STT_COMMON = 5
"""Some writers' type of common symbols, which are objects."""
TYPE_NUMBERS = {"notype": 0, "object": 1, "function": 2, "section": 3, "file": 4}
STV_HIDDEN = 2

FLAG_BITS = {"a": SHF_ALLOC, "w": SHF_WRITE, "x": SHF_EXECINSTR}


def flag_letters(bits: int) -> str:
    """Our letters for the section flags we know."""
    return "".join(letter for letter, bit in FLAG_BITS.items() if bits & bit)


class StringTable:
    """A string table under construction; equal names share one entry."""

    def __init__(self) -> None:
        self.data = bytearray(b"\0")
        self._offsets: dict[str, int] = {"": 0}

    def add(self, text: str) -> int:
        offset = self._offsets.get(text)
        if offset is None:
            offset = self._offsets[text] = len(self.data)
            self.data += text.encode() + b"\0"
        return offset
