"""The larger arrays of a tile, reached through the addresses in its state array.

The functions that turn an address into an array are replaced by plain pointers when the engine is compiled,
`call_native` by an indirect call.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from ..isa.meaning.arrays import Bytes, Integers, Marks, Singles, Words
from . import state as at

_LIMIT = 1 << 20


def _view(kind: Any, address: int) -> Any:
    return np.ctypeslib.as_array((kind * _LIMIT).from_address(address))


def bytes_at(address: int) -> Bytes:
    view: Bytes = _view(ctypes.c_uint8, address)
    return view


def words_at(address: int) -> Words:
    view: Words = _view(ctypes.c_uint32, address)
    return view


def singles_at(address: int) -> Singles:
    view: Singles = _view(ctypes.c_float, address)
    return view


def integers_at(address: int) -> Integers:
    view: Integers = _view(ctypes.c_int64, address)
    return view


def marks_at(address: int) -> Marks:
    view: Marks = _view(ctypes.c_int16, address)
    return view


def memory_bytes(state: Integers) -> Bytes:
    """Tile memory, index = address - TILE_BASE."""
    return bytes_at(state[at.MEMORY])


def memory_words(state: Integers) -> Words:
    """Tile memory in words."""
    return words_at(state[at.MEMORY])


def accumulators(state: Integers, context: int) -> Singles:
    """The 32 accumulators of a worker."""
    return singles_at(state[at.ACCUMULATORS] + (context - 1) * 128)


def accumulator_words(state: Integers, context: int) -> Words:
    """The same as raw words."""
    return words_at(state[at.ACCUMULATORS] + (context - 1) * 128)


def weight_words(state: Integers) -> Words:
    """The 64 weight entries as pairs of words."""
    return words_at(state[at.WEIGHTS])


def single_weights(state: Integers) -> Singles:
    """The 64 weight entries as pairs of float32."""
    return singles_at(state[at.WEIGHTS])


def half_weights(state: Integers) -> Singles:
    """The weight entries decoded as halves, see `isa.meaning.products`."""
    return singles_at(state[at.HALF_WEIGHTS])


def decoded(state: Integers) -> Marks:
    """Form index + 1 of each word of region 0, 0 where not decoded yet, -1 for no instruction; less while
    stores into code are watched, see `engine_checks`."""
    return marks_at(state[at.DECODED])


def shadow(state: Integers) -> Bytes:
    """One bit per byte of memory: has been written."""
    return bytes_at(state[at.SHADOW])


def call_native(function: int, state: Integers) -> int:
    """Call a native function, given by its address, with the address of a state array."""
    prototype = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
    return int(prototype(function)(state.ctypes.data))


def rewritable(state: Integers) -> Bytes:
    """Of each word of region 0: 1 if it is code that the program may store over."""
    return bytes_at(state[at.REWRITABLE])


def touched(state: Integers) -> Integers:
    """Three marks per word of memory for the race check, see `engine_checks`."""
    return integers_at(state[at.TOUCHED])


def tables(state: Integers) -> Integers:
    """The instruction tables, see `instruction_tables`."""
    return integers_at(state[at.TABLES])
