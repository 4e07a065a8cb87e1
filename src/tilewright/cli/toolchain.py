"""`tilewright asm`, `disasm` and `link`: tile code between text, objects and images."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tilewright.errors import UsageError

from .console import JsonOption, byte_size, note, print_json

if TYPE_CHECKING:
    from tilewright.ipu21.toolchain import LinkedImage, ObjectFile

SOURCE_LIMIT = 64 << 20
"""Bytes of a source or object file that are read at most."""

_ELF_TYPE = 16
_RELOCATABLE = 1


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("asm", no_args_is_help=True)(asm_command)
    app.command("disasm", no_args_is_help=True)(disasm_command)
    app.command("link", no_args_is_help=True)(link_command)


def asm_command(
    source: Annotated[Path, typer.Argument(metavar="FILE.S", help="Assembly source, vendor syntax.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE.o", help="Object to write.")],
    defines: Annotated[
        list[str] | None,
        typer.Option("--define", "-D", metavar="NAME=VALUE", help="Name with a value; repeatable."),
    ] = None,
) -> None:
    """Assemble a source into an ELF object.

    All faults of the source are shown at once; then nothing is written.

    Example: tilewright asm gemm.S -o gemm.o -D ROWS=64
    """
    from tilewright.files import read_file, write_whole
    from tilewright.ipu21.toolchain import assemble

    values = dict(_define(text) for text in defines or [])
    item = assemble(
        _text(read_file(source, limit=SOURCE_LIMIT), source), filename=str(source), defines=values
    )
    write_whole(output, item.to_bytes())
    size = sum(section.size for section in item.sections if section.allocated)
    note(f"wrote {output}: {byte_size(size)} in {len(item.sections)} sections")


def disasm_command(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Object, linked image, or raw code with --raw.")
    ],
    raw: Annotated[
        bool, typer.Option("--raw", help="FILE holds instruction words and nothing else.")
    ] = False,
    address: Annotated[
        str, typer.Option("--address", metavar="ADDRESS", help="Address of the first raw word.")
    ] = "0",
) -> None:
    """Print the assembly text of code and data.

    The text assembles to the same bytes again. Relocations of an object appear as symbol expressions.

    Example: tilewright disasm gemm.o
    """
    from tilewright.files import read_file
    from tilewright.ipu21.toolchain import disassemble

    data = read_file(file, limit=SOURCE_LIMIT)
    if raw:
        text = disassemble(data, address=_number(address, "--address"))
    elif data[:4] != b"\x7fELF":
        raise UsageError("this is no ELF file", where=str(file), hint="use --raw for bare instruction words")
    else:
        text = disassemble(_read_elf(data, file))
    typer.echo(text, nl=False)


def link_command(
    objects: Annotated[list[Path], typer.Argument(metavar="FILE.o...", help="Objects, in memory order.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE.elf", help="Image to write.")],
    entry: Annotated[
        str | None, typer.Option("--entry", metavar="SYMBOL", help="Where execution starts.")
    ] = None,
    roots: Annotated[
        list[str] | None,
        typer.Option("--root", metavar="SYMBOL", help="Symbol to keep with all it needs; repeatable."),
    ] = None,
    regions: Annotated[
        list[str] | None,
        typer.Option("--region", metavar="BEGIN:END", help="Addresses to link into; repeatable, rising."),
    ] = None,
    data_regions: Annotated[
        list[str] | None,
        typer.Option("--data-region", metavar="BEGIN:END", help="The same for data alone; repeatable."),
    ] = None,
    externals: Annotated[
        list[str] | None,
        typer.Option("--external", metavar="NAME=ADDRESS", help="Symbol defined elsewhere; repeatable."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Link objects into an image at absolute tile addresses.

    With --entry or --root, sections that nothing leads to are left out.

    Example: tilewright link start.o gemm.o -o tile.elf --entry start --root gemm_f16
    """
    from tilewright.files import read_file, write_whole
    from tilewright.ipu21.toolchain import CODE_REGION, ObjectFile, link

    places = [_region(text) for text in regions or []] or list(CODE_REGION)
    data_places = [_region(text) for text in data_regions or []] or None
    items = [ObjectFile.from_bytes(read_file(path, limit=SOURCE_LIMIT), name=str(path)) for path in objects]
    image = link(
        items,
        intervals=places,
        data_intervals=data_places,
        entry=entry,
        roots=roots or (),
        externals=dict(_define(text) for text in externals or []),
    )
    write_whole(output, image.to_elf())
    if json:
        print_json(link_report(image))
        return
    for segment in image.segments:
        note(f"{segment.address:#x}..{segment.end:#x} {segment.flags} {byte_size(len(segment.data))}")
    if image.provisional:
        note(
            f"{len(image.provisional)} instructions use numbers that are not public: this image is for the "
            "simulator only"
        )
    note(f"wrote {output}")


def link_report(image: LinkedImage) -> dict[str, Any]:
    """The image as a JSON value: addresses as numbers, provisional words as (address, word) pairs."""
    return {
        "entry": image.entry,
        "segments": [
            {
                "address": segment.address,
                "size": len(segment.data),
                "flags": segment.flags,
                "sections": [{"name": name, "address": address} for name, address in segment.sections],
            }
            for segment in image.segments
        ],
        "symbols": dict(image.symbols),
        "provisional": [list(item) for item in image.provisional],
    }


def _read_elf(data: bytes, file: Path) -> ObjectFile | LinkedImage:
    from tilewright.ipu21.toolchain import LinkedImage, ObjectFile

    if int.from_bytes(data[_ELF_TYPE : _ELF_TYPE + 2], "little") == _RELOCATABLE:
        return ObjectFile.from_bytes(data, name=str(file))
    return LinkedImage.from_elf(data, name=str(file))


def _text(data: bytes, file: Path) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"byte {error.start} is not UTF-8", where=str(file)) from None


def _number(text: str, what: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        raise UsageError(
            f"{text!r} is no number", where=what, hint="decimal, or hexadecimal with 0x"
        ) from None


def _define(text: str) -> tuple[str, int]:
    name, separator, value = text.partition("=")
    if not name.isidentifier():
        raise UsageError(f"{name!r} is no name", where=text, hint="write NAME=VALUE")
    return name, _number(value, text) if separator else 1


def _region(text: str) -> tuple[int, int]:
    begin, separator, end = text.partition(":")
    if not separator:
        raise UsageError(f"{text!r} is no range", hint="write BEGIN:END, such as 0x4c010:0x50000")
    return _number(begin, text), _number(end, text)
