"""A set of transfers as a file: an .npz archive with the arrays `transfers` and `destinations`."""

from __future__ import annotations

import io
import os
import zipfile
import zlib
from math import prod
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...errors import UsageError
from ...files import read_file, write_whole
from ..fabric.transfers import DESTINATION, TRANSFER, check_transfers
from .flows import Traffic

MEMBERS = {"transfers.npy": TRANSFER, "destinations.npy": DESTINATION}
MAX_FILE_BYTES = 256 << 20
MAX_MEMBER_BYTES = 512 << 20
_NO_FILE = "not a saved set of transfers"


def transfers_of(traffic: Traffic) -> tuple[NDArray[np.void], NDArray[np.void]]:
    """TRANSFER and DESTINATION records that ask for what a phase delivers.

    One message to several tiles is one transfer; messages that continue one another at their source and at
    all their destinations are joined, so that a scheduler is free to cut them elsewhere.
    """
    groups: dict[tuple[int, int, int, int], list[tuple[int, int]]] = {}
    for flow in traffic.flows.tolist():
        source, destination, words, _, send, _, read, write = flow
        groups.setdefault((source, read, words, send), []).append((destination, write))
    joined: list[tuple[int, int, int, list[tuple[int, int]]]] = []
    for (source, read, words, _), receivers in sorted(groups.items()):
        receivers = sorted(receivers)
        if joined:
            before, address, length, targets = joined[-1]
            moved = [(tile, at + 4 * length) for tile, at in targets]
            if before == source and address + 4 * length == read and moved == receivers:
                joined[-1] = (before, address, length + words, targets)
                continue
        joined.append((source, read, words, receivers))
    transfers = np.zeros(len(joined), TRANSFER)
    counts = np.array([len(receivers) for *_, receivers in joined], np.int64)
    for name, column in (("source", 0), ("address", 1), ("words", 2)):
        transfers[name] = [item[column] for item in joined]
    transfers["count"], transfers["first"] = counts, np.cumsum(counts) - counts
    return transfers, np.array([place for *_, receivers in joined for place in receivers], DESTINATION)


def save_transfers(
    path: str | os.PathLike[str], transfers: NDArray[np.void], destinations: NDArray[np.void]
) -> None:
    """Write a file that `load_transfers` reads, the same bytes for the same transfers. Raises UsageError."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in zip(MEMBERS, (transfers, destinations), strict=True):
            content = io.BytesIO()
            np.lib.format.write_array(content, array, version=(1, 0), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), content.getvalue())
    write_whole(path, stream.getvalue())


def load_transfers(path: str | os.PathLike[str]) -> tuple[NDArray[np.void], NDArray[np.void]]:
    """The transfers of a file, checked to be something that can be scheduled.

    Nothing in the file is executed, and it cannot ask for more memory than `MAX_MEMBER_BYTES` per array.
    Raises UsageError for a file of another kind, ScheduleError for transfers that make no sense.
    """
    where = str(Path(path))
    data = read_file(path, limit=MAX_FILE_BYTES)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = sorted(info.filename for info in archive.infolist())
            if names != sorted(MEMBERS):
                raise UsageError(f"{_NO_FILE}: it holds {', '.join(names[:4]) or 'nothing'}", where=where)
            transfers, destinations = (_member(archive, name, where) for name in MEMBERS)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError) as error:
        raise UsageError(f"{_NO_FILE}, or a damaged one", where=where) from error
    # What two transfers share would be written twice; said here, before anything grows with the sum.
    if int(transfers["count"].sum(dtype=np.uint64)) > len(destinations):
        raise UsageError("transfers share destinations, or name some that are not there", where=where)
    check_transfers(transfers, destinations)
    return transfers, destinations


def _member(archive: zipfile.ZipFile, name: str, where: str) -> NDArray[np.void]:
    size = archive.getinfo(name).file_size
    if size > MAX_MEMBER_BYTES:
        raise UsageError(f"{name} of {size} bytes is over the limit of {MAX_MEMBER_BYTES}", where=where)
    content = io.BytesIO(archive.read(name))
    try:
        version = np.lib.format.read_magic(content)
        if version != (1, 0):
            raise ValueError(version)
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(content)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError) as error:
        raise UsageError(f"{name} is no array", where=where) from error
    if dtype != MEMBERS[name] or len(shape) != 1 or fortran:
        wanted = ", ".join(MEMBERS[name].names or ())
        raise UsageError(f"{name} is no list of ({wanted}) records", where=where)
    rest = content.read()
    if prod(shape) * dtype.itemsize != len(rest):
        raise UsageError(f"{name} holds {len(rest)} bytes for {prod(shape)} records", where=where)
    return np.frombuffer(rest, MEMBERS[name])
