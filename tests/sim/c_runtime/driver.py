"""Calls a C runtime function many times, in a worker or in the supervisor."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tilewright.tile import TileBench, TileProgram

_SUPERVISOR = """
.supervisor
.globl drive
drive:
    add $m11, $m11, -8
    st32 $m10, $m11, $m15, 0
    mov $m7, $m0
    mov $m8, $m1
    mov $m9, $m2
1:  brz $m9, 2f
    ld32step $m0, $m15, $m7+=, 1
    ld32step $m1, $m15, $m7+=, 1
    ld32step $m2, $m15, $m7+=, 1
    ld32step $m3, $m15, $m7+=, 1
    call $m10, {name}
    st32step $m0, $m15, $m8+=, 1
    st32step $m1, $m15, $m8+=, 1
    add $m9, $m9, -1
    bri 1b
2:  ld32 $m10, $m11, $m15, 0
    add $m11, $m11, 8
    br $m10
"""
_WORKER = (
    _SUPERVISOR.replace(".supervisor", ".worker")
    .replace("ld32step $m0,", "ld32 $a0, $m7, $m15, 0\nld32 $a1, $m7, $m15, 1\nld32step $m0,")
    .replace("add $m9, $m9, -1", "st32step $a0, $m15, $m8+=, 1\nadd $m9, $m9, -1")
)


@lru_cache(maxsize=256)
def _program(name: str, context: str) -> TileProgram:
    source = _SUPERVISOR if context == "supervisor" else _WORKER
    return TileProgram.from_source(source.format(name=name), filename="drive.S")


def call(name: str, arguments: ArrayLike, context: str, engines: str) -> NDArray[np.uint32]:
    """Results [n, 2] or, of a worker, [n, 3] of $m0, $m1 and $a0.

    `arguments` uint32 [n, up to 4] are in $m0.. and the first two in $a0 and $a1 as well. What a function
    must keep for its caller is what the loop lives on.
    """
    given = np.asarray(arguments, dtype=np.uint32)
    padded = np.zeros((len(given), 4), dtype=np.uint32)
    padded[:, : given.shape[1]] = given
    bench = TileBench(_program(name, context), engines=engines)
    bench.put("arguments", padded)
    columns = 2 if context == "supervisor" else 3
    results = bench.reserve("results", "u32", (len(given), columns))
    registers = {"m0": bench.buffers["arguments"], "m1": results, "m2": len(given)}
    if context == "supervisor":
        bench.call("drive", registers, budget=10_000_000)
    else:
        bench.run_vertex("drive", workers=1, registers=registers, budget=10_000_000)
    return np.asarray(bench.array(results))
