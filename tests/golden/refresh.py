"""Measure `metrics.json` anew: simulated cycles and bytes per tile of the digits demo."""

from __future__ import annotations

import json
from pathlib import Path

from tilewright.cli.digits_demo import run_digits
from tilewright.files import write_whole

TILE_COUNTS = (16, 64)


def measure(tiles: int) -> dict[str, int]:
    """What is deterministic about one run."""
    result = run_digits(tiles)
    return {"tiles": tiles, "cycles": result.cycles, "tile_bytes_max": result.tile_bytes_max}


def main() -> None:
    """Write the file, and print it when it changed."""
    path = Path(__file__).with_name("metrics.json")
    before = path.read_text() if path.exists() else ""
    after = json.dumps({"digits": [measure(tiles) for tiles in TILE_COUNTS]}, indent=2) + "\n"
    write_whole(path, after.encode())
    print("unchanged" if after == before else after.rstrip())


if __name__ == "__main__":
    main()
