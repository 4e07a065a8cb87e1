"""Files the tool chain takes, whatever kind they are."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ...errors import UsageError
from .archives import is_archive, read_archive
from .assembler import assemble
from .gp import extract_object, is_gp
from .objects import ObjectFile
from .preprocess import preprocess_with

_ELF = b"\x7fELF"
_COMPILED = (".c", ".cc", ".cpp", ".cxx")


@dataclass(frozen=True, slots=True)
class Inputs:
    """Objects, and the members of archives that are there to be taken from."""

    objects: list[ObjectFile] = field(default_factory=list)
    libraries: list[list[ObjectFile]] = field(default_factory=list)


def read_inputs(
    files: Sequence[tuple[Path, bytes]],
    *,
    defines: Mapping[str, int | str] | None = None,
    include_dirs: Sequence[str | Path] = (),
    preprocessor: str | None = None,
) -> Inputs:
    """What files hold: objects, `.gp` archives and sources, and `ar` archives. Raises TilewrightError."""
    found = Inputs()
    for path, data in files:
        if is_archive(data):
            found.libraries.append(read_archive(data, name=str(path)))
            continue
        item = object_of(data, path, defines=defines, include_dirs=include_dirs, preprocessor=preprocessor)
        found.objects.append(item)
    return found


def object_of(
    data: bytes,
    path: Path,
    *,
    defines: Mapping[str, int | str] | None = None,
    include_dirs: Sequence[str | Path] = (),
    preprocessor: str | None = None,
) -> ObjectFile:
    """The object in a file: an ELF object, a `.gp` archive, or an assembly source. Raises TilewrightError."""
    if data.startswith(_ELF):
        return ObjectFile.from_bytes(data, name=str(path))
    if is_gp(data):
        return extract_object(data, name=str(path))
    if path.suffix in _COMPILED:
        raise UsageError(
            "C++ is compiled by the vendor's popc",
            where=str(path),
            hint=f"tilewright popc {path} -o {path.stem}.o",
        )
    return assemble_file(data, path, defines=defines, include_dirs=include_dirs, preprocessor=preprocessor)


def assemble_file(
    data: bytes,
    path: Path,
    *,
    defines: Mapping[str, int | str] | None = None,
    include_dirs: Sequence[str | Path] = (),
    preprocessor: str | None = None,
) -> ObjectFile:
    """Assemble the source in a file, with the built-in preprocessor or an outside one.

    Raises AssemblyFaults, and UsageError for bytes that are no text and of an outside preprocessor.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise UsageError(
            f"byte {error.start} is not UTF-8", where=str(path), hint="this is neither text nor an object"
        ) from None
    if preprocessor is None:
        return assemble(text, filename=str(path), defines=defines, include_dirs=include_dirs)
    with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
        done = preprocess_with(
            preprocessor, path, include_dirs=include_dirs, defines=defines, headers=Path(folder)
        )
    return assemble(text, filename=str(path), defines=defines, include_dirs=include_dirs, preprocessed=done)
