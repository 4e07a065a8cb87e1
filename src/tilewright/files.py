"""Files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from .errors import UsageError


def write_whole(path: str | os.PathLike[str], data: bytes) -> None:
    """Write `data` to `path` so that a reader sees the old file or all of the new one, never a part.

    Raises UsageError when the folder is missing or not writable.
    """
    target = Path(path)
    try:
        descriptor, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent or ".")
    except OSError as error:
        raise UsageError(f"cannot write: {error.strerror}", where=str(target)) from error
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, target)
    except OSError as error:
        raise UsageError(f"cannot write: {error.strerror}", where=str(target)) from error
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)


def read_file(path: str | os.PathLike[str], *, limit: int | None = None) -> bytes:
    """Bytes of a file. Raises UsageError naming the path when it cannot be read or exceeds `limit` bytes."""
    target = Path(path)
    try:
        if limit is not None and target.stat().st_size > limit:
            raise UsageError(
                f"file of {target.stat().st_size} bytes is over the limit of {limit}", where=str(target)
            )
        return target.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read: {error.strerror}", where=str(target)) from error
