"""What exchange rows weigh in programs of many layers that are not a loop, and what sharing them would save.

    python benchmarks/rows.py --layers 24 --width 384 --tiles 256

An encoder is planned with every layer written out. Its rows are laid out three times: one per phase, equal
ones once, and taking turns wherever that saves bytes (which the compiler does only as far as a program has no
room otherwise). Bytes are those of the tile with most; cycles are what the compiler expects,
which is what the simulator counts. `--json` gives the same to scripts.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tilewright as tw
from tilewright import TensorType, ops
from tilewright.ipu21 import compile as passes
from tilewright.ipu21.emit.predict import predict
from tilewright.ipu21.emit.tile_programs import Programs


def unrolled_encoder(layers: int, width: int, tokens: int) -> tw.Graph:
    """Layers of attention and a block of four times the width, heads of 32, random weights."""
    random = np.random.default_rng(1)

    def weights(rows: int, columns: int) -> NDArray[np.float32]:
        return (random.normal(size=(rows, columns)) * rows**-0.5).astype(np.float32)

    square = [[weights(width, width) for _ in range(4)] for _ in range(layers)]
    wide = [(weights(width, 4 * width), weights(4 * width, width)) for _ in range(layers)]
    one, zero = np.ones(width, np.float32), np.zeros(width, np.float32)

    def model(x: Any, mask: Any) -> Any:
        for (wq, wk, wv, wo), (w1, w2) in zip(square, wide, strict=True):
            mixed = ops.attention(x @ wq, x @ wk, x @ wv, mask, heads=width // 32)
            x = ops.layer_norm(x + mixed @ wo, one, zero, epsilon=1e-12)
            x = ops.layer_norm(x + ops.gelu(x @ w1) @ w2, one, zero, epsilon=1e-12)
        return x

    return tw.trace(model, x=TensorType((1, tokens, width)), mask=TensorType((1, tokens)))


def measure(layers: int, width: int, tokens: int, tiles: int) -> dict[str, Any]:
    """One row of the table."""
    begin = time.process_time()
    graph = unrolled_encoder(layers, width, tokens)
    fitted = passes.plan_for_ipu21(graph, tiles=tiles)
    # In no room at all everything is shared that can be.
    cramped = replace(fitted, placement=replace(fitted.placement, standard_start=0))
    schedules = passes._schedule(fitted.work, fitted.placement, lambda _: None)
    found: dict[str, Any] = {
        "layers": layers,
        "width": width,
        "tiles": tiles,
        "phases": len(schedules),
        "schedules": len({id(made) for made in schedules.values()}),
    }
    steps = fitted.work.plan.steps
    for name, economy in (("apart", passes.Economy.NONE), ("shared", passes.Economy.ROWS)):
        _, programs = passes._emit(graph, cramped, lambda _: None, passes.NUMERICS, economy)
        made = predict(fitted.work, fitted.placement, schedules, programs)
        times = fitted.work.plan.times()
        found[name] = {
            "row_bytes": max(_row_bytes(programs, tile) for tile in programs.rows),
            "code_bytes": max(4 * len(code.words) for code in programs.classes),
            "program_bytes": programs.end - programs.start,
            "cycles": int(sum(step.cycles * count for step, count in zip(made, times, strict=True))),
        }
        if not economy:
            found["each_phase_bytes"] = max(
                sum(row.words.nbytes for row in rows) for rows in programs.rows.values()
            )
    fitted.work.plan.steps = steps
    found["seconds"] = round(time.process_time() - begin, 1)
    return found


def _row_bytes(programs: Programs, tile: int) -> int:
    """Bytes of a tile's rows and of what rewrites them."""
    rows = {row.address: row.words.nbytes for row in programs.rows[tile]}
    return sum(rows.values()) + sum(4 * len(routine.lines) for routine in programs.routines[tile])


def show(found: Mapping[str, Any]) -> str:
    """A line of the table."""
    apart, shared = found["apart"], found["shared"]
    return (
        f"| {found['layers']} layers of {found['width']}, {found['tiles']:,} tiles | {found['phases']} | "
        f"{found['schedules']} | {found['each_phase_bytes']:,} | {apart['row_bytes']:,} | "
        f"{shared['row_bytes']:,} | {apart['program_bytes']:,} | {shared['program_bytes']:,} | "
        f"{shared['cycles'] / apart['cycles'] - 1:+.2%} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--tiles", type=int, nargs="+", default=[64])
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    rows = []
    for tiles in arguments.tiles:
        rows.append(measure(arguments.layers, arguments.width, arguments.tokens, tiles))
        if not arguments.json:
            print(show(rows[-1]), flush=True)
    if arguments.json:
        print(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
