"""`tilewright inspect`, `run` and `devices`: what a package holds, and running it."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tilewright.errors import BindingError, PackageError, UsageError

from .console import JsonOption, console, note, print_json
from .options import EnginesOption
from .profile import (
    GranularityOption,
    ProfileGranularity,
    ProfileOption,
    profile_builder,
    write_profile_file,
)

if TYPE_CHECKING:
    from numpy import generic
    from numpy.typing import NDArray

    from tilewright.package import Package
    from tilewright.runtime import Session

ELF_MAGIC = b"\x7fELF"
AR_MAGICS = (b"!<arch>\n", b"!<thin>\n")
MAX_REPEATS = 1000


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("run", no_args_is_help=True)(run_command)
    app.command("inspect", no_args_is_help=True)(inspect_command)
    app.command("devices")(devices_command)


def run_command(
    package: Annotated[Path, typer.Argument(metavar="FILE.ipuexe", help="Package to run.")],
    inputs: Annotated[
        list[str] | None,
        typer.Option("--input", metavar="NAME=FILE.npy", help="Array for an input; repeatable."),
    ] = None,
    outputs: Annotated[
        list[str] | None,
        typer.Option("--output", metavar="NAME=FILE.npy", help="Where to write; repeatable."),
    ] = None,
    device: Annotated[str, typer.Option("--device", help="sim, or ipu:N for a card.")] = "sim",
    check: Annotated[
        bool,
        typer.Option("--check", help="Look for unwritten memory, races, stores into code, unheard words."),
    ] = False,
    check_operators: Annotated[
        bool,
        typer.Option("--check-operators", help="Compare every value with its operator's reference."),
    ] = False,
    reference: Annotated[
        str | None,
        typer.Option("--reference", metavar="MODEL", help="Where --check-operators takes constants from."),
    ] = None,
    engines: EnginesOption = None,
    repeat: Annotated[
        int, typer.Option("--repeat", metavar="N", min=1, max=MAX_REPEATS, help="Runs in one session.")
    ] = 1,
    profile: ProfileOption = None,
    granularity: GranularityOption = ProfileGranularity.step,
    json: JsonOption = False,
) -> None:
    """Run a package on a device, once or several times with the same inputs.

    Every input needs a .npy file of its shape and type. Outputs without a file are computed and dropped.
    Nothing is written unless the whole run succeeds. A profile holds every run. --check-operators stops the
    simulated chip after every operator and names the first operator, tile and element that is wrong.

    Example: tilewright run digits.ipuexe --input x=images.npy --output logits=logits.npy
    """
    wanted_inputs = array_files(inputs or [], "--input")
    wanted_outputs = array_files(outputs or [], "--output")
    if len(set(wanted_outputs.values())) != len(wanted_outputs):
        raise UsageError("two outputs would be written to one file")
    from tilewright.package import load_package
    from tilewright.runtime import Session, open_device

    content = load_package(package)
    _check_output_names(content, wanted_outputs)
    arrays = {name: load_array(path) for name, path in wanted_inputs.items()}
    from tilewright.runtime.arrays import check_inputs

    # Before the device is opened: a wrong array should not cost the time of a load.
    check_inputs(content.inputs, arrays)
    if reference is not None and not check_operators:
        raise UsageError("--reference is for --check-operators")
    if check_operators:
        if device != "sim" or repeat != 1 or profile is not None:
            raise UsageError("--check-operators makes one run on the simulator, without a profile")
        from .operator_check import run_and_check

        run_and_check(content, arrays, wanted_outputs, reference, check=check, engines=engines, json=json)
        return
    builder = profile_builder(content, package.name, device, profile, granularity)
    with (
        open_device(device, check=check, engines=engines) as opened,
        Session(opened, content, activity=builder is not None) as session,
    ):
        results = session.run_many([arrays] * repeat)[-1]
    if builder is not None and profile is not None:
        builder.add(session.last_run)
        write_profile_file(builder, profile)
    for name, path in wanted_outputs.items():
        save_array(path, results[name])
        note(f"wrote {path}")
    report = _run_report(session, device, results, wanted_outputs)
    if json:
        print_json(report)
    else:
        from .package_report import show_run

        show_run(console(), report)


def inspect_command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Package, object, image, archive or profile.")],
    tile: Annotated[
        int | None, typer.Option("--tile", metavar="N", help="Show one tile (physical id) of a package.")
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(
            "--source", metavar="KERNEL[:LINE]", help="Show the assembly of a kernel with its addresses."
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Show what a file holds: bindings, steps, memory, blobs of a package; sections of an object; cycles of a
    profile.

    Errors of a simulated run name kernels and lines, such as softmax.S:57; --source shows these lines.

    Example: tilewright inspect digits.ipuexe --tile 0
    """
    from tilewright.files import read_file
    from tilewright.package.limits import MAX_FILE_BYTES

    data = read_file(file, limit=MAX_FILE_BYTES)
    if tile is not None and source is not None:
        raise UsageError("--tile and --source are two different views; name one")
    kind = _kind(data, file)
    for option, given in (("--tile", tile), ("--source", source)):
        if given is not None and kind is not Kind.PACKAGE:
            raise UsageError(f"{option} needs a package, this is {kind.value}", where=str(file))
    if kind is Kind.PROFILE:
        from .profile import inspect_profile

        inspect_profile(data, str(file), json=json)
        return
    if kind is not Kind.PACKAGE:
        from . import elf_report

        describe, show = {
            Kind.ARCHIVE: (elf_report.describe_archive, elf_report.show_archive),
            Kind.ELF: (elf_report.describe_elf, elf_report.show_elf),
            Kind.CODELETS: (elf_report.describe_gp, elf_report.show_gp),
        }[kind]
        description = describe(data, str(file))
        if json:
            print_json(description)
        else:
            show(console(), description)
        return
    from tilewright.package import read_package
    from tilewright.package.summary import summarize, summarize_tile

    try:
        package = read_package(data, name=str(file))
    except PackageError as error:
        if error.what.startswith("not a package"):
            hint = "packages, ELF files, archives and profiles can be shown"
            raise PackageError(error.what, where=error.where, hint=hint) from error
        raise
    if source is not None:
        from .kernel_listing import kernel_listing

        found = kernel_listing(package, source)
        if json:
            print_json({"source": found})
        else:
            typer.echo("\n".join(found))
        return
    summary = summarize(package) if tile is None else summarize_tile(package, tile)
    if tile is None:
        summary["file_bytes"] = len(data)
    if json:
        print_json(summary)
        return
    from .package_report import show_package, show_tile

    (show_package if tile is None else show_tile)(console(), summary)


def devices_command(json: JsonOption = False) -> None:
    """List the devices: the simulator, and every card with the reason why it cannot be used.

    Example: tilewright devices
    """
    from tilewright.runtime import list_devices

    found = list_devices()
    if json:
        print_json(
            [
                {"name": d.name, "description": d.description, "usable": d.usable, "reason": d.reason}
                for d in found
            ]
        )
        return
    from .package_report import show_devices

    show_devices(console(), found)


def load_array(path: Path) -> NDArray[generic]:
    """The array in a .npy file. Raises UsageError for anything else; pickled objects are never loaded."""
    import pickle

    import numpy as np

    try:
        array = np.load(path, allow_pickle=False)
    except OSError as error:
        raise UsageError(f"cannot read: {error.strerror or error}", where=str(path)) from error
    except (ValueError, EOFError, SyntaxError, MemoryError, pickle.UnpicklingError) as error:
        raise UsageError("not a .npy file of plain numbers", where=str(path)) from error
    if not isinstance(array, np.ndarray):
        raise UsageError(
            "an archive of arrays, not one array", where=str(path), hint="save it with numpy.save"
        )
    return array


def save_array(path: Path, array: NDArray[generic]) -> None:
    """Write a .npy file, whole or not at all. Raises UsageError."""
    import io

    import numpy as np

    from tilewright.files import write_whole

    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=False)
    write_whole(path, stream.getvalue())


class Kind(Enum):
    """What `inspect` can show, as messages call it."""

    ARCHIVE = "an archive of objects"
    ELF = "an ELF file"
    CODELETS = "an archive of codelets"
    PROFILE = "a profile"
    PACKAGE = "a package"


def _kind(data: bytes, file: Path) -> Kind:
    """By the bytes where they tell, else by the name; a package if nothing else."""
    from tilewright.profiling.files import looks_like_profile

    if data.startswith(AR_MAGICS):
        return Kind.ARCHIVE
    if data.startswith(ELF_MAGIC):
        return Kind.ELF
    if file.suffix == ".gp":
        return Kind.CODELETS
    if file.suffix == ".twprof" or looks_like_profile(data):
        return Kind.PROFILE
    return Kind.PACKAGE


def array_files(options: Sequence[str], option: str) -> dict[str, Path]:
    """`NAME=FILE` of a repeatable option. Raises UsageError."""
    pairs: dict[str, Path] = {}
    for text in options:
        name, separator, path = text.partition("=")
        if not (name and separator and path):
            raise UsageError(f"{option} {text!r} is not NAME=FILE.npy")
        if name in pairs:
            raise UsageError(f"{option} names {name!r} twice")
        pairs[name] = Path(path)
    return pairs


def _check_output_names(package: Package, wanted: dict[str, Path]) -> None:
    names = [binding.name for binding in package.outputs]
    unknown = [name for name in wanted if name not in names]
    if unknown:
        raise BindingError(
            f"there is no output {', '.join(map(repr, unknown))}",
            hint=f"the package gives {', '.join(names) or 'no outputs'}",
        )
    for path in wanted.values():
        if not path.parent.is_dir():
            raise UsageError("cannot write: no such folder", where=str(path))


def _run_report(
    session: Session, device: str, results: dict[str, NDArray[generic]], paths: dict[str, Path]
) -> dict[str, Any]:
    record = session.last_run
    assert record is not None, "run has returned"
    return {
        "device": device,
        "runs": len(record.cycles_each),
        "cycles": record.cycles,
        "bytes_in": record.bytes_in,
        "bytes_out": record.bytes_out,
        "weight_bytes": session.weight_bytes,
        "seconds": record.seconds,
        "outputs": [
            {
                "name": name,
                "dtype": str(array.dtype),
                "shape": list(array.shape),
                "file": str(paths[name]) if name in paths else None,
            }
            for name, array in results.items()
        ],
    }
