"""Code for one tile, from text or files of any kind the tool chain knows."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from tilewright.errors import UsageError
from tilewright.files import read_file
from tilewright.ipu21.machine.memory import IMAGE_BASE, REGION1_BASE
from tilewright.ipu21.machine.timing import WORKER_SLOTS
from tilewright.ipu21.toolchain import LinkedImage, ObjectFile, assemble, link
from tilewright.ipu21.toolchain.image import image_source, image_symbol
from tilewright.ipu21.toolchain.inputs import read_inputs

SOURCE_LIMIT = 64 << 20
"""Bytes of a file that are read at most."""
_ELF = b"\x7fELF"


STACK_BYTES = 4096
"""Bytes of the stack each context has at the end of region 0, unless something else is there."""
STACK_TOP = REGION1_BASE
"""The supervisor's stack begins here and grows down; the workers' follow below."""
SCRATCH_BYTES = 256
"""Bytes above a worker's base that its code may use too, as published kernels do."""


def stacks_size(stack: int) -> int:
    """Bytes of the stacks of a tile when each has `stack` bytes."""
    return stack + WORKER_SLOTS * (stack + SCRATCH_BYTES)


def worker_base(top: int, stack: int, worker: int) -> int:
    """Where the stack of a worker begins, given where the supervisor's does."""
    return top - stack - SCRATCH_BYTES - worker * (stack + SCRATCH_BYTES)


STACKS = stacks_size(STACK_BYTES)

_SUPPORT = f"""
.weak __supervisor_base, __supervisor_stack_max_growth_plus_one, __worker_stack_max_growth_plus_one
.weak _stackoverflow
.set __supervisor_base, {STACK_TOP:#x}
.set __supervisor_stack_max_growth_plus_one, {STACK_BYTES + 1}
.set __worker_stack_max_growth_plus_one, {STACK_BYTES + 1}
.section .text._stackoverflow, "ax"
_stackoverflow: trap 0
"""
"""What compiled code with stack checks expects of its surroundings (known names)."""


class TileProgram:
    """A linked image with its symbols and, as far as its files tell, its source lines."""

    def __init__(self, image: LinkedImage) -> None:
        self.image = image

    @classmethod
    def from_source(
        cls,
        text: str,
        *,
        filename: str = "<string>",
        defines: Mapping[str, int | str] | None = None,
        include_dirs: Sequence[str | Path] = (),
        externals: Mapping[str, int] | None = None,
    ) -> TileProgram:
        """Assemble and link one text. Raises AssemblyError or LinkError."""
        item = assemble(text, filename=filename, defines=defines, include_dirs=include_dirs)
        return cls.from_objects([item], externals=externals)

    @classmethod
    def from_objects(
        cls,
        objects: Sequence[ObjectFile],
        *,
        roots: Sequence[str] = (),
        libraries: Sequence[Sequence[ObjectFile]] = (),
        externals: Mapping[str, int] | None = None,
    ) -> TileProgram:
        """Link objects; with `roots` only what they lead to. `libraries` as for `link`. Raises LinkError."""
        everything = [*objects, *(item for library in libraries for item in library)]
        names = {symbol.name for item in everything for symbol in item.symbols if not symbol.defined}
        items = list(objects)
        support = assemble(_SUPPORT, filename="support")
        if names & {symbol.name for symbol in support.symbols}:
            items.append(support)
        intervals = [(IMAGE_BASE, STACK_TOP - STACKS)]
        image = link(items, intervals=intervals, roots=roots, libraries=libraries, externals=externals)
        return cls(image)

    @classmethod
    def from_files(
        cls,
        paths: Sequence[str | Path],
        *,
        roots: Sequence[str] = (),
        also: Collection[str] = (),
        defines: Mapping[str, int | str] | None = None,
        include_dirs: Sequence[str | Path] = (),
        externals: Mapping[str, int] | None = None,
        preprocessor: str | None = None,
    ) -> TileProgram:
        """A program from one linked image, or from any number of sources, objects and archives (`.gp`, `.a`).

        Args:
            roots: symbols to keep with what they need; without them everything stays.
            also: further symbols to keep if some file defines them.
            preprocessor: an outside command such as `gcc -E` for the sources; default is the built-in one.

        Raises:
            TilewrightError of the kind that fits the fault.
        """
        files = [(Path(path), read_file(path, limit=SOURCE_LIMIT)) for path in paths]
        if not files:
            raise UsageError("there is no file to run")
        images = [path for path, data in files if _is_image(data)]
        if images and len(files) > 1:
            raise UsageError(f"{images[0]} is linked already", hint="give it alone, or give its objects")
        if images:
            return cls(LinkedImage.from_elf(files[0][1], name=str(files[0][0])))
        given = read_inputs(files, defines=defines, include_dirs=include_dirs, preprocessor=preprocessor)
        members = [item for library in given.libraries for item in library]
        if roots:
            defined = {
                symbol.name
                for item in [*given.objects, *members]
                for symbol in item.symbols
                if symbol.defined and symbol.binding != "local"
            }
            roots = [*roots, *sorted(defined & set(also))]
        return cls.from_objects(given.objects, roots=roots, libraries=given.libraries, externals=externals)

    @property
    def symbols(self) -> Mapping[str, int]:
        return self.image.symbols

    def address(self, name: str) -> int:
        """Address of a symbol. Raises UsageError naming the nearest ones."""
        if name in self.image.symbols:
            return self.image.symbols[name]
        from tilewright.ipu21.toolchain.diagnostics import did_you_mean

        known = sorted(self.image.symbols)
        hint = did_you_mean(name, known) or f"it has {', '.join(known[:8]) or 'none'}"
        raise UsageError(f"there is no symbol {name} in the program", hint=hint)

    def symbol_at(self, address: int) -> str | None:
        """`symbol+0xoffset`, or None."""
        return image_symbol(self.image, address)

    def source_at(self, address: int) -> tuple[str, int] | None:
        """File and line of the instruction at an address, as far as known."""
        return image_source(self.image, address)


def _is_image(data: bytes) -> bool:
    return data.startswith(_ELF) and int.from_bytes(data[16:18], "little") != 1
