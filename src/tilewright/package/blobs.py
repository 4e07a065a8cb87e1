"""Content-addressed byte strings: collected once, compressed when that is smaller, checked when read."""

from __future__ import annotations

import hashlib

from tilewright.errors import PackageError

from .limits import FREE_EXPANSION_BYTES, MAX_BLOB_BYTES, MAX_RATIO, MAX_TOTAL_BYTES

RAW, ZSTD = 0, 1
_LEVEL = 3
_CHUNK = 1 << 20
_MAX_WINDOW = 1 << 24


class BlobStore:
    """Collects the blobs of a package under construction; equal byte strings get the same index."""

    def __init__(self) -> None:
        self.blobs: list[bytes] = []
        self._index: dict[bytes, int] = {}

    def add(self, data: bytes) -> int:
        """Index of `data` in `blobs`. Empty data has no blob: -1."""
        if not data:
            return -1
        key = hashlib.sha256(data).digest()
        if key not in self._index:
            self._index[key] = len(self.blobs)
            self.blobs.append(bytes(data))
        return self._index[key]


class Budget:
    """Uncompressed bytes that one package may still ask for."""

    def __init__(self, limit: int = MAX_TOTAL_BYTES) -> None:
        self._left = limit

    def spend(self, size: int, where: str) -> None:
        """Take `size` bytes. Raises PackageError when the package asks for more than the limit."""
        if size > self._left:
            raise PackageError(
                f"{size} more uncompressed bytes exceed the limit of {MAX_TOTAL_BYTES}", where=where
            )
        self._left -= size


def compress(data: bytes) -> tuple[int, bytes]:
    """Codec and stored bytes: zstd when smaller than raw and within the ratio a reader accepts."""
    import zstandard

    stored = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=False, threads=0).compress(data)
    if len(stored) >= len(data) or _over_ratio(len(data), len(stored)):
        return RAW, data
    return ZSTD, stored


def expand(codec: int, stored: bytes, size: int, digest: bytes, budget: Budget, where: str) -> bytes:
    """The `size` bytes that `compress` was given.

    The size is checked against the limits before any buffer exists, decompression stops as soon as it would
    pass the size, and the SHA-256 must match. Raises PackageError.
    """
    if len(digest) != 32:
        raise PackageError(f"SHA-256 of {len(digest)} bytes instead of 32", where=where)
    if size > MAX_BLOB_BYTES:
        raise PackageError(
            f"uncompressed size {size} is over the limit of {MAX_BLOB_BYTES} bytes", where=where
        )
    budget.spend(size, where)
    if codec == RAW:
        data = stored
    elif codec == ZSTD:
        if _over_ratio(size, len(stored)):
            raise PackageError(
                f"{len(stored)} bytes claim to expand to {size}, more than {MAX_RATIO} to 1", where=where
            )
        data = _decompress(stored, size, where)
    else:
        raise PackageError(f"unknown codec {codec}", where=where, hint="known: 0 raw, 1 zstd")
    if len(data) != size:
        raise PackageError(f"holds {len(data)} bytes instead of the {size} it states", where=where)
    if hashlib.sha256(data).digest() != digest:
        raise PackageError("content does not match its SHA-256", where=where)
    return data


def _over_ratio(size: int, stored: int) -> bool:
    return size > FREE_EXPANSION_BYTES and size > stored * MAX_RATIO


def _decompress(stored: bytes, size: int, where: str) -> bytes:
    import zstandard

    parts: list[bytes] = []
    have = 0
    try:
        reader = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW).stream_reader(stored)
        # One byte past the stated size is enough to know that it is wrong.
        while have <= size and (part := reader.read(min(_CHUNK, size + 1 - have))):
            parts.append(part)
            have += len(part)
    except (zstandard.ZstdError, MemoryError) as error:
        raise PackageError(f"damaged zstd data: {error}", where=where) from error
    if have > size:
        raise PackageError(f"expands to more than the {size} bytes it states", where=where)
    return b"".join(parts)
