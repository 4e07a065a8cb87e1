"""Packages to bytes and files."""

from __future__ import annotations

import os

from tilewright.files import write_whole

from .records import Package
from .validation import validate


def write_package(package: Package) -> bytes:
    """The bytes of a package file: the same bytes for the same package, in any process on any machine that
    has the same zstd.

    Raises PackageError when the package breaks a rule, before anything is encoded.
    """
    validate(package)
    from .wire import to_message

    return to_message(package)


def save_package(package: Package, path: str | os.PathLike[str]) -> None:
    """Write a package file, whole or not at all. Raises PackageError, or UsageError for the path."""
    write_whole(path, write_package(package))
