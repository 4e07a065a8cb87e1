"""How much faster two pieces of work at once are than one: of anything, and of arithmetic alone."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor
from functools import lru_cache
from multiprocessing import get_context

from tilewright.ipu21.simulator.translate.native import LIGHT, Compiled, compile_module, without_cache

LEAD = 0.004
"""Seconds until a common start."""


def wall(work: Callable[[int], object], pool: Executor, count: int) -> float:
    """Seconds from a common start until `count` pieces of work are done at once."""
    spans = list(pool.map(_timed, [work] * count, range(count), [time.monotonic() + LEAD] * count))
    return max(end for _, end in spans) - min(begin for begin, _ in spans)


def _timed(work: Callable[[int], object], index: int, begin: float) -> tuple[float, float]:
    while time.monotonic() < begin:
        pass
    start = time.monotonic()
    work(index)
    return start, time.monotonic()


def scaling(work: Callable[[int], object], pool: Executor, tries: int = 300) -> float:
    """Speed of two pieces of work at once over one, in wall-clock time, best of many short tries of each."""
    singles, pairs = [], []
    for _ in range(tries):
        singles.append(wall(work, pool, 1))
        pairs.append(wall(work, pool, 2))
    return 2 * min(singles) / min(pairs)


ARITHMETIC = """
define i64 @arithmetic(i64 %rounds) {
entry:
  br label %loop
loop:
  %index = phi i64 [ 0, %entry ], [ %next, %loop ]
PHIS
BODY
  %next = add i64 %index, 1
  %more = icmp ult i64 %next, %rounds
  br i1 %more, label %loop, label %end
end:
SUM
  %whole = fptosi double %first to i64
  ret i64 %whole
}
declare <8 x double> @llvm.fmuladd.v8f64(<8 x double>, <8 x double>, <8 x double>)
"""
"""Independent multiply-adds in registers."""
CHAINS = 10


def arithmetic(index: int) -> None:
    """About a millisecond of arithmetic alone, in native code without the interpreter lock."""
    prototype = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
    prototype(_arithmetic_code().address("arithmetic"))(5_000_000 // CHAINS)


@lru_cache(maxsize=1)
def _arithmetic_code() -> Compiled:
    kind, half = "<8 x double>", "<" + ", ".join(["double 0.5"] * 8) + ">"
    phis, body, names = [], [], []
    for chain in range(CHAINS):
        phis.append(f"  %a{chain} = phi {kind} [ {half}, %entry ], [ %b{chain}, %loop ]")
        arguments = f"{kind} %a{chain}, {kind} {half}, {kind} {half}"
        body.append(f"  %b{chain} = call {kind} @llvm.fmuladd.v8f64({arguments})")
        names.append(f"%b{chain}")
    total, sums = names[0], []
    for name in names[1:]:
        sums.append(f"  {name}sum = fadd {kind} {total}, {name}")
        total = f"{name}sum"
    sums.append(f"  %first = extractelement {kind} {total}, i32 0")
    text = ARITHMETIC
    for place, lines in (("PHIS", phis), ("BODY", body), ("SUM", sums)):
        text = text.replace(place, "\n".join(lines))
    with without_cache():
        return compile_module("arithmetic", lambda: text, LIGHT)[0]


def arithmetic_scaling() -> float:
    """Two processes that do nothing but arithmetic: what the machine's cores give."""
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        return scaling(arithmetic, pool)
