"""Compiled packages, kept by what they were made from.

The key of an entry is a digest of everything a package depends on: the graph's text, the constants, the
options and the source of the compiler. An entry is a package file that appears whole or not at all, so
processes may share the folder; one whose bytes are not those that were written is compiled again and
replaced. When the folder outgrows its limit, the entries that were used least recently go.
"""

from __future__ import annotations

import hashlib
import logging
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from ..errors import PackageError, UsageError
from ..files import write_whole
from ..graph import Graph
from ..graph.text import print_graph
from ..package import write_package
from ..package.framing import check_framing
from ..package.limits import MAX_FILE_BYTES
from ..package.records import Package
from ..user_cache import cache_area
from .pipeline import compile_graph
from .progress import Progress

AREA = "packages"
LIMIT_BYTES = 2 * 2**30
"""Bytes of all entries together."""

NOT_THE_COMPILER = ("cli", "ipu21/simulator", "runtime")
"""Folders of Tilewright that no compilation imports (the import contracts see to it)."""

_FORMAT = "tilewright compiled package 1"
_SUFFIX = ".entry"
_ABANDONED_SECONDS = 3600
"""Age at which a half-written file is no longer being written."""

_ROOT = Path(__file__).resolve().parent.parent
_log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Compiled:
    """A package and where it came from.

    Attributes:
        key: digest of what it was made from; empty when there is no cache.
        cached: it was not compiled now.
        kept: the package as a file's bytes, where they are known.
        native_seconds: what went before, once per machine: making the compiler's native code.
    """

    package: Package
    key: str = ""
    cached: bool = False
    kept: bytes | None = None
    native_seconds: float = 0.0

    def file_bytes(self) -> bytes:
        """The package as a file's bytes."""
        return write_package(self.package) if self.kept is None else self.kept


@dataclass(frozen=True)
class Entry:
    """One kept package: its key, bytes, and when it was last used (seconds since 1970)."""

    key: str
    size: int
    used: float


class PackageCache:
    """Packages below one folder. Nothing here fails: what cannot be kept or read is just not there."""

    def __init__(self, folder: Path, *, limit: int = LIMIT_BYTES) -> None:
        self.folder = folder
        self._limit = limit

    def get(self, key: str) -> Compiled | None:
        """The package of `key`, or None when it is absent or damaged."""
        path = self._path(key)
        try:
            with path.open("rb") as stream:
                data = stream.read(MAX_FILE_BYTES + len(_head(b"")) + 1)
            found = _unwrap(data)
            from ..package.wire import from_message

            package, _, _ = from_message(found, check_framing(found))
        except (OSError, PackageError) as error:
            if not isinstance(error, FileNotFoundError):
                _log.info("%s cannot be used and will be replaced: %s", path, error)
            return None
        with suppress(OSError):  # a folder that may only be read, or an entry gone by now
            os.utime(path)
        return Compiled(package, key, True, found)

    def put(self, key: str, data: bytes) -> None:
        """Keep a package's file, and let go of others if that makes too many."""
        entry = _head(data) + data
        if len(entry) > self._limit:
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            write_whole(self._path(key), entry)
        except (OSError, UsageError) as error:
            _log.info("%s is not kept: %s", key, error)
            return
        self._trim()

    def entries(self) -> list[Entry]:
        """All entries, the one used last first."""
        found = []
        for path in self._files(f"*{_SUFFIX}"):
            with suppress(OSError):  # gone by now
                status = path.stat()
                found.append(Entry(path.name.removesuffix(_SUFFIX), status.st_size, status.st_mtime))
        return sorted(found, key=lambda entry: (-entry.used, entry.key))

    def clear(self) -> int:
        """Remove every entry; how many there were."""
        entries = self.entries()
        for entry in entries:
            self._path(entry.key).unlink(missing_ok=True)
        self._sweep(0)
        return len(entries)

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}{_SUFFIX}"

    def _files(self, pattern: str) -> list[Path]:
        hidden = pattern.startswith(".")
        return [path for path in self.folder.glob(pattern) if path.name.startswith(".") == hidden]

    def _trim(self) -> None:
        total = 0
        for entry in self.entries():
            total += entry.size
            if total > self._limit:
                with suppress(OSError):
                    self._path(entry.key).unlink()
        self._sweep(_ABANDONED_SECONDS)

    def _sweep(self, age: float) -> None:
        """Remove what processes left behind that ended while they wrote, `age` seconds ago or more."""
        for path in self._files(f".*{_SUFFIX}.*"):
            with suppress(OSError):
                if path.stat().st_mtime <= time.time() - age:
                    path.unlink()


def package_cache() -> PackageCache | None:
    """The user's cache, or None without a home directory to keep it in."""
    with suppress(RuntimeError):
        return PackageCache(cache_area(AREA))
    return None


def compile_cached(
    graph: Graph,
    *,
    cache: PackageCache | None,
    tiles: int,
    check: bool = False,
    options: Mapping[str, bool | int | float | str] | None = None,
    progress: Progress | None = None,
) -> Compiled:
    """`compile_graph`, unless the same was compiled before.

    Args:
        cache: where packages are kept; None compiles and keeps nothing.
        check: compiles in any case, since it asks for what a kept package cannot show.
        options: further arguments of `compile_graph`.

    Raises what `compile_graph` raises.
    """
    further = dict(options or {})
    key = ""
    if cache is not None:
        graph.verify()
        key = compile_key(graph, {"tiles": tiles, **further})
        if not check and (found := cache.get(key)) is not None:
            return found
    from ..ipu21.compile import prepare

    native_seconds = prepare(progress)
    package = compile_graph(graph, tiles=tiles, check=check, progress=progress, **further)  # type: ignore[arg-type]  # names and types are the callee's to check
    if cache is None:
        return Compiled(package, native_seconds=native_seconds)
    from ..package.wire import to_message

    data = to_message(package)  # the compiler has just checked it, and nobody has had it since
    cache.put(key, data)
    return Compiled(package, key, False, data, native_seconds)


def compile_key(graph: Graph, options: Mapping[str, bool | int | float | str]) -> str:
    """Digest of everything the package of `graph` depends on, as hexadecimal digits."""
    digest = hashlib.sha256()

    def text(value: str) -> None:
        data = value.encode()
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)

    text(_FORMAT)
    text(source_digest())
    text(repr(sorted(options.items())))
    # The text states every constant's name, shape and type, so that their bytes may follow one another.
    text(print_graph(graph))
    for _, array in graph.constants:
        digest.update(array.data if array.flags.c_contiguous else array.tobytes())
    return digest.hexdigest()


def _head(data: bytes) -> bytes:
    """What an entry begins with. Its digest stands for all that a reader of strange packages would check."""
    return f"{_FORMAT}\n{hashlib.sha256(data).hexdigest()}\n".encode()


def _unwrap(entry: bytes) -> bytes:
    """The package file in an entry. Raises PackageError for an entry that is not as it was written."""
    size = len(_head(b""))
    data = entry[size:]
    if entry[:size] != _head(data):
        raise PackageError("content does not match its digest")
    return data


@lru_cache(maxsize=1)
def source_digest(root: Path = _ROOT) -> str:
    """Digest of the compiler's source: every file of the package `root` but those of `NOT_THE_COMPILER`."""
    skipped = tuple(f"{folder}/" for folder in NOT_THE_COMPILER)
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if name.startswith(skipped) or "__pycache__" in name or not path.is_file():
            continue
        data = path.read_bytes()
        digest.update(f"{name} {len(data)}\n".encode())
        digest.update(data)
    return digest.hexdigest()
