"""What the machine gives: arithmetic alone, and how much faster two pieces of work at once are than one."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass
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
  %whole = fptosi {element} %first to i64
  ret i64 %whole
}}
declare {vector} @llvm.fmuladd.{suffix}({vector}, {vector}, {vector})
"""
CHAINS = 10

Operate = Callable[[str], str]
"""Emits an operation and returns the name of its result."""


@dataclass(frozen=True)
class Vectors:
    """Vectors of 512 bits: `count` numbers of an LLVM type, which intrinsics call `suffix`."""

    element: str
    count: int
    suffix: str

    @property
    def name(self) -> str:
        return f"<{self.count} x {self.element}>"

    def all(self, value: float) -> str:
        return "<" + ", ".join([f"{self.element} {value:.1f}"] * self.count) + ">"

    def multiply_add(self, a: str, b: str, c: str) -> str:
        return (
            f"call {self.name} @llvm.fmuladd.{self.suffix}({self.name} {a}, {self.name} {b}, {self.name} {c})"
        )

    def loop(self, chains: int, body: Callable[[Operate, list[str]], list[str]]) -> Loaded:
        """A loop over so many vectors; `body` emits operations and gives their next values."""
        lines: list[str] = []

        def op(text: str) -> str:
            lines.append(f"  %v{len(lines)} = {text}")
            return f"%v{len(lines) - 1}"

        ends = body(op, [f"%a{chain}" for chain in range(chains)])
        begin = [
            f"  %a{chain} = phi {self.name} [ {self.all(0.5)}, %entry ], [ {end}, %loop ]"
            for chain, end in enumerate(ends)
        ]
        count = len(lines)
        total = ends[0]
        for end in ends[1:]:
            total = op(f"fadd {self.name} {total}, {end}")
        text = FUNCTION.format(
            begin="\n".join(begin),
            body="\n".join(lines[:count]),
            sums="\n".join([*lines[count:], f"  %first = extractelement {self.name} {total}, i32 0"]),
            element=self.element,
            vector=self.name,
            suffix=self.suffix,
        )
        with without_cache():
            return compile_module("arithmetic", lambda: text, LIGHT)[0]


DOUBLES, SINGLES = Vectors("double", 8, "v8f64"), Vectors("float", 16, "v16f32")


@lru_cache(maxsize=1)
def _multiply_adds() -> Loaded:
    """Independent multiply-adds in registers."""
    half = DOUBLES.all(0.5)
    return DOUBLES.loop(
        CHAINS, lambda op, values: [op(DOUBLES.multiply_add(value, half, half)) for value in values]
    )


def _call(code: Loaded, rounds: int, weights: int = 0, inputs: int = 0) -> None:
    prototype = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
    prototype(code.address("arithmetic"))(rounds, weights, inputs)


def arithmetic(index: int) -> None:
    """About a millisecond of arithmetic alone, in native code without the interpreter lock."""
    _call(_multiply_adds(), 5_000_000 // CHAINS)


ROWS = 4


def _amp_sums() -> Loaded:
    """The sums of four rows of AMPs: products and sums of sixteen singles, then the accumulators."""
    name = SINGLES.name

    def spread(op: Operate, where: int) -> str:
        single = op(f"load float, ptr {op(f'getelementptr float, ptr %inputs, i64 {where}')}")
        vector = op(f"insertelement {name} poison, float {single}, i32 0")
        return op(f"shufflevector {name} {vector}, {name} poison, <16 x i32> zeroinitializer")

    def body(op: Operate, values: list[str]) -> list[str]:
        for row, phase in product(range(ROWS), range(4)):
            total = ""
            for element in range(4):
                x = spread(op, 16 * row + 4 * phase + element)
                place = op(f"getelementptr float, ptr %weights, i64 {64 * phase + 16 * element}")
                weights = op(f"load {name}, ptr {place}")
                total = op(
                    SINGLES.multiply_add(x, weights, total) if total else f"fmul {name} {x}, {weights}"
                )
            values[row] = op(f"fadd {name} {values[row]}, {total}")
        return values

    return SINGLES.loop(ROWS, body)


def amp_sums_rate(tries: int = 300) -> float:
    """Millions of AMPs per second of which only the arithmetic is done, by the thread's own time."""
    code, rounds, best = _amp_sums(), 2000, float("inf")
    room = np.full(512, 0.25, np.float32)
    weights = room[-(room.ctypes.data >> 2) % 16 :]
    for _ in range(tries):
        start = time.thread_time()
        _call(code, rounds, weights.ctypes.data, weights[256:].ctypes.data)
        best = min(best, time.thread_time() - start)
    return 4 * ROWS * rounds / best / 1e6


def arithmetic_scaling() -> float:
    """Two processes that do nothing but arithmetic: what the machine's cores give."""
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        return scaling(arithmetic, pool)
