"""Worker code of `transpose_f16`, see there, and the frames it finds.

Worker registers:
    $m0, $m1 tile of x and of out    $m2 row tiles below this one    $m3 column tiles beside this one
    $m5, $m6 what leads $m0 and $m1 from behind a column of tiles to the next one    $m7 bytes to the next out
    $m4, $m9 words of out and of x, or $m10:11 both    $m8 pace strides: 4 words, -11, -59
"""

from __future__ import annotations

from functools import cache

from ..machine.timing import WORKER_SLOTS
from .text import bundle, from_frame, worker

LINE_X, LINE_OUT, LINE_MORE, LINE_X_STEP, LINE_OUT_STEP, LINE_STRIDES = range(6)
LINE_WORDS = 6
"""Words of a worker's frame where tiles lie in a line: its first one, how many follow, and steps. Where tiles
are few the third word says where the worker's code begins."""
(
    X,
    OUT,
    ROW_TILES,
    COLUMN_TILES,
    NEXT_X,
    NEXT_OUT,
    OUT_STRIDE,
    X_STRIDE,
    TILES,
    NEAR,
    IS_FEW,
    IS_WHOLE,
    ROUND,
) = range(LINE_WORDS * WORKER_SLOTS, LINE_WORDS * WORKER_SLOTS + 13)
"""ROUND: rows of tiles that all workers together take, if these are always as many; otherwise 0."""
FRAME_BYTES = 4 * (ROUND + 2)
"""In whole steps of 8 bytes."""
ROUNDS = {wide: WORKER_SLOTS // wide for wide in (2, 3, 6)}
"""By the number of tiles beside each other: of these, six at a time are whole rows, so that a worker's tiles
lie at equal steps."""
FEW = 2
"""Up to so many tiles a third of one is a worker's share."""

TILE = 512
STRIDES = 4 | (-11 & 1023) << 10 | (-59 & 1023) << 20


_ENTER_FIRST = "f16v4istacc $a2:3, $a0:1, $a2:3, TISTACC_P0"
_ENTER_SECOND = "f16v4istacc $a6:7, $a4:5, $a6:7, TISTACC_P1"
_TAKE_FIRST = "f16v4stacc $a6:7, TSTACC_P0"
_TAKE_SECOND = "f16v4stacc $a6:7, TSTACC_P1"


def _columns(paced: bool) -> list[str]:
    """Sixteen rows of four columns: four blocks, from the third slot of the first to that of the next."""
    lines = []
    for block in range(4):
        for load, load_step, store, store_step, work in _block(block):
            lines += _slot(paced, load, load_step, store, store_step, work)
    return lines


def _block(block: int) -> tuple[tuple[str, str, str, str, str], ...]:
    """(load, its step; stored column, its step; work) of a block's four rows; blocks count down a tile."""
    return (
        ("$a4:5", "f1", "$a6:7", "f1", _TAKE_SECOND),
        ("$a6:7", "f3" if block % 4 == 2 else "f1", "$a6:7", "f1", _ENTER_FIRST),
        ("$a0:1", "f1", "$a2:3", "f1", _ENTER_SECOND),
        ("$a2:3", "f1", "$a6:7", "one" if block % 4 == 3 else "f2", _TAKE_FIRST),
    )


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


def turns_start(halved: bool, paced: bool) -> list[str]:
    """To a worker's first tile, in turn."""
    lines = [
        "get $m0, $WSR",
        "and $m0, $m0, 7",
        from_frame("$m3", COLUMN_TILES),
        "brneg $m3, .Ltranspose_exit",
    ]
    # $m9 = byte offset of the worker's half in x; a half of out lies sixteen times as far.
    lines += ["and $m9, $m0, 1", "shl $m9, $m9, 4", "shr $m0, $m0, 1"] if halved else []
    lines += [
        from_frame("$m2", ROW_TILES),
        "sub $m2, $m2, $m0",
        from_frame("$m7", OUT_STRIDE),
        "mul $m1, $m0, $m7",
        "shl $m0, $m0, 9",
        from_frame("$m4", X),
        "add $m0, $m0, $m4",
        from_frame("$m4", OUT),
        "add $m1, $m1, $m4",
    ]
    if halved:
        lines += ["add $m0, $m0, $m9", "shl $m9, $m9, 4", "add $m1, $m1, $m9"]
    lines += [
        from_frame("$m5", NEXT_X),
        from_frame("$m6", NEXT_OUT),
        f"mul $m7, $m7, {3 if halved else 6}",
    ]
    if paced:
        lines += [f"setzi $m8, {STRIDES & 0xFFFFF:#x}", f"or $m8, $m8, {STRIDES & 0xFFF00000:#x}"]
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


def _turns_next(label: str, halved: bool) -> list[str]:
    """To the worker's next tile."""
    each = 3 if halved else 6
    return [
        bundle(f"add $m2, $m2, -{each}"),
        bundle(f"add $m0, $m0, {each * TILE}"),
        bundle("add $m1, $m1, $m7"),
        bundle(f"brpos $m2, {label}_tile"),
    ]


WRAP = [
    bundle(from_frame("$m4", ROW_TILES)),
    bundle("add $m4, $m4, 1"),
    bundle("add $m2, $m2, $m4"),
    bundle("add $m0, $m0, $m5"),
    bundle("add $m1, $m1, $m6"),
]


def turns_worker(label: str, halved: bool, paced: bool) -> list[str]:
    """A worker that takes tiles in turn."""
    lines = [
        *turns_start(halved, paced),
        bundle(f"brneg $m2, {label}_wrap"),
        f"{label}_tile:",
        *_tile(halved, paced),
        *_turns_next(label, halved),
        f"{label}_wrap:",
        *WRAP,
        bundle(f"brnzdec $m3, {label}_again"),
        "bri .Ltranspose_exit",
        f"{label}_again:",
        bundle(f"brpos $m2, {label}_tile"),
        bundle(f"bri {label}_wrap"),
    ]
    return worker(label, lines)


LINE_START = [
    from_frame("$m2", LINE_MORE),
    "brneg $m2, .Ltranspose_exit",
    from_frame("$m0", LINE_X),
    from_frame("$m1", LINE_OUT),
    from_frame("$m5", LINE_X_STEP),
    from_frame("$m7", LINE_OUT_STEP),
    from_frame("$m8", LINE_STRIDES),
]


def _line_next(label: str) -> list[str]:
    return [
        bundle("add $m0, $m0, $m5"),
        bundle("add $m1, $m1, $m7"),
        bundle(f"brnzdec $m2, {label}_tile"),
    ]


def line_worker(label: str, halved: bool) -> list[str]:
    """A worker whose tiles lie at equal steps."""
    tile = [f"{label}_tile:", *_tile(halved, True), *_line_next(label)]
    return worker(label, [*LINE_START, *tile, "exitz $m15"])


def few_code(part: int) -> list[str]:
    """Worker code for a third of a tile: five or six of its sixteen blocks, down the rows first."""
    first, end = _FEW_BLOCKS[part], _FEW_BLOCKS[part + 1]
    lines = []
    work = (None, None, None, _ENTER_FIRST, _ENTER_SECOND, _TAKE_FIRST)
    for row, aux in enumerate(work):
        pair = 2 * (row % 4)
        step = _WORDS["f3" if row == 3 and first % 4 == 3 else "f1"]
        lines.append(bundle(f"ld64step $a{pair}:{pair + 1}, $mzero, $m0+=, {step}", aux or "fnop"))
    lines.append("tapack $m10:11, $m0, $m0, $m1")
    for block in range(first, end):
        for index, (load, load_step, store, store_step, work_here) in enumerate(_block(block)):
            if block + 1 + index // 2 < end:
                lines += _slot(True, load, load_step, store, store_step, work_here)
            else:
                selector = _SELECTOR[store_step]
                lines.append(bundle(f"st64pace {store}, $m10:11+=, $m8, 0b{selector}", work_here))
    return [f".Ltranspose_few_{part}:", *lines, "exitz $m15"]


_FEW_BLOCKS = (0, 6, 11, 16)
"""Where the thirds of a tile begin, if there are few tiles."""
FEW_START = [
    from_frame("$m2", LINE_MORE),
    from_frame("$m0", LINE_X),
    from_frame("$m1", LINE_OUT),
    from_frame("$m8", LINE_STRIDES),
    "br $m2",
]


def few_place(part: int) -> tuple[int, int]:
    """Bytes from a tile to its third, in x and in out."""
    column, row = divmod(_FEW_BLOCKS[part], 4)
    return 8 * (row * 16 + column), 8 * (column * 16 + row)


@cache
def turns_slots(halved: bool, paced: bool) -> int:
    """Slots of a worker per tile that follows another one above it."""
    tile = _tile(halved, paced)
    return len(tile) + ((2 if halved else 4) - 1) * len(_columns(paced)) + len(_turns_next("", halved))


@cache
def line_slots(halved: bool) -> int:
    """Slots of a worker per tile of a line."""
    tile = _tile(halved, True)
    return len(tile) + ((2 if halved else 4) - 1) * len(_columns(True)) + len(_line_next(""))
