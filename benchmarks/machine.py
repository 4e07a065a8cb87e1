"""What the machine gives: arithmetic alone, and how much faster two pieces of work at once are than one."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor
from functools import lru_cache
from itertools import product
from multiprocessing import get_context

import numpy as np

from tilewright.ipu21.simulator.translate.native import LIGHT, compile_module, without_cache
from tilewright.native.objects import Loaded

LEAD = 0.004
"""Seconds until a common start."""


def wall(work: Callable[[int], object], pool: Executor, count: int) -> float:
    """Seconds from a common start until `count` pieces of work are done at once."""
    spans = list(pool.map(_timed, [work] * count, range(count), [time.monotonic() + LEAD] * count))
    return max(end for _, end in spans) - min(begin for begin, _ in spans)


def _timed(work: Callable[[int], object], index: int, begin: float) -> tuple[float, float]:
    while time.monotonic() < begin:
        # Busy without the interpreter lock, so that each of two gets a core of its own.
        _call(_multiply_adds(), 5_000)
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


FUNCTION = """
define i64 @arithmetic(i64 %rounds, ptr %weights, ptr %inputs) {{
entry:
  br label %loop
loop:
  %index = phi i64 [ 0, %entry ], [ %next, %loop ]
{begin}
{body}
  %next = add i64 %index, 1
  %more = icmp ult i64 %next, %rounds
  br i1 %more, label %loop, label %end
end:
{sums}
  %whole = fptosi double %first to i64
  ret i64 %whole
}}
declare <8 x double> @llvm.fmuladd.v8f64(<8 x double>, <8 x double>, <8 x double>)
"""
EIGHT = "<8 x double>"
CHAINS = 10


def _all(value: float) -> str:
    return "<" + ", ".join([f"double {value:.1f}"] * 8) + ">"


Operate = Callable[[str], str]
"""Emits an operation and returns the name of its result."""


def _loop(chains: int, body: Callable[[Operate, list[str]], list[str]]) -> Loaded:
    """A loop over so many vectors of eight doubles; `body` emits operations and gives their next values."""
    lines: list[str] = []

    def op(text: str) -> str:
        lines.append(f"  %v{len(lines)} = {text}")
        return f"%v{len(lines) - 1}"

    ends = body(op, [f"%a{chain}" for chain in range(chains)])
    begin = [
        f"  %a{chain} = phi {EIGHT} [ {_all(0.5)}, %entry ], [ {end}, %loop ]"
        for chain, end in enumerate(ends)
    ]
    count = len(lines)
    total = ends[0]
    for end in ends[1:]:
        total = op(f"fadd {EIGHT} {total}, {end}")
    sums = [*lines[count:], f"  %first = extractelement {EIGHT} {total}, i32 0"]
    text = FUNCTION.format(begin="\n".join(begin), body="\n".join(lines[:count]), sums="\n".join(sums))
    with without_cache():
        return compile_module("arithmetic", lambda: text, LIGHT)[0]


def _multiply_add(a: str, b: str, c: str) -> str:
    return f"call {EIGHT} @llvm.fmuladd.v8f64({EIGHT} {a}, {EIGHT} {b}, {EIGHT} {c})"


@lru_cache(maxsize=1)
def _multiply_adds() -> Loaded:
    """Independent multiply-adds in registers."""
    return _loop(
        CHAINS, lambda op, values: [op(_multiply_add(value, _all(0.5), _all(0.5))) for value in values]
    )


def _call(code: Loaded, rounds: int, weights: int = 0, inputs: int = 0) -> None:
    prototype = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
    prototype(code.address("arithmetic"))(rounds, weights, inputs)


def arithmetic(index: int) -> None:
    """About a millisecond of arithmetic alone, in native code without the interpreter lock."""
    _call(_multiply_adds(), 5_000_000 // CHAINS)


ROWS = 4


def _amp_sums() -> Loaded:
    """The sums of four rows of AMPs: products of doubles, the accumulator, rounding to 24 bits."""

    def one(op: Operate, where: int) -> str:
        single = op(f"load double, ptr {op(f'getelementptr double, ptr %inputs, i64 {where}')}")
        vector = op(f"insertelement {EIGHT} poison, double {single}, i32 0")
        return op(f"shufflevector {EIGHT} {vector}, {EIGHT} poison, <8 x i32> zeroinitializer")

    def body(op: Operate, values: list[str]) -> list[str]:
        for row, phase in product(range(ROWS), range(4)):
            inputs = [one(op, 16 * row + 4 * phase + element) for element in range(4)]
            for half in range(2):
                total = ""
                for element, x in enumerate(inputs):
                    place = op(
                        f"getelementptr double, ptr %weights, i64 {64 * phase + 16 * element + 8 * half}"
                    )
                    weights = op(f"load {EIGHT}, ptr {place}")
                    total = op(_multiply_add(x, weights, total) if total else f"fmul {EIGHT} {x}, {weights}")
                total = op(f"fadd {EIGHT} {values[2 * row + half]}, {total}")
                rest = op(_multiply_add(total, _all(-(2.0**29)), total))
                values[2 * row + half] = op(_multiply_add(total, _all(2.0**29), rest))
        return values

    return _loop(2 * ROWS, body)


def amp_sums_rate(tries: int = 300) -> float:
    """Millions of AMPs per second of which only the arithmetic is done, by the thread's own time."""
    code, rounds, best = _amp_sums(), 2000, float("inf")
    room = np.full(512, 0.25)
    weights = room[-(room.ctypes.data >> 3) % 8 :]
    for _ in range(tries):
        start = time.thread_time()
        _call(code, rounds, weights.ctypes.data, weights[256:].ctypes.data)
        best = min(best, time.thread_time() - start)
    return 4 * ROWS * rounds / best / 1e6


def arithmetic_scaling() -> float:
    """Two processes that do nothing but arithmetic: what the machine's cores give."""
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        return scaling(arithmetic, pool)
