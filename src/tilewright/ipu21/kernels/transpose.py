"""`transpose_f16`: x a16 [C/16][R][16] -> out a16 [R/16][C][16], in tiles of 16 x 16.

Four rows by four columns at a time go through the accumulators: `f16v4istacc` enters two rows and
`f16v4stacc` takes a column out; the last two columns leave with the rows of the next block. Where x and out
share no 32 KiB of memory one slot loads a row's word and stores a column's; elsewhere that takes two slots. A
tile's blocks follow each other down the rows first; loads run on into words of the tile that are not used.

Workers take whole tiles in turn, or pairs of workers take them and each half the columns, whichever ends
earlier; without the one-slot way always the pairs.

Worker registers:
    $m0, $m1 tile of x and of out    $m2 row tiles below this one    $m3 column tiles beside this one
    $m5, $m6 what leads $m0 and $m1 from behind a column of tiles to the next one    $m7 bytes to the next out
    $m4, $m9 words of out and of x, or $m10:11 both    $m8 pace strides: 4 words, -11, -59
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from ...arithmetic import ceil_div
from ..machine.timing import WORKER_SLOTS
from .halves import Halves
from .kernel import Contract, Kernel, Operand, Scalar
from .launch import SIXTH
from .supervisor import call_cycles, launch, schedule, to_frame
from .text import bundle, section, worker

SYMBOL = "transpose_f16"
MAXIMUM_TILES = 255
"""Along either side."""
BLOCK_SHIFT = 15
"""x and out are apart if they share no block of this size, which is an element of interleaved memory."""

_X, _OUT, _ROW_TILES, _COLUMN_TILES, _NEXT_X, _NEXT_OUT, _OUT_STRIDE = range(7)
_FRAME_BYTES = 88
FEW = 2
"""Up to so many tiles a third of one is a worker's share."""

_TILE = 512
_STRIDES = 4 | (-11 & 1023) << 10 | (-59 & 1023) << 20


def _argument(word: int, register: str) -> str:
    return f"ld32 {register}, $mvertex_base, $mzero, {word}"


_ENTER_FIRST = "f16v4istacc $a2:3, $a0:1, $a2:3, TISTACC_P0"
_ENTER_SECOND = "f16v4istacc $a6:7, $a4:5, $a6:7, TISTACC_P1"
_TAKE_FIRST = "f16v4stacc $a6:7, TSTACC_P0"
_TAKE_SECOND = "f16v4stacc $a6:7, TSTACC_P1"


def _columns(paced: bool) -> list[str]:
    """Sixteen rows of four columns: four blocks, from the third slot of the first to that of the next."""
    lines = []
    for block in range(4):
        # (load, its step; stored column, its step; work)
        slots = (
            ("$a4:5", "f1", "$a6:7", "f1", _TAKE_SECOND),
            ("$a6:7", "f3" if block == 2 else "f1", "$a6:7", "f1", _ENTER_FIRST),
            ("$a0:1", "f1", "$a2:3", "f1", _ENTER_SECOND),
            ("$a2:3", "f1", "$a6:7", "one" if block == 3 else "f2", _TAKE_FIRST),
        )
        for load, load_step, store, store_step, work in slots:
            lines += _slot(paced, load, load_step, store, store_step, work)
    return lines


_WORDS = {"one": 1, "f1": 4, "f2": -11, "f3": -59}
_SELECTOR = {"one": "00", "f1": "01", "f2": "10", "f3": "11"}


def _slot(paced: bool, load: str, load_step: str, store: str, store_step: str, work: str) -> list[str]:
    if paced:
        selectors = _SELECTOR[store_step] + _SELECTOR[load_step]
        return [bundle(f"ldst64pace {load}, {store}, $m10:11+=, $m8, 0b{selectors}", work)]
    return [
        bundle(f"st64step {store}, $mzero, $m4+=, {_WORDS[store_step]}", work),
        bundle(f"ld64step {load}, $mzero, $m9+=, {_WORDS[load_step]}"),
    ]


def _start(halved: bool, paced: bool) -> list[str]:
    lines = [
        "get $m0, $WSR",
        "and $m0, $m0, 7",
        _argument(_COLUMN_TILES, "$m3"),
        "brneg $m3, .Ltranspose_exit",
    ]
    # $m9 = byte offset of the worker's half in x; a half of out lies sixteen times as far.
    lines += ["and $m9, $m0, 1", "shl $m9, $m9, 4", "shr $m0, $m0, 1"] if halved else []
    lines += [
        _argument(_ROW_TILES, "$m2"),
        "sub $m2, $m2, $m0",
        _argument(_OUT_STRIDE, "$m7"),
        "mul $m1, $m0, $m7",
        "shl $m0, $m0, 9",
        _argument(_X, "$m4"),
        "add $m0, $m0, $m4",
        _argument(_OUT, "$m4"),
        "add $m1, $m1, $m4",
    ]
    if halved:
        lines += ["add $m0, $m0, $m9", "shl $m9, $m9, 4", "add $m1, $m1, $m9"]
    lines += [
        _argument(_NEXT_X, "$m5"),
        _argument(_NEXT_OUT, "$m6"),
        f"mul $m7, $m7, {3 if halved else 6}",
    ]
    if paced:
        lines += [f"setzi $m8, {_STRIDES & 0xFFFFF:#x}", f"or $m8, $m8, {_STRIDES & 0xFFF00000:#x}"]
    return lines


def _tile(halved: bool, paced: bool) -> list[str]:
    """A worker's part of a tile."""
    return [
        bundle("ld64 $a0:1, $m0, $mzero, 0"),
        bundle("ld64 $a2:3, $m0, $mzero, 4"),
        bundle("ld64 $a4:5, $m0, $mzero, 8"),
        bundle("ld64 $a6:7, $m0, $mzero, 12", _ENTER_FIRST),
        bundle("ld64 $a0:1, $m0, $mzero, 16", _ENTER_SECOND),
        bundle("ld64 $a2:3, $m0, $mzero, 20", _TAKE_FIRST),
        bundle("add $m9, $m0, 192"),
        bundle("tapack $m10:11, $m9, $m9, $m1" if paced else "mov $m4, $m1"),
        bundle(f"rpt {2 if halved else 4}, {len(_columns(paced)) - 1}"),
        *_columns(paced),
    ]


def _next(label: str, halved: bool) -> list[str]:
    """To the worker's next tile."""
    each = 3 if halved else 6
    return [
        bundle(f"add $m2, $m2, -{each}"),
        bundle(f"add $m0, $m0, {each * _TILE}"),
        bundle("add $m1, $m1, $m7"),
        bundle(f"brpos $m2, {label}_tile"),
    ]


_WRAP = [
    bundle(_argument(_ROW_TILES, "$m4")),
    bundle("add $m4, $m4, 1"),
    bundle("add $m2, $m2, $m4"),
    bundle("add $m0, $m0, $m5"),
    bundle("add $m1, $m1, $m6"),
]


def _worker(label: str, halved: bool, paced: bool) -> list[str]:
    lines = [
        *_start(halved, paced),
        bundle(f"brneg $m2, {label}_wrap"),
        f"{label}_tile:",
        *_tile(halved, paced),
        *_next(label, halved),
        f"{label}_wrap:",
        *_WRAP,
        bundle(f"brnzdec $m3, {label}_again"),
        "bri .Ltranspose_exit",
        f"{label}_again:",
        bundle(f"brpos $m2, {label}_tile"),
        bundle(f"bri {label}_wrap"),
    ]
    return worker(label, lines)


def _few_code(part: int) -> list[str]:
    """Worker code for a third of a tile: five or six of its sixteen blocks, down the rows first."""
    first, end = _FEW_BLOCKS[part], _FEW_BLOCKS[part + 1]
    lines = [f"setzi $m8, {_STRIDES & 0xFFFFF:#x}", f"or $m8, $m8, {_STRIDES & 0xFFF00000:#x}"]
    if first:
        lines += [f"add $m0, $m0, {8 * (first % 4 * 16 + first // 4)}"]
        lines += [f"add $m1, $m1, {8 * (first // 4 * 16 + first % 4)}"]
    work = (None, None, None, _ENTER_FIRST, _ENTER_SECOND, _TAKE_FIRST)
    for row, aux in enumerate(work):
        pair = 2 * (row % 4)
        step = _WORDS["f3" if row == 3 and first % 4 == 3 else "f1"]
        lines.append(bundle(f"ld64step $a{pair}:{pair + 1}, $mzero, $m0+=, {step}", aux or "fnop"))
    lines.append("tapack $m10:11, $m0, $m0, $m1")
    for block in range(first, end):
        slots = (
            ("$a4:5", "f1", "$a6:7", "f1", _TAKE_SECOND),
            ("$a6:7", "f3" if block % 4 == 2 else "f1", "$a6:7", "f1", _ENTER_FIRST),
            ("$a0:1", "f1", "$a2:3", "f1", _ENTER_SECOND),
            ("$a2:3", "f1", "$a6:7", "one" if block % 4 == 3 else "f2", _TAKE_FIRST),
        )
        for index, (load, load_step, store, store_step, work_here) in enumerate(slots):
            if block + 1 + index // 2 < end:
                lines += _slot(True, load, load_step, store, store_step, work_here)
            else:
                selector = _SELECTOR[store_step]
                lines.append(bundle(f"st64pace {store}, $m10:11+=, $m8, 0b{selector}", work_here))
    return [f".Ltranspose_few_{part}:", *lines, "exitz $m15"]


_SAVED = {4: 18, 5: 19, 6: 20}
"""Where the frame for few tiles keeps arguments, in case they prove not to be apart."""
_FEW_BLOCKS = (0, 6, 11, 16)
"""Where the thirds of a tile begin, if there are few tiles."""
_FEW_START = [
    "ld32 $m0, $mvertex_base, $mzero, 0",
    "ld32 $m1, $mvertex_base, $mzero, 1",
    "ld32 $m2, $mvertex_base, $mzero, 2",
    "br $m2",
]


@cache
def _supervisor() -> tuple[tuple[str, ...], ...]:
    """From the arguments to the workers' end: the head, few tiles that are apart, and others."""
    head = [
        f"add $m11, $m11, -{_FRAME_BYTES}",
        "shl $m0, $m4, 16",
        "shr $m0, $m0, 16",
        "shr $m1, $m4, 16",
        "mul $m7, $m0, $m1",
        "add $m8, $m7, -1",
        f"cmpult $m8, $m8, {FEW}",
        # While results are on their way: what few tiles need first.
        "cmpeq $m4, $m1, 2",
        "cmpeq $m9, $m0, 2",
        *(to_frame(f"$m{register}", word) for register, word in _SAVED.items()),
        *(
            to_frame(register, 3 * part + word)
            for word, register in enumerate(("$m3", "$m2"))
            for part in range(3)
        ),
    ]
    few = [
        # From the first tile to the second one.
        "setzi %x1, 0",
        "setzi %out1, 0",
        f"setzi %tile, {_TILE}",
        "movnz %x1, %two_wide, %x_along",
        "movnz %out1, %two_wide, %tile",
        "movnz %x1, %two_high, %tile",
        "movnz %out1, %two_high, %out_along",
        "add %x1, %x1, %x",
        "add %out1, %out1, %out",
        f"add %x_end, %x1, {_TILE - 1}",
        f"shr %x_end, %x_end, {BLOCK_SHIFT}",
        f"shr %out_begin, %out, {BLOCK_SHIFT}",
        "cmpult %before, %x_end, %out_begin",
        f"add %out_end, %out1, {_TILE - 1}",
        f"shr %out_end, %out_end, {BLOCK_SHIFT}",
        f"shr %x_begin, %x, {BLOCK_SHIFT}",
        "cmpult %behind, %out_end, %x_begin",
        "or $m8, %before, %behind",
        *(
            to_frame(name, 9 + 3 * part + word)
            for word, name in enumerate(("%x1", "%out1"))
            for part in range(3)
        ),
        "add %more, %tiles, -1",
    ]
    for part in range(3):
        few += [
            f"setzi %entry{part}, .Ltranspose_few_{part}",
            to_frame(f"%entry{part}", 3 * part + 2),
            f"setzi %second{part}, .Ltranspose_exit",
            f"movnz %second{part}, %more, %entry{part}",
            to_frame(f"%second{part}", 9 + 3 * part + 2),
        ]
    many = [
        to_frame("%out", _OUT),
        to_frame("%x", _X),
        to_frame("%out_along", _OUT_STRIDE),
        # What leads from behind a column of tiles to the next one.
        "shl %behind, %high, 9",
        "sub %behind, %x_along, %behind",
        to_frame("%behind", _NEXT_X),
        "mul %behind, %out_along, %high",
        "sub %behind, 512, %behind",
        to_frame("%behind", _NEXT_OUT),
        # Whole tiles if they take fewer slots.
        f"setzi %sixth, {SIXTH}",
        "add %whole, %tiles, 5",
        "mul %whole, %whole, %sixth",
        "shr %whole, %whole, 18",
        f"mul %whole, %whole, {_slots(False, True)}",
        "shl %tiles, %tiles, 1",
        "add %tiles, %tiles, 5",
        "mul %tiles, %tiles, %sixth",
        "shr %tiles, %tiles, 18",
        f"mul %tiles, %tiles, {_slots(True, True)}",
        "cmpult %whole, %whole, %tiles",
        "setzi $m9, .Ltranspose_halves",
        "setzi %tile_wise, .Ltranspose_whole",
        "movnz $m9, %whole, %tile_wise",
        # Apart: no block of memory in common.
        "add %high, %high, -1",
        to_frame("%high", _ROW_TILES),
        "add %wide, %wide, -1",
        to_frame("%wide", _COLUMN_TILES),
        "mul %x_along, %x_along, %wide",
        "add %x_along, %x_along, %x",
        "mul %out_along, %out_along, %high",
        "add %out_along, %out_along, %out",
        "shl %high, %high, 9",
        "add %x_along, %x_along, %high",
        "shl %wide, %wide, 9",
        "add %out_along, %out_along, %wide",
        f"add %x_along, %x_along, {_TILE - 1}",
        f"add %out_along, %out_along, {_TILE - 1}",
        f"shr %x_along, %x_along, {BLOCK_SHIFT}",
        f"shr %out_along, %out_along, {BLOCK_SHIFT}",
        f"shr %out, %out, {BLOCK_SHIFT}",
        f"shr %x, %x, {BLOCK_SHIFT}",
        "cmpult %out, %x_along, %out",
        "cmpult %x, %out_along, %x",
        "or %out, %out, %x",
        "cmpeq %out, %out, 0",
        "setzi %plain, .Ltranspose_plain",
        "movnz $m9, %out, %plain",
    ]
    given = {
        "%out": "$m2",
        "%x": "$m3",
        "%x_along": "$m5",
        "%out_along": "$m6",
        "%high": "$m0",
        "%wide": "$m1",
        "%tiles": "$m7",
    }
    loaded = {2: 1, 3: 0} | _SAVED
    restore = [f"ld32 $m{register}, $m11, $mzero, {word}" for register, word in loaded.items()]
    return (
        (*schedule(head),),
        (
            "brz $m8, .Ltranspose_many",
            *schedule(few, (), given | {"%two_wide": "$m4", "%two_high": "$m9"}, seed=23),
            "setzi $m9, .Ltranspose_few",
            "brz $m8, .Ltranspose_not_apart",
            *launch(_FRAME_BYTES, 3),
        ),
        (*restore, *schedule(head[1:5]), "bri .Ltranspose_many"),
        (*schedule(many, ["$m4", "$m8"], given), *launch(_FRAME_BYTES)),
    )


@cache
def _slots(halved: bool, paced: bool) -> int:
    """Slots of a worker per tile that follows another one above it."""
    tile = _tile(halved, paced)
    return len(tile) + ((2 if halved else 4) - 1) * len(_columns(paced)) + len(_next("", halved))


def _source() -> str:
    head, few, restore, many = _supervisor()
    return section(
        SYMBOL,
        [
            *head,
            *few,
            ".Ltranspose_not_apart:",
            *restore,
            ".Ltranspose_many:",
            *many,
            *_worker(".Ltranspose_whole", False, True),
            *_worker(".Ltranspose_halves", True, True),
            *_worker(".Ltranspose_plain", True, False),
            ".balign 8",
            ".Ltranspose_few:",
            *_FEW_START,
            *(line for part in range(3) for line in _few_code(part)),
            ".Ltranspose_exit:",
            "exitz $m15",
        ],
    )


def is_apart(x: int, out: int, row_tiles: int, column_tiles: int, x_stride: int, out_stride: int) -> bool:
    """True if a call loads and stores in one slot for these addresses and strides."""
    x_end = x + x_stride * (column_tiles - 1) + _TILE * row_tiles - 1
    out_end = out + out_stride * (row_tiles - 1) + _TILE * column_tiles - 1
    return x_end >> BLOCK_SHIFT < out >> BLOCK_SHIFT or out_end >> BLOCK_SHIFT < x >> BLOCK_SHIFT


def cycles(
    row_tiles: Any, column_tiles: Any, x_stride: Any = 0, out_stride: Any = 0, apart: Any = True
) -> Any:
    """Cycles of a call (exact on the simulator); integers or arrays. `apart`: see `is_apart`."""
    high, wide = np.asarray(row_tiles, dtype=np.int64), np.asarray(column_tiles, dtype=np.int64)
    tiles = high * wide
    whole = ceil_div(tiles, 6) * _slots(False, True) < ceil_div(2 * tiles, 6) * _slots(True, True)
    pairs = np.where(apart, _busiest(high, wide, True, True), _busiest(high, wide, True, False))
    slots = np.where(whole & np.asarray(apart), _busiest(high, wide, False, True), pairs)
    head, few, restore, more = _supervisor()
    many = call_cycles([*head, f"!{few[0]}", *more]) + WORKER_SLOTS * np.where(wide > 0, slots, 5)
    try_few = (
        call_cycles([*head, *few[:-5], f"!{few[-5]}", *restore[:-1], f"!{restore[-1]}", *more])
        + WORKER_SLOTS * slots
    )
    # The first third is the longest, less the two slots the others need to find their own.
    least = call_cycles([*head, *few]) + WORKER_SLOTS * (len(_FEW_START) + len(_few_code(0)) - 1)
    is_few = (tiles > 0) & (tiles <= FEW)
    return np.where(is_few, np.where(apart, least, try_few), many) + 0


def _busiest(high: Any, wide: Any, halved: bool, paced: bool) -> Any:
    """Slots of the busiest worker, for at least one column of tiles."""
    step = 3 if halved else 6
    fixed = len(_start(halved, paced)) + 3
    slots = np.zeros(np.broadcast(high, wide).shape, dtype=np.int64)
    for first in range(step):
        tiles = np.maximum(ceil_div(high * wide - first, step), 0)
        # Columns of tiles after the first in which the worker has none: it goes on to the next one.
        passed = np.where(high < step, wide - 1 - (tiles - (first < high)), 0)
        busy = fixed + tiles * _slots(halved, paced) + wide * (len(_WRAP) + 1) + (wide - 1) + passed
        slots = np.maximum(slots, busy)
    return slots


def way(arguments: Mapping[str, int]) -> dict[str, bool]:
    """Whether a call loads and stores in one slot, see `cycles`."""
    names = ("x", "out", "row_tiles", "column_tiles", "x_stride", "out_stride")
    return {"apart": is_apart(*(arguments[name] for name in names))}


def reference(x: Halves) -> Halves:
    """x [C/16, R, 16] -> [R/16, C, 16]."""
    panels, rows, _ = x.shape
    matrix = x.transpose(1, 0, 2).reshape(rows, 16 * panels)
    return matrix.T.reshape(16 * panels, rows // 16, 16).transpose(1, 0, 2).copy()


KERNEL = Kernel(
    SYMBOL,
    _source,
    Contract(
        operands=(Operand("out", "a16", "out"), Operand("x", "a16", "in")),
        scalars=(
            Scalar("row_tiles", "rows of x / 16", 0, MAXIMUM_TILES),
            Scalar("column_tiles", "columns of x / 16", 0, MAXIMUM_TILES),
            Scalar("x_stride", "bytes between panels of x", 0, multiple=8),
            Scalar("out_stride", "bytes between panels of out", 0, multiple=8),
        ),
        packed=(("row_tiles", "column_tiles", 16),),
        faster_apart=(("out", "x"),),
        notes="Fastest where x and out share no 32 KiB block of memory.",
    ),
    cycles,
    reference,
    way=way,
)
