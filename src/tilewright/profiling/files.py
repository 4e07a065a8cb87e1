"""Profile files. Nothing in a file is believed before it is checked."""

from __future__ import annotations

import os
from pathlib import Path

from tilewright.errors import PackageError, ProfileError
from tilewright.files import read_file, write_whole
from tilewright.package.framing import check_framing
from tilewright.package.limits import MAX_FILE_BYTES

from .records import Profile
from .validation import validate


def write_profile(profile: Profile) -> bytes:
    """The file bytes of a profile. Raises ProfileError for one that breaks a rule."""
    validate(profile)
    from .wire import to_message

    return to_message(profile)


def save_profile(profile: Profile, path: str | os.PathLike[str]) -> None:
    """Write a profile, whole or not at all. Raises ProfileError or UsageError."""
    write_whole(path, write_profile(profile))


def read_profile(data: bytes, *, name: str = "profile") -> Profile:
    """The profile in `data`; `name` says in messages where the bytes are from.

    Checks framing, then format and version, columns (sizes, then hashes), every rule of `validate`. Raises
    ProfileError for any fault.
    """
    try:
        words = check_framing(data, "profile")
        from .wire import from_message

        profile = from_message(data, words)
        validate(profile)
    except (PackageError, ProfileError) as error:
        where = f"{name}: {error.where}" if error.where else name
        raise ProfileError(error.what, where=where, hint=error.hint) from error
    return profile


def load_profile(path: str | os.PathLike[str]) -> Profile:
    """The profile in a file. Raises ProfileError naming the file, or UsageError when it cannot be read."""
    return read_profile(read_file(path, limit=MAX_FILE_BYTES), name=str(Path(path)))


def looks_like_profile(data: bytes) -> bool:
    """Whether the bytes claim to be a profile; says nothing about their being a good one."""
    try:
        words = check_framing(data, "profile")
    except PackageError:
        return False
    from .wire import is_profile

    return is_profile(data, words)
