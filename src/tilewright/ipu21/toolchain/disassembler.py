"""Disassembler: objects, images or raw words to text that assembles to the same bytes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath

import numpy as np

from ...errors import ObjectError
from ..isa.decode import InvalidInstruction, decode, decode_index
from ..isa.forms import FORMS
from .image import LinkedImage
from .listing import Item, Reference, Source, list_section
from .objects import ObjectFile, ObjectSection, ObjectSymbol, SourceLine

_NAME = re.compile(r"[A-Za-z_.][\w.$]*$")
_COMMENT_COLUMN = 56
_BRANCHES = {form.index for form in FORMS for operand in form.operands if operand.kind == "word_address"}


def disassemble(item: bytes | ObjectFile | LinkedImage, *, address: int = 0) -> str:
    """Assembly text of code and data.

    Relocations of an object appear as symbol expressions. Branch targets inside raw code or an image get
    names, which stand for their absolute addresses. Words that are no instruction, or that the assembler
    would refuse where they stand, appear as data. Each line ends with a comment giving address, words, and
    the source line that begins there, if known. Sections that are not loaded, and the grouping of sections,
    are not in the text.

    Args:
        item: raw code, an object, or a linked image.
        address: of the first byte of raw code.

    Raises:
        ObjectError: raw code is not a whole number of words.
    """
    if isinstance(item, ObjectFile):
        return _object_text(item)
    if isinstance(item, LinkedImage):
        return _image_text(item)
    if len(item) % 4:
        raise ObjectError(f"{len(item)} bytes are not a whole number of words")
    names = _target_names([(address, item)], {})
    lines = [*_assignments(names), ".text"]
    lines += _absolute_lines(item, address, True, names, {})
    return "\n".join(lines) + "\n"


def _line(item: Item, data: bytes, address: int, sources: Mapping[int, str]) -> str:
    words = data[item.offset : item.offset + item.size]
    shown = " ".join(
        f"{int.from_bytes(words[index : index + 4], 'little'):0{2 * len(words[index : index + 4])}x}"
        for index in range(0, min(len(words), 8), 4)
    )
    text = f"    {item.text}"
    place = address + item.offset
    return f"{text:<{_COMMENT_COLUMN}} # {place:05x}: {shown:<17}  {sources.get(place, '')}".rstrip()


def _sources(lines: Sequence[SourceLine]) -> dict[int, str]:
    """Where code of another source line begins -> that line, without the file's folder."""
    return {line.offset: f"{PurePath(line.file).name}:{line.line}" for line in lines if line.line}


# ---- images and raw code


def _target_names(code: list[tuple[int, bytes]], symbols: Mapping[str, int]) -> dict[int, str]:
    """Address -> name for symbols, and for branch targets inside the code that have none."""
    names: dict[int, str] = {}
    for name, value in symbols.items():
        if _NAME.match(name) and not name.startswith(".L"):
            names.setdefault(value, name)
    targets: set[int] = set()
    for _, data in code:
        words = np.frombuffer(data[: len(data) // 4 * 4], dtype="<u4").astype(np.uint32)
        forms = decode_index(words)
        for index in np.flatnonzero(np.isin(forms, list(_BRANCHES))):
            try:
                instruction = decode(int(words[index]))
            except InvalidInstruction:
                continue
            for operand, value in zip(instruction.form.operands, instruction.operands, strict=True):
                if operand.kind == "word_address":
                    targets.add(value)
    for value in sorted(targets):
        inside = any(start <= value < start + len(data) for start, data in code)
        if inside and value not in names:
            names[value] = f".L{value:x}"
    return names


def _assignments(names: Mapping[int, str]) -> list[str]:
    return [f".set {name}, {value:#x}" for value, name in sorted(names.items())]


def _absolute_lines(
    data: bytes, address: int, executable: bool, names: Mapping[int, str], sources: Mapping[int, str]
) -> list[str]:
    labels = frozenset(value - address for value in names if address <= value < address + len(data))

    def target(value: int) -> str:
        return names.get(value, f"{value:#x}")

    lines = []
    for item in list_section(Source(data, executable, labels, {}, target)):
        name = names.get(address + item.offset)
        if name is not None:
            lines.append(f"# {name}:")
        lines.append(_line(item, data, address, sources))
    return lines


def _image_text(image: LinkedImage) -> str:
    code = [(segment.address, segment.data) for segment in image.segments if "x" in segment.flags]
    names, sources = _target_names(code, image.symbols), _sources(image.lines)
    lines = _assignments(names)
    for segment in image.segments:
        executable = "x" in segment.flags
        flags = "a" + ("w" if "w" in segment.flags else "") + ("x" if executable else "")
        kind = ".text" if executable else ".data"
        lines.append(f'.section {kind}.{segment.address:x},"{flags}",@progbits')
        lines += _absolute_lines(segment.data, segment.address, executable, names, sources)
    return "\n".join(lines) + "\n"


# ---- objects


class _Names:
    """Names for the symbols of an object: its own where they can be written, made up otherwise."""

    def __init__(self, item: ObjectFile) -> None:
        self._item = item
        self.symbols: dict[int, str] = {}
        self.labels: dict[int, dict[int, list[str]]] = {}
        taken: set[str] = set()
        for index, symbol in enumerate(item.symbols):
            if symbol.type in ("section", "file"):
                continue
            name = (
                symbol.name
                if _NAME.match(symbol.name) and not symbol.name.startswith(".L ")
                else f".Lsymbol{index}"
            )
            if name in taken:
                name = f".Lsymbol{index}"
            taken.add(name)
            self.symbols[index] = name
            if symbol.section is not None:
                self.add(symbol.section, symbol.value, name)
        for section in item.sections:
            for entry in section.relocations:
                self._prepare(entry.symbol, entry.addend)

    def add(self, section: int, offset: int, name: str) -> None:
        names = self.labels.setdefault(section, {}).setdefault(offset, [])
        if name not in names:
            names.append(name)

    def _prepare(self, index: int, addend: int) -> None:
        symbol = self._item.symbols[index]
        if symbol.type == "section" and symbol.section is not None:
            self.add(symbol.section, self._place(symbol, addend), self._label(symbol, addend))

    def _place(self, symbol: ObjectSymbol, addend: int) -> int:
        """Offset of the label for section + addend: a statement boundary near it."""
        assert symbol.section is not None
        size = self._item.sections[symbol.section].size
        return max(0, min(symbol.value + addend, size) & ~3)

    def _label(self, symbol: ObjectSymbol, addend: int) -> str:
        return f".L{symbol.section}_{self._place(symbol, addend):x}"

    def expression(self, index: int, addend: int) -> str:
        symbol = self._item.symbols[index]
        if symbol.type == "section" and symbol.section is not None:
            name, rest = self._label(symbol, addend), symbol.value + addend - self._place(symbol, addend)
        else:
            name, rest = self.symbols.get(index, f".Lsymbol{index}"), addend
        return f"({name}{rest:+d})" if rest else name


def _object_text(item: ObjectFile) -> str:
    names = _Names(item)
    lines = _declarations(item, names)
    for index, section in enumerate(item.sections):
        if not section.allocated:
            lines.append(f"# {section.name}: {section.size} bytes, not loaded")
            continue
        kind = "nobits" if section.nobits else "progbits"
        lines.append(f'.section "{section.name}","{section.flags}",@{kind}')
        if section.alignment > 1:
            lines.append(f".balign {section.alignment}")
        lines += _section_lines(section, names.labels.get(index, {}), names)
    return "\n".join(lines) + "\n"


def _declarations(item: ObjectFile, names: _Names) -> list[str]:
    lines = []
    for index, symbol in enumerate(item.symbols):
        name = names.symbols.get(index)
        if name is None:
            continue
        if symbol.absolute:
            lines.append(f".set {name}, {symbol.value:#x}")
        if symbol.common:
            lines.append(f".comm {name}, {symbol.size}, {symbol.value}")
        if symbol.binding != "local" and not name.startswith(".L"):
            lines.append(f".{'weak' if symbol.binding == 'weak' else 'globl'} {name}")
        if symbol.hidden:
            lines.append(f".hidden {name}")
        if symbol.type in ("function", "object") and not name.startswith(".L"):
            lines.append(f".type {name},@{symbol.type}")
        if symbol.size and not symbol.common and not name.startswith(".L"):
            lines.append(f".size {name}, {symbol.size}")
    return lines


def _section_lines(section: ObjectSection, labels: Mapping[int, list[str]], names: _Names) -> list[str]:
    if section.nobits:
        return _reserved_lines(section, labels)
    references = {
        entry.offset: Reference(entry.type, names.expression(entry.symbol, entry.addend))
        for entry in section.relocations
    }
    lines: list[str] = []
    sources = _sources(section.lines)
    items = list_section(Source(section.data, section.executable, frozenset(labels), references))
    for item in items:
        lines += [f"{name}:" for name in labels.get(item.offset, ())]
        lines.append(_line(item, section.data, 0, sources))
    lines += [f"{name}:" for name in labels.get(len(section.data), ())]
    return lines


def _reserved_lines(section: ObjectSection, labels: Mapping[int, list[str]]) -> list[str]:
    lines: list[str] = []
    offset = 0
    for stop in sorted({*labels, section.size}):
        if stop > offset:
            lines.append(f"    .space {stop - offset}")
        lines += [f"{name}:" for name in labels.get(stop, ())]
        offset = max(offset, stop)
    return lines
