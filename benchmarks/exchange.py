"""How good exchange schedules are: length over the lower bound, time to schedule, bytes of row code.

    python benchmarks/exchange.py [--json] [--seed S] [--quick]

`ratio` is the longest row's events over a bound that no schedule can beat: the busiest endpoint's words with
the least lead-in and route time of its first and last message. Times are wall clock on one core with compiled
loops already loaded.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tilewright.ipu21.fabric.schedule import schedule
from tilewright.ipu21.fabric.transfers import DESTINATION, TRANSFER
from tilewright.ipu21.machine import topology

SOURCE_BASE, TARGET_BASE = 0x50000, 0x80000
Phase = tuple[NDArray[np.void], NDArray[np.void]]
TILES = topology.to_physical(np.arange(topology.TILES))


def phase(
    source: NDArray[np.int64], words: NDArray[np.int64], counts: NDArray[np.int64], tiles: NDArray[np.int64]
) -> Phase:
    """Transfers with receivers in order; destinations lie one behind the other on each tile."""
    owner = np.repeat(np.arange(len(source)), counts)
    size = 4 * words[owner]
    order = np.argsort(tiles, kind="stable")
    before = np.cumsum(size[order]) - size[order]
    first = np.searchsorted(tiles[order], tiles[order])
    address = np.empty(len(tiles), dtype=np.int64)
    address[order] = TARGET_BASE + before - before[first]
    transfers = np.zeros(len(source), TRANSFER)
    transfers["source"], transfers["address"], transfers["words"] = source, SOURCE_BASE, words
    transfers["first"], transfers["count"] = np.cumsum(counts) - counts, counts
    destinations = np.zeros(len(tiles), DESTINATION)
    destinations["tile"], destinations["address"] = tiles, address
    return transfers, destinations


def permutations(seed: int, words: int, rounds: int = 8) -> Phase:
    """Superposed random permutations, in random order."""
    random = np.random.default_rng(seed)
    pairs = []
    for _ in range(rounds):
        cycle = random.permutation(TILES)
        pairs.append(np.stack([cycle, np.roll(cycle, 1)], axis=1))
    source, tile = random.permutation(np.concatenate(pairs)).T
    ones = np.ones(len(source), dtype=np.int64)
    return phase(source, words * ones, ones, tile)


def multicasts(seed: int, words: int, count: int) -> Phase:
    """Random multicasts with a fan-out of 2 to 64."""
    random = np.random.default_rng(seed)
    groups = [random.choice(TILES, 1 + int(random.integers(2, 65)), replace=False) for _ in range(count)]
    receivers = np.array([len(group) - 1 for group in groups])
    source = np.array([group[0] for group in groups])
    return phase(source, np.full(count, words), receivers, np.concatenate([group[1:] for group in groups]))


def grid(rows: int, columns: int, words: int) -> Phase:
    """Every tile of a grid sends its part of an operand to the tiles of its grid row: one GEMM operand."""
    tiles = TILES[: rows * columns].reshape(rows, columns)
    receivers = [np.delete(tiles[r], c) for r in range(rows) for c in range(columns)]
    count = rows * columns
    return phase(
        tiles.reshape(-1), np.full(count, words), np.full(count, columns - 1), np.concatenate(receivers)
    )


def reduction(rows: int, columns: int, words: int) -> Phase:
    """Within each grid row, every tile sends every other its share of the partial results."""
    tiles = TILES[: rows * columns].reshape(rows, columns)
    source = np.repeat(tiles, columns - 1, axis=1).reshape(-1)
    receivers = [np.delete(tiles[r], c) for r in range(rows) for c in range(columns)]
    ones = np.ones(len(source), dtype=np.int64)
    return phase(source, words * ones, ones, np.concatenate(receivers))


def all_to_all(seed: int, count: int) -> Phase:
    """Uneven messages of 16 to 256 words among random tiles."""
    random = np.random.default_rng(seed)
    tiles = random.choice(TILES, count, replace=False)
    source = np.repeat(tiles, count - 1)
    receivers = np.concatenate([np.delete(tiles, i) for i in range(count)])
    ones = np.ones(len(source), dtype=np.int64)
    return phase(source, random.integers(16, 257, len(source)), ones, receivers)


def scattered(seed: int, count: int) -> Phase:
    """Random unicasts of 1 to 19 words."""
    random = np.random.default_rng(seed)
    source = random.integers(0, topology.TILES, count)
    tile = (source + random.integers(1, topology.TILES, count)) % topology.TILES
    ones = np.ones(count, dtype=np.int64)
    return phase(TILES[source], random.integers(1, 20, count), ones, TILES[tile])


def measure(name: str, make: Callable[[], Phase], target: float | None) -> dict[str, object]:
    transfers, destinations = make()
    begin = time.perf_counter()
    result = schedule(transfers, destinations)
    seconds = time.perf_counter() - begin
    return {
        "name": name,
        "transfers": len(transfers),
        "words": int((transfers["words"].astype(np.int64) * transfers["count"]).sum()),
        "events": result.horizon,
        "bound": result.bound,
        "ratio": round(result.horizon / result.bound, 4),
        "target": target,
        "seconds": round(seconds, 3),
        "row_bytes": round(4 * len(result.words) / max(len(result.tiles), 1), 1),
        "largest_row_bytes": 4 * int(np.diff(result.word_offsets).max(initial=0)),
    }


def row_bytes(measured: dict[str, object], chunks: int) -> dict[str, object]:
    """Row code against the usual estimate of 4 * (phases + 42 * chunks) bytes per tile."""
    estimate = 4 * (1 + 42 * chunks)
    return {"name": "row_bytes", "of": measured["name"], "bytes": measured["row_bytes"], "estimate": estimate}


def run(seed: int, quick: bool) -> list[dict[str, object]]:
    measure("warm-up", lambda: permutations(seed, 8, 1), None)
    measure("warm-up", lambda: multicasts(seed, 8, 4), None)
    rows = [
        measure("permutation_1024w", lambda: permutations(seed, 1024), 1.05),
        measure("permutation_256w", lambda: permutations(seed, 256), 1.10),
        measure("permutation_64w", lambda: permutations(seed, 64), None),
        measure("permutation_10w", lambda: permutations(seed, 10), None),
        measure("multicast_256w", lambda: multicasts(seed, 256, 400), 1.10),
        measure("gemm_phases: 64x23, 512 w", lambda: grid(64, 23, 512), 1.10),
        measure("gemm_phases: 32x46, 300 w", lambda: grid(32, 46, 300), 1.10),
        measure("gemm_phases: reduce 23, 90 w", lambda: reduction(64, 23, 90), 1.10),
        measure("alltoall_64", lambda: all_to_all(seed, 64), 1.15),
        measure("schedule_s_100k", lambda: scattered(seed, 100_000), 1.5),
    ]
    if not quick:
        rows.append(measure("schedule_s_1m", lambda: scattered(seed, 1_000_000), 1.5))
    # Eight messages sent and eight received per tile, each one chunk.
    rows.append(row_bytes(rows[0], 16))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="leave out the million transfers")
    arguments = parser.parse_args()
    rows = run(arguments.seed, arguments.quick)
    if arguments.json:
        print(json.dumps(rows, indent=2))
        return
    print(
        f"{'case':31}{'transfers':>10}{'events':>9}{'bound':>9}{'ratio':>8}{'target':>8}{'seconds':>9}{'bytes/tile':>12}"
    )
    for row in rows:
        if row["name"] == "row_bytes":
            print(f"row bytes per tile of {row['of']}: {row['bytes']}, estimate {row['estimate']}")
            continue
        target = "" if row["target"] is None else f"{row['target']:.2f}"
        print(
            f"{row['name']:31}{row['transfers']:>10}{row['events']:>9}{row['bound']:>9}{row['ratio']:>8.3f}"
            f"{target:>8}{row['seconds']:>9.3f}{row['row_bytes']:>12.0f}"
        )


if __name__ == "__main__":
    main()
