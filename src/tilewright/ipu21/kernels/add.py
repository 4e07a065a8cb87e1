"""`add_f16`: the sum of two float16 arrays, anywhere, in place if wanted.

Per 8-byte word two slots where a load and a store may share one (see `paced`), three elsewhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .halves import Halves, to_halves
from .kernel import Contract, Kernel, Operand
from .launch import WORDS, words_cycles
from .paced import SUPERVISOR_CYCLES, paced_kernel
from .text import bundle


def _source() -> str:
    start = [
        "ld32 $m4, $mvertex_base, $mzero, 2",
        "ld32 $m5, $mvertex_base, $mzero, 3",
        "ld32 $m6, $mvertex_base, $mzero, 4",
        "add $m4, $m4, $m0",
        "add $m5, $m5, $m0",
        "add $m6, $m6, $m0",
        "ld64step $a0:1, $mzero, $m5+=, 1",
        "ld64step $a2:3, $mzero, $m6+=, 1",
        "add $m1, $m1, -1",
    ]
    end = ["f16v4add $a4:5, $a0:1, $a2:3", "st64 $a4:5, $m4, $mzero, 0"]
    return paced_kernel(
        "add_f16",
        ["$m2", "$m3", "$m4"],
        "$m5",
        load="$m3",
        store="$m2",
        plain=[
            *start,
            bundle("rpt $m1, 2"),
            bundle("ld64step $a0:1, $mzero, $m5+=, 1", "f16v4add $a4:5, $a0:1, $a2:3"),
            bundle("ld64step $a2:3, $mzero, $m6+=, 1"),
            bundle("st64step $a4:5, $mzero, $m4+=, 1"),
            *end,
        ],
        paced=[
            *start,
            "tapack $m2:3, $m5, $m5, $m4",
            bundle("rpt $m1, 1"),
            bundle("ld64step $a2:3, $mzero, $m6+=, 1", "f16v4add $a4:5, $a0:1, $a2:3"),
            bundle("ldst64pace $a0:1, $a4:5, $m2:3+=, $mzero, 0"),
            "f16v4add $a4:5, $a0:1, $a2:3",
            "st64pace $a4:5, $m2:3+=, $mzero, 0",
        ],
    )


def cycles(words: Any, way: str = "interleaved") -> Any:
    """Cycles of `add_f16` (exact on the simulator); integers or arrays. `way` of A and C: see `paced.way`."""
    once, each = (13, 3) if way == "plain" else (14, 2)
    return words_cycles(words, once, each, SUPERVISOR_CYCLES[way])


def reference(a: Halves, b: Halves) -> Halves:
    """a + b, each float16, one rounding."""
    with np.errstate(invalid="ignore", over="ignore"):
        return to_halves(a.astype(np.float64) + b.astype(np.float64))


KERNEL = Kernel(
    "add_f16",
    _source,
    Contract(
        operands=(Operand("c", "words", "out"), Operand("a", "words", "in"), Operand("b", "words", "in")),
        scalars=(WORDS,),
        may_alias=(("c", "a"), ("c", "b")),
    ),
    cycles,
    reference,
)
