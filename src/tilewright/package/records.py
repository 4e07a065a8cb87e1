"""What a package holds: one program for every tile, how the host talks to it, and what its parts are called.

Plain records; nothing here checks anything. `validation.validate` holds every rule, and the writer and the
reader both apply it. Tile numbers are physical ids, addresses are byte addresses in tile memory, sizes are
bytes. Whatever exists once per tile, slice or mark is a NumPy structured array, little-endian and without
padding between fields: exactly the bytes that the file holds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .target import TARGET, TILE_BASE, TILE_BYTES

if TYPE_CHECKING:
    from .program_info import ProgramInfo

READ, WRITE, EXECUTE = 1, 2, 4
"""Bits of `Segment.flags`. They describe; the machine enforces none of them."""

NO_BLOB = -1
NO_MARKS = -1
ALL_TILES = 0xFFFFFFFF
"""`Region.physical_tile` of a region that every tile has."""

SLICE = np.dtype(
    [
        ("tile", "<u2"),
        ("address", "<u4"),
        ("file_offset", "<u8"),
        ("size", "<u4"),
        ("row", "<u4"),
        ("rows", "<u4"),
        ("padded_rows", "<u4"),
        ("column", "<u4"),
        ("columns", "<u4"),
        ("padded_columns", "<u4"),
    ]
)
"""The part of a binding that one tile holds at `address`: the `size` bytes at `file_offset` of the binding's
host byte string. It carries rows row..row+rows-1 and columns column..column+columns-1 of the binding's view,
in the binding's element order over a padded_rows x padded_columns shard whose padding is zero."""

HOST_SLICE = np.dtype([("page", "<u4"), ("page_offset", "<u8"), ("file_offset", "<u8"), ("size", "<u4")])
"""Bytes that move between a call's host byte string (at `file_offset`) and a host page."""

MARK = np.dtype([("address", "<u4"), ("step", "<u4")])
"""The supervisor about to issue `address` begins profile step `step`."""

INTERVAL = np.dtype([("tile", "<u2"), ("context", "u1"), ("step", "<u2"), ("begin", "<i8"), ("end", "<i8")])
"""Cycles begin..end-1 that a context of a tile (0 supervisor, 1..6 workers) spent in a profile step."""

PROVISIONAL_WORD = np.dtype([("address", "<u4"), ("word", "<u4")])
"""An instruction word whose real encoding is not public."""

LINE = np.dtype([("address", "<u4"), ("file", "<u4"), ("line", "<u4")])
"""Code from `address` on, up to the next row, was written in `line` (from 1; 0: not known) of a file."""

TILE_IMAGE = np.dtype([("physical_tile", "<u4"), ("image", "<u4")])
"""Packed form of `TileImage`, as the file stores it."""


def no_slices() -> NDArray[np.void]:
    return np.zeros(0, SLICE)


def no_host_slices() -> NDArray[np.void]:
    return np.zeros(0, HOST_SLICE)


def no_provisional_words() -> NDArray[np.void]:
    return np.zeros(0, PROVISIONAL_WORD)


@dataclass
class Segment:
    """`memory_size` bytes at `address`: `file_size` bytes of a blob from `blob_offset`, then zeros.

    A segment without file bytes may name no blob (`NO_BLOB`).
    """

    address: int
    memory_size: int
    blob: int
    blob_offset: int
    file_size: int
    flags: int


@dataclass
class Image:
    """The memory of one tile class before its first instruction. Addresses of 0 mean "none"."""

    entry_point: int
    command_address: int
    diagnostic_address: int
    segments: list[Segment]
    mark_table: int = NO_MARKS


@dataclass
class TileImage:
    """Which of `Package.images` a tile starts with. Equal images are stored once."""

    physical_tile: int
    image: int


@dataclass(eq=False)
class Binding:
    """A named tensor that the host gives, takes, or (weights) finds in the package.

    `shape` and `host_dtype` are what the host sees; `view` is the same elements as a rows x columns matrix in
    row-major order. `blob` holds a weight's host byte string; inputs and outputs have `NO_BLOB`.
    """

    name: str
    host_dtype: str
    device_dtype: str
    shape: tuple[int, ...]
    order: str
    view: tuple[int, int]
    slices: NDArray[np.void] = field(default_factory=no_slices)
    blob: int = NO_BLOB

    @property
    def nbytes(self) -> int:
        """Length of the binding's host byte string."""
        if not len(self.slices):
            return 0
        offset, size = self.slices["file_offset"], self.slices["size"]
        if offset.max() < 1 << 62:
            return int((offset.astype(np.int64) + size).max())
        return max(int(begin) + int(count) for begin, count in zip(offset, size, strict=True))


@dataclass
class HostPage:
    """Host memory that the device can reach. Device addresses follow the attach order."""

    index: int
    size: int


@dataclass(eq=False)
class HostCall:
    """One command of the host protocol.

    The bindings of a group, one after another in list order, form the call's host byte string: weights for
    `initialize`, inputs and outputs for `run`. `*_batch_ends` are exclusive ends of the slices that move
    together between two barriers. One command makes the program run `invocations` times, each time with all
    batches in the same places of the same pages; the host bytes of the call are then that many such strings,
    one invocation after the other. `phases` counts the host barriers of the call, all invocations together.
    """

    name: str
    command: int
    phases: int
    inputs: NDArray[np.void] = field(default_factory=no_host_slices)
    outputs: NDArray[np.void] = field(default_factory=no_host_slices)
    invocations: int = 1
    input_batch_ends: list[int] = field(default_factory=list)
    output_batch_ends: list[int] = field(default_factory=list)


@dataclass
class HostExchange:
    """Pages and calls. `startup_mark` is the last mark of the loader; the command word lies in a page."""

    startup_mark: int = 0
    command_page: int = 0
    command_offset: int = 0
    pages: list[HostPage] = field(default_factory=list)
    attach_order: list[int] = field(default_factory=list)
    calls: list[HostCall] = field(default_factory=list)


STEP_KINDS = ("host", "exchange", "compute", "copy")


@dataclass
class ProfileStep:
    """One step of the program. `kind` is one of `STEP_KINDS`."""

    name: str
    kind: str


@dataclass(eq=False)
class ProfilePlan:
    """Steps of the program, and per image the addresses at which they begin (`MARK` arrays)."""

    steps: list[ProfileStep] = field(default_factory=list)
    mark_tables: list[NDArray[np.void]] = field(default_factory=list)


@dataclass
class EntryPoint:
    """A command by name; `external_syncs` counts its host barriers after the session start."""

    name: str
    command: int
    external_syncs: int


@dataclass
class ConfigWrite:
    """A write to a register of the card's configuration space, applied after loading, in list order."""

    offset: int
    value: int


@dataclass
class Symbol:
    """A name of the shared program image."""

    name: str
    address: int


@dataclass
class Region:
    """A named range of one tile's memory, or of every tile's (`ALL_TILES`)."""

    physical_tile: int
    address: int
    size: int
    name: str


def no_lines() -> NDArray[np.void]:
    return np.zeros(0, LINE)


@dataclass
class CodeLines:
    """Where the code that every tile has was written: names of source files, and `rows` (LINE) by address."""

    files: list[str] = field(default_factory=list)
    rows: NDArray[np.void] = field(default_factory=no_lines)

    def find(self, address: int) -> tuple[str, int] | None:
        """File and line of the code at an address, as far as known."""
        index = int(np.searchsorted(self.rows["address"], address, side="right")) - 1
        if index < 0 or not self.rows["line"][index]:
            return None
        row = self.rows[index]
        return self.files[int(row["file"])], int(row["line"])


@dataclass
class Debug:
    """What a person wants to see and no machine needs; not covered by the digest.

    `live` has one entry per profile step: the names of the tensors that hold memory during it. `program` says
    how the program came about, for memory reports and debuggers.
    """

    graph: str = ""
    layouts: str = ""
    live: list[list[str]] = field(default_factory=list)
    program: ProgramInfo | None = None


@dataclass(eq=False, repr=False)
class Package:
    """Everything the loader, the runtime, the simulator and the profiler need.

    Segments and weights name blobs by index; equal byte strings are one blob.
    """

    compiler_version: str
    blobs: list[bytes]
    images: list[Image]
    tiles: list[TileImage]
    target: str = TARGET
    tile_memory_base: int = TILE_BASE
    tile_memory_size: int = TILE_BYTES
    inputs: list[Binding] = field(default_factory=list)
    outputs: list[Binding] = field(default_factory=list)
    weights: list[Binding] = field(default_factory=list)
    host_exchange: HostExchange = field(default_factory=HostExchange)
    entry_points: list[EntryPoint] = field(default_factory=list)
    device_config_writes: list[ConfigWrite] = field(default_factory=list)
    profile: ProfilePlan = field(default_factory=ProfilePlan)
    symbols: list[Symbol] = field(default_factory=list)
    regions: list[Region] = field(default_factory=list)
    lines: CodeLines = field(default_factory=CodeLines)
    provisional: NDArray[np.void] = field(default_factory=no_provisional_words)
    debug: Debug | None = None

    def __repr__(self) -> str:
        names = ", ".join(binding.name for binding in (*self.inputs, *self.outputs))
        return f"<Package for {self.target}: {names}; {len(self.images)} images, {len(self.blobs)} blobs>"

    @property
    def program(self) -> ProgramInfo | None:
        """What the program does, if the package says so."""
        return self.debug.program if self.debug is not None else None

    def segment_bytes(self, segment: Segment) -> bytes:
        """The file bytes of a segment, without the zeros that follow."""
        if not segment.file_size:
            return b""
        return self.blobs[segment.blob][segment.blob_offset : segment.blob_offset + segment.file_size]

    def call(self, name: str) -> HostCall | None:
        """The call of that name, or None."""
        return next((call for call in self.host_exchange.calls if call.name == name), None)
