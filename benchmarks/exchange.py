"""How good exchange schedules are: length over the lower bound, time to schedule, bytes of row code.

    python benchmarks/exchange.py [--json] [--seeds N] [--quick]

`ratio` is the longest row's events over a bound that no schedule can beat: the busiest endpoint's words
(halved where both tiles of a pair want them and 64-bit items could bring them) with the least lead-in and
route time of its first and last message. Of several seeds the worst ratio is shown. Times are processor
seconds of one thread with compiled loops loaded; what else runs on the machine makes them longer.
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


def _stacked(tile: NDArray[np.int64], size: NDArray[np.int64]) -> NDArray[np.int64]:
    """Offsets at which pieces of `size` bytes lie one behind the other on each tile."""
    order = np.argsort(tile, kind="stable")
    before = np.cumsum(size[order]) - size[order]
    first = np.searchsorted(tile[order], tile[order])
    offset = np.empty(len(tile), dtype=np.int64)
    offset[order] = before - before[first]
    return offset


def phase(
    source: NDArray[np.int64],
    words: NDArray[np.int64],
    counts: NDArray[np.int64],
    tiles: NDArray[np.int64],
    gap: int = 0,
) -> Phase:
    """Transfers with receivers in order; sources lie one behind the other on each tile, and so do targets,
    with `gap` bytes between them."""
    transfers = np.zeros(len(source), TRANSFER)
    transfers["source"], transfers["words"] = source, words
    transfers["address"] = SOURCE_BASE + _stacked(source, 4 * words)
    transfers["first"], transfers["count"] = np.cumsum(counts) - counts, counts
    destinations = np.zeros(len(tiles), DESTINATION)
    destinations["tile"] = tiles
    destinations["address"] = TARGET_BASE + _stacked(tiles, 4 * np.repeat(words, counts) + gap)
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


def operands(
    rows: int, columns: int, inner: int, left: tuple[int, int], right: tuple[int, int] = (0, 0)
) -> Phase:
    """Both operands of a GEMM on a rows x columns x inner grid, columns counted fastest.

    `left` is (pieces, words) that each tile holds of what its row wants, `right` of what its column wants. A
    gap at the receivers keeps pieces from continuing one another.
    """
    tiles = TILES[: rows * columns * inner].reshape(rows, inner, columns)
    sources, words, counts, receivers = [], [], [], []
    for groups, (pieces, size) in (
        (tiles.reshape(-1, columns), left),
        (tiles.reshape(rows, -1).T, right),
    ):
        for group in groups if pieces else []:
            for at, source in enumerate(group):
                sources += [source] * pieces
                words += [size] * pieces
                counts += [len(group) - 1] * pieces
                receivers += [np.delete(group, at)] * pieces
    return phase(np.array(sources), np.array(words), np.array(counts), np.concatenate(receivers), gap=32)


def partial_sums(rows: int, columns: int, inner: int, pieces: int, words: int) -> Phase:
    """Every tile of a rows x columns x inner grid sends each of the others of its block its share of the
    sums, in `pieces` pieces that do not continue one another."""
    tiles = TILES[: rows * columns * inner].reshape(rows, inner, columns).transpose(0, 2, 1)
    groups = tiles.reshape(-1, inner)
    shift = np.arange(1, inner)
    others = groups[:, (np.arange(inner)[:, None] + shift) % inner]
    source = np.repeat(np.repeat(groups[:, :, None], inner - 1, axis=2).reshape(-1), pieces)
    tile = np.repeat(others.reshape(-1), pieces)
    ones = np.ones(len(source), dtype=np.int64)
    return phase(source, words * ones, ones, tile, gap=32)


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


def measure(asked: Phase) -> dict[str, float]:
    transfers, destinations = asked
    begin = time.process_time()
    result = schedule(transfers, destinations)
    seconds = time.process_time() - begin
    chunks = np.zeros(1536)
    np.add.at(chunks, result.messages.source, 1)
    np.add.at(chunks, result.messages.tile, 1)
    return {
        "transfers": len(transfers),
        "words": int((transfers["words"].astype(np.int64) * transfers["count"]).sum()),
        "events": result.horizon,
        "bound": result.bound,
        "ratio": round(result.horizon / result.bound, 4),
        "seconds": round(seconds, 3),
        "row_bytes": round(4 * len(result.words) / max(len(result.tiles), 1), 1),
        "row_bytes_estimate": round(4 * (1 + 42 * float(chunks.sum()) / max(len(result.tiles), 1)), 1),
        "largest_row_bytes": 4 * int(np.diff(result.word_offsets).max(initial=0)),
        "paired": bool(result.messages.wide.any()),
    }


CASES: tuple[tuple[str, str, Callable[[int], Phase], float | None], ...] = (
    ("permutation_1024w", "8 superposed", lambda seed: permutations(seed, 1024), 1.05),
    ("permutation_256w", "8 superposed", lambda seed: permutations(seed, 256), 1.10),
    ("permutation_64w", "8 superposed", lambda seed: permutations(seed, 64), None),
    ("permutation_10w", "8 superposed", lambda seed: permutations(seed, 10), None),
    ("multicast_256w", "400, fan-out 2..64", lambda seed: multicasts(seed, 256, 400), 1.10),
    ("multicast_256w", "100, fan-out 2..64", lambda seed: multicasts(seed, 256, 100), 1.10),
    ("multicast_256w", "1472, fan-out 2..64", lambda seed: multicasts(seed, 256, 1472), 1.10),
    ("multicast_1024w", "400, fan-out 2..64", lambda seed: multicasts(seed, 1024, 400), 1.10),
    ("gemm_phases", "operand, 64 x 23, 512 w", lambda seed: grid(64, 23, 512), 1.10),
    ("gemm_phases", "operand, 32 x 46, 300 w", lambda seed: grid(32, 46, 300), 1.10),
    ("gemm_phases", "reduction of 23, 90 w", lambda seed: reduction(64, 23, 90), 1.10),
    ("gemm_phases", "reduction of 46, 64 w", lambda seed: reduction(32, 46, 64), 1.10),
    ("gemm_phases", "7x26x8, 7x180 + 1x1280 w", lambda seed: operands(7, 26, 8, (7, 180), (1, 1280)), 1.10),
    ("gemm_phases", "7x26x8, 7x180 w", lambda seed: operands(7, 26, 8, (7, 180)), 1.10),
    ("gemm_phases", "7x26x8, right, 1280 w", lambda seed: operands(7, 26, 8, (0, 0), (1, 1280)), 1.10),
    ("gemm_phases", "7x26x8, sums, 10x584 w", lambda seed: partial_sums(7, 26, 8, 10, 584), 1.10),
    ("gemm_phases", "8x30x6, 1x128 w", lambda seed: operands(8, 30, 6, (1, 128)), 1.10),
    ("gemm_phases", "8x30x6, sums, 1x84 w", lambda seed: partial_sums(8, 30, 6, 1, 84), 1.10),
    ("alltoall_64", "16 to 256 words", lambda seed: all_to_all(seed, 64), 1.15),
    ("schedule_s_100k", "1 to 19 words", lambda seed: scattered(seed, 100_000), 1.5),
    ("schedule_s_1m", "1 to 19 words", lambda seed: scattered(seed, 1_000_000), 1.5),
)
"""Row name, case, phase of a seed, goal for the ratio. Pieces of GEMM operands are those of a chunk of the
4096-cubed product on 7 x 26 x 8 tiles, and of a 128 x 384 x 1536 product on 8 x 30 x 6."""
SECONDS = {"schedule_s_100k": 3.0, "schedule_s_1m": 30.0}
"""Rows that are about the time, with its goal: growth is to be linear."""


def run(seeds: int, quick: bool) -> list[dict[str, object]]:
    measure(permutations(0, 8, 1))
    measure(multicasts(0, 8, 4))
    rows: list[dict[str, object]] = []
    for name, case, make, goal in CASES:
        if quick and name == "schedule_s_1m":
            continue
        count = 1 if name in ("gemm_phases", "schedule_s_1m") else seeds
        measured = [measure(make(seed)) for seed in range(count)]
        worst = max(measured, key=lambda one: one["ratio"])
        rows.append({"name": name, "case": case, "goal": goal, "seeds": count, **worst})
    for row in rows[:5:4]:
        rows.append(
            {
                "name": "row_bytes",
                "case": f"{row['name']}, {row['case']}",
                "bytes": row["row_bytes"],
                "estimate": row["row_bytes_estimate"],
            }
        )
    return rows


def reported(row: dict[str, object]) -> dict[str, object]:
    """A row as tools read it; what was measured beside the value comes along."""
    if row["name"] == "row_bytes":
        value, unit, goal = row["bytes"], "bytes of row code per tile", row["estimate"]
    elif row["name"] in SECONDS:
        value, unit, goal = row["seconds"], "s", SECONDS[str(row["name"])]
    else:
        value, unit, goal = row["ratio"], "length / bound", row["goal"]
    rest = {key: item for key, item in row.items() if key not in ("name", "goal")}
    return {"name": row["name"], "value": value, "unit": unit, "goal": goal, "better": "lower", **rest}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--seeds", type=int, default=3, help="seeds 0..N-1 of every random case (3)")
    parser.add_argument("--quick", action="store_true", help="leave out the million transfers")
    arguments = parser.parse_args()
    rows = run(arguments.seeds, arguments.quick)
    if arguments.json:
        print(json.dumps({"rows": [reported(row) for row in rows]}, indent=1))
        return
    print(f"{'name':19}{'case':26}{'transfers':>10}{'events':>8}{'bound':>8}{'ratio':>7}{'goal':>6}", end="")
    print(f"{'seconds':>9}{'row bytes':>11}  64-bit")
    for row in rows:
        if row["name"] == "row_bytes":
            print(f"{row['name']:19}{row['case']}: {row['bytes']} per tile,", end=" ")
            print(f"estimate 4*(1 + 42*chunks) = {row['estimate']}")
            continue
        goal = "" if row["goal"] is None else f"{row['goal']:.2f}"
        print(
            f"{row['name']:19}{row['case']:26}{row['transfers']:>10}{row['events']:>8}{row['bound']:>8}"
            f"{row['ratio']:>7.3f}{goal:>6}{row['seconds']:>9.2f}{row['row_bytes']:>11.0f}"
            f"  {'yes' if row['paired'] else ''}"
        )


if __name__ == "__main__":
    main()
