"""A linked program for one tile: bytes at absolute addresses."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

import numpy as np

from ...errors import ObjectError
from ..isa.decode import provisional_mask
from .objects import SourceLine


@dataclass(frozen=True, slots=True)
class LinkedSegment:
    """Bytes at `address`. `flags` holds r, w, x; `sections` names what went in, with addresses."""

    address: int
    data: bytes
    flags: str
    sections: tuple[tuple[str, int], ...] = ()

    @property
    def end(self) -> int:
        return self.address + len(self.data)


@dataclass(slots=True)
class LinkedImage:
    """Segments by rising address, symbols (globals, and local functions) by name, and the entry address.

    `provisional` lists (address, word) of the instruction words that rest on a number which is not public;
    an image with any of them is for the simulator only. `stack_sizes` holds the stack bytes of the functions
    that state them. `warnings` tells what the link accepted with doubts, and is kept in no file. `lines` say
    where code was written, as far as that is known.
    """

    segments: tuple[LinkedSegment, ...] = ()
    symbols: dict[str, int] = field(default_factory=dict)
    entry: int | None = None
    provisional: tuple[tuple[int, int], ...] = ()
    stack_sizes: dict[str, int] = field(default_factory=dict)
    warnings: tuple[str, ...] = field(default=(), compare=False)
    lines: tuple[SourceLine, ...] = field(default=(), compare=False, repr=False)

    def to_elf(self) -> bytes:
        """ELF32 executable: one PT_LOAD per segment, an absolute symbol table, and source lines as DWARF.

        Equal images with equal lines give equal bytes.
        """
        from .elf_writer import write_image

        return write_image(self)

    @classmethod
    def from_elf(cls, data: bytes, *, name: str = "<image>") -> LinkedImage:
        """Read an image. Raises ObjectError naming `name` and the place of the fault."""
        from .elf_reader import read_image

        return read_image(data, name=name)

    def read(self, address: int, size: int) -> bytes:
        """`size` bytes at `address`. Raises ObjectError when no one segment holds them."""
        for segment in self.segments:
            if segment.address <= address and address + size <= segment.end:
                return segment.data[address - segment.address : address - segment.address + size]
        raise ObjectError(f"no segment holds {size} bytes at {address:#x}")


def image_symbol(image: LinkedImage, address: int) -> str | None:
    """An address as `symbol+0xoffset` by the nearest symbol at or before it in its segment, or None."""
    start = max((item.address for item in image.segments if item.address <= address < item.end), default=None)
    if start is None:
        return None
    found: tuple[int, str] | None = None
    for name, value in image.symbols.items():
        if start <= value <= address and (found is None or value > found[0]):
            found = (value, name)
    if found is None:
        return None
    return found[1] if found[0] == address else f"{found[1]}+{address - found[0]:#x}"


def image_source(image: LinkedImage, address: int) -> tuple[str, int] | None:
    """File and line of the code at an address, as far as known."""
    index = bisect_right(image.lines, address, key=lambda line: line.offset) - 1
    if index < 0 or not image.lines[index].line:
        return None
    return image.lines[index].file, image.lines[index].line


def provisional_words(address: int, code: bytes) -> list[tuple[int, int]]:
    """(address, word) of words in `code` whose number is not public. The payload of `sendpicp` is no
    instruction.
    """
    words = np.frombuffer(code[: len(code) // 4 * 4], dtype="<u4").astype(np.uint32)
    found = provisional_mask(words)
    result: list[tuple[int, int]] = []
    for index in np.flatnonzero(found):
        # `sendpicp` is 8-byte aligned and its payload follows; the top bits of no other word are all set.
        if index and (address + 4 * int(index)) % 8 == 4 and int(words[index - 1]) >> 28 == 0xF:
            continue
        result.append((address + 4 * int(index), int(words[index])))
    return result
