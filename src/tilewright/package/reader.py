"""Bytes and files to packages. Nothing in a file is believed before it is checked."""

from __future__ import annotations

import os
from pathlib import Path

from tilewright.errors import PackageError
from tilewright.files import read_file

from .digest import debug_digest, meaning_digest
from .framing import check_framing
from .limits import MAX_FILE_BYTES
from .records import Package
from .validation import validate


def read_package(data: bytes, *, name: str = "package") -> Package:
    """The package in `data`. `name` says in messages where the bytes are from.

    Checks in this order: framing, version and target, message, blobs (sizes, then hashes), every rule of
    `validate`, the digests. Raises PackageError for any fault.
    """
    try:
        words = check_framing(data)
        from .wire import from_message

        package, digest, debug = from_message(data, words)
        validate(package)
        if meaning_digest(package) != digest:
            raise PackageError("content does not match the digest: the file was changed after it was written")
        if debug_digest(package) != debug:
            raise PackageError(
                "debug section does not match its digest: the file was changed after it was written"
            )
    except PackageError as error:
        where = f"{name}: {error.where}" if error.where else name
        raise PackageError(error.what, where=where, hint=error.hint) from error
    return package


def load_package(path: str | os.PathLike[str]) -> Package:
    """The package in a file. Raises PackageError naming the file, or UsageError when it cannot be read."""
    return read_package(read_file(path, limit=MAX_FILE_BYTES), name=str(Path(path)))
