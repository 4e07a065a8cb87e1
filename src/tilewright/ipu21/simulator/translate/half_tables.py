"""Functions of one half, as tables of their 65,536 results: a load instead of a call.

A table is filled by the value function itself, rounding to nearest. Where a result sets a flag, or is an
infinity or a NaN, it holds a NaN: that is for the library.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ...isa.meaning.registry import Meaning
from .. import codes
from ..instruction_tables import instruction_tables
from .ir import Builder
from .lowering import Lowering
from .operands import Value, constant

UNARY = ("x", "control", "draw")
"""Parameters of the value functions that have tables."""
RARE = 0x7FFF
HALVES = 1 << 16
SINGLES_TABLE = "tw.table.singles"
"""Link name of the table of all halves as float32."""


def has_table(meaning: Meaning) -> bool:
    return tuple(meaning.parameters) == UNARY


def table_name(number: int) -> str:
    """Link name of the table of a function of halves."""
    return f"tw.table.{number}"


def filler_name(number: int) -> str:
    return f"tw.fill.{number}"


def filler_source(number: int, meaning: Meaning, wanted: dict[str, Callable[..., object]]) -> str:
    """A function (table) that fills a table."""
    build = Builder()
    lowering = Lowering(build, wanted)
    index = build.alloca("i64")
    build.store("i64", "0", index)
    build.label("head")
    half = build.load("i64", index)
    build.branch(build.op(f"icmp slt i64 {half}, {HALVES}"), "body", "end")
    build.label("body")
    result = lowering.call(meaning.function, [Value("i", half), constant(0), constant(0)])
    text = lowering.as_int(result)
    rare = build.op(f"icmp ne i64 {build.op(f'lshr i64 {text}, 32')}, 0")
    kept = build.op(f"select i1 {rare}, i64 {RARE}, i64 {text}")
    build.store("i16", build.op(f"trunc i64 {kept} to i16"), build.at("%table", "i16", half))
    build.store("i64", build.op(f"add i64 {half}, 1"), index)
    build.jump("head")
    build.label("end")
    build.end("ret i64 0")
    return build.text(f"define i64 @{filler_name(number)}(ptr %table)")


def table_of_singles() -> NDArray[np.float32]:
    """Every half as a float32."""
    return np.arange(HALVES, dtype=np.uint16).view(np.float16).astype(np.float32)


def fill_tables(address_of: Callable[[str], int]) -> dict[str, NDArray[np.uint16]]:
    """Tables by link name, filled by the library's functions."""
    prototype = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
    tables = {}
    for number, meaning in enumerate(instruction_tables().groups[codes.GROUP_HALVES].functions):
        if has_table(meaning):
            table = np.zeros(HALVES, np.uint16)
            prototype(address_of(filler_name(number)))(table.ctypes.data)
            tables[table_name(number)] = table
    return tables
