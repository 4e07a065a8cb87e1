"""Every rule of a package, applied when it is written and when it is read.

The rules protect three parties: the loader (images start where it starts them and fit what it can fill), the
host (pages, offsets and sizes add up, no matter how large the numbers are) and the person who runs somebody
else's package (no register that takes over the card, no unbounded memory).

Two rules differ from the oldest public packages. `phases` is twice the number of batches of a call: the tile
program goes back to waiting for its next call, so every batch has both of its barriers and no extra one ends
the program. And a binding's slices may lie anywhere in data memory, because the tile copies them from where
the host's packets land.
"""

from __future__ import annotations

from tilewright.errors import PackageError

from .records import Package
from .rules.bindings import check_bindings
from .rules.exchange import check_exchange
from .rules.extras import (
    check_config_writes,
    check_entry_points,
    check_names,
    check_profile,
    check_provisional,
)
from .rules.images import check_blobs, check_images, check_tiles
from .rules.segments import Segments
from .rules.values import text
from .target import TARGET, TILE_BASE, TILE_BYTES


def validate(package: Package) -> None:
    """Raises PackageError for the first rule that the package breaks, naming the part and the values."""
    if package.target != TARGET:
        raise PackageError(f"made for target {package.target!r}, not for {TARGET!r}")
    if (package.tile_memory_base, package.tile_memory_size) != (TILE_BASE, TILE_BYTES):
        raise PackageError(
            f"tile memory of {package.tile_memory_size:#x} bytes at {package.tile_memory_base:#x} "
            f"is not the target's {TILE_BYTES:#x} at {TILE_BASE:#x}"
        )
    text(package.compiler_version, "compiler version", "package", empty=True)
    check_blobs(package)
    check_tiles(package)
    segments = Segments(package)
    check_images(package, segments)
    check_bindings(package, segments)
    check_exchange(package, segments)
    check_entry_points(package)
    check_config_writes(package)
    check_profile(package, segments)
    check_provisional(package, segments)
    check_names(package)
