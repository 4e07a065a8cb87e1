"""`tilewright asm`, `disasm` and `link`: tile code between text, objects and images."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tilewright.errors import UsageError

from .console import JsonOption, byte_size, note, print_json
from .options import (
    DefineOption,
    ExternalOption,
    IncludeOption,
    OverlayOption,
    PreprocessorOption,
    definitions,
    named_numbers,
    number,
    region,
    use_overlay,
)

if TYPE_CHECKING:
    from tilewright.ipu21.toolchain import LinkedImage, ObjectFile

SOURCE_LIMIT = 64 << 20
"""Bytes of a source or object file that are read at most."""

LAST_ADDRESS = 0xFFFFFFFC
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
    defines: DefineOption = None,
    include: IncludeOption = None,
    preprocessor: PreprocessorOption = None,
    overlay: OverlayOption = None,
) -> None:
    """Assemble a source into an ELF object. Preprocessor lines (#include, #define, #if) are carried out.

    All faults of the source are shown at once; then nothing is written.

    Example: tilewright asm gemm.S -o gemm.o -D ROWS=64
    """
    _keep_apart(output, [source])
    use_overlay(overlay)
    from tilewright.files import read_file, write_whole
    from tilewright.ipu21.toolchain.inputs import assemble_file

    item = assemble_file(
        read_file(source, limit=SOURCE_LIMIT),
        source,
        defines=definitions(defines),
        include_dirs=include or (),
        preprocessor=preprocessor,
    )
    write_whole(output, item.to_bytes())
    for warning in item.warnings:
        note(f"warning: {warning}")
    size = sum(section.size for section in item.sections if section.allocated)
    count = len(item.sections)
    note(f"wrote {output}: {byte_size(size)} in {count} section{'s' if count != 1 else ''}")


def disasm_command(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Object, linked image, or raw code with --raw.")
    ],
    raw: Annotated[
        bool, typer.Option("--raw", help="FILE holds instruction words and nothing else.")
    ] = False,
    address: Annotated[
        str | None,
        typer.Option("--address", metavar="ADDRESS", help="Address of the first raw word."),
    ] = None,
    overlay: OverlayOption = None,
) -> None:
    """Print the assembly text of code and data.

    The text assembles to the same bytes again (of an archive of ar, that of each member does). Relocations of
    an object appear as symbol expressions.

    Example: tilewright disasm gemm.o
    """
    use_overlay(overlay)
    from tilewright.files import read_file
    from tilewright.ipu21.toolchain import disassemble
    from tilewright.ipu21.toolchain.archives import is_archive, read_archive
    from tilewright.ipu21.toolchain.gp import extract_object, is_gp

    data = read_file(file, limit=SOURCE_LIMIT)
    if address is not None and not raw:
        raise UsageError("--address is for --raw: objects and images say where they lie")
    if raw:
        first = 0 if address is None else number(address, "--address")
        if not 0 <= first <= LAST_ADDRESS or first % 4:
            raise UsageError(f"{first:#x} is no address of an instruction", where="--address")
        text = disassemble(data, address=first)
    elif is_archive(data):
        members = read_archive(data, name=str(file))
        text = "\n".join(f"# {item.name}\n{disassemble(item)}" for item in members)
    elif is_gp(data):
        text = disassemble(extract_object(data, name=str(file)))
    elif data[:4] != b"\x7fELF":
        raise UsageError(
            "this is no ELF file and no archive", where=str(file), hint="use --raw for bare instruction words"
        )
    else:
        text = disassemble(_read_elf(data, file))
    typer.echo(text, nl=False)


def link_command(
    objects: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="Objects, archives or sources, in order."),
    ],
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
    externals: ExternalOption = None,
    defines: DefineOption = None,
    include: IncludeOption = None,
    preprocessor: PreprocessorOption = None,
    overlay: OverlayOption = None,
    json: JsonOption = False,
) -> None:
    """Link objects into an image at absolute tile addresses.

    With --entry or --root, sections that nothing leads to are left out. A .gp archive is an object; of one
    made by ar those members are taken that are needed.

    Example: tilewright link start.o gemm.o -o tile.elf --entry start --root gemm_f16
    """
    _keep_apart(output, objects)
    use_overlay(overlay)
    from tilewright.files import read_file, write_whole
    from tilewright.ipu21.toolchain import CODE_REGION, link
    from tilewright.ipu21.toolchain.inputs import read_inputs

    places = [region(text) for text in regions or []] or list(CODE_REGION)
    data_places = [region(text) for text in data_regions or []] or None
    values = definitions(defines)
    given = read_inputs(
        [(path, read_file(path, limit=SOURCE_LIMIT)) for path in objects],
        defines=values,
        include_dirs=include or (),
        preprocessor=preprocessor,
    )
    image = link(
        given.objects,
        libraries=given.libraries,
        intervals=places,
        data_intervals=data_places,
        entry=entry,
        roots=roots or (),
        externals=named_numbers(externals),
    )
    write_whole(output, image.to_elf())
    for warning in image.warnings:
        note(f"warning: {warning}")
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


def _keep_apart(output: Path, inputs: list[Path]) -> None:
    """Raise UsageError where the output would replace an input."""
    for path in inputs:
        if path.exists() and output.exists() and path.samefile(output):
            raise UsageError("the output would replace this input", where=str(path))


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
        "stack_sizes": dict(image.stack_sizes),
        "warnings": list(image.warnings),
    }


def _read_elf(data: bytes, file: Path) -> ObjectFile | LinkedImage:
    from tilewright.ipu21.toolchain import LinkedImage, ObjectFile

    if int.from_bytes(data[_ELF_TYPE : _ELF_TYPE + 2], "little") == _RELOCATABLE:
        return ObjectFile.from_bytes(data, name=str(file))
    return LinkedImage.from_elf(data, name=str(file))
