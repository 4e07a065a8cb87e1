"""The supervisor of `transpose_f16`: from the arguments to the workers."""

from __future__ import annotations

from functools import cache

from ..machine.timing import WORKER_SLOTS
from .launch import SIXTH
from .paced import BLOCK_SHIFT
from .supervisor import launch, load_back, schedule, to_frame, to_frames
from .transpose_source import (
    COLUMN_TILES,
    FEW,
    FRAME_BYTES,
    IS_FEW,
    IS_WHOLE,
    LINE_MORE,
    LINE_OUT,
    LINE_OUT_STEP,
    LINE_STRIDES,
    LINE_WORDS,
    LINE_X,
    LINE_X_STEP,
    NEAR,
    NEXT_OUT,
    NEXT_X,
    OUT,
    OUT_STRIDE,
    ROUND,
    ROUNDS,
    ROW_TILES,
    STRIDES,
    TILE,
    TILES,
    X_STRIDE,
    X,
    few_place,
    line_slots,
    turns_slots,
)

_FREE = [f"$m{register}" for register in range(10)]
_THIRDS = 3
NO_LINE = "brz $m8, .Ltranspose_turns"


@cache
def prologue() -> tuple[str, ...]:
    """From the arguments to the launch: the worker code ($m9), and whether each worker's tiles lie at equal
    steps ($m8).
    """
    given = {"%out": "$m2", "%x": "$m3", "%shape": "$m4", "%x_along": "$m5", "%out_along": "$m6"}
    parts = [_line(), _rounds(), _line_counts(), _few_entries(), *_line_places(), *_round_places()]
    parts.append(_line_strides())
    return (
        *schedule(_common(), ["$m0", "$m1", "$m7", "$m8", "$m9"], given),
        *(line for part in parts for line in schedule(part, _FREE)),
        *schedule(_choice(), _FREE[:8]),
    )


def launches() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """For tiles at equal steps, and in turns."""
    return launch(FRAME_BYTES, LINE_WORDS), launch(FRAME_BYTES)


def _common() -> list[str]:
    """The words all workers share."""
    return [
        f"add $m11, $m11, -{FRAME_BYTES}",
        "shl %high, %shape, 16",
        "shr %high, %high, 16",
        "shr %wide, %shape, 16",
        "mul %tiles, %high, %wide",
        to_frame("%tiles", TILES),
        to_frame("%out", OUT),
        to_frame("%x", X),
        to_frame("%x_along", X_STRIDE),
        to_frame("%out_along", OUT_STRIDE),
        # What leads from behind a column of tiles to the next one.
        "shl %behind, %high, 9",
        "sub %behind, %x_along, %behind",
        to_frame("%behind", NEXT_X),
        "mul %behind, %out_along, %high",
        f"sub %behind, {TILE}, %behind",
        to_frame("%behind", NEXT_OUT),
        "add %high, %high, -1",
        to_frame("%high", ROW_TILES),
        "add %wide, %wide, -1",
        to_frame("%wide", COLUMN_TILES),
        # Near: a block of memory in common.
        "mul %x_along, %x_along, %wide",
        "add %x_along, %x_along, %x",
        "mul %out_along, %out_along, %high",
        "add %out_along, %out_along, %out",
        "shl %high, %high, 9",
        "add %x_along, %x_along, %high",
        "shl %wide, %wide, 9",
        "add %out_along, %out_along, %wide",
        f"add %x_along, %x_along, {TILE - 1}",
        f"add %out_along, %out_along, {TILE - 1}",
        f"shr %x_along, %x_along, {BLOCK_SHIFT}",
        f"shr %out_along, %out_along, {BLOCK_SHIFT}",
        f"shr %out, %out, {BLOCK_SHIFT}",
        f"shr %x, %x, {BLOCK_SHIFT}",
        "cmpult %out, %x_along, %out",
        "cmpult %x, %out_along, %x",
        "or %out, %out, %x",
        "cmpeq %out, %out, 0",
        to_frame("%out", NEAR),
    ]


def _whole(halves: int, whole: int) -> list[str]:
    """%whole = 1 if whole tiles of `whole` slots take fewer than halves of so many; %tiles, %sixth."""
    return [
        load_back("%tiles", TILES),
        f"setzi %sixth, {SIXTH}",
        "add %whole, %tiles, 5",
        "mul %whole, %whole, %sixth",
        "shr %whole, %whole, 18",
        f"mul %whole, %whole, {whole}",
        "shl %halves, %tiles, 1",
        "add %halves, %halves, 5",
        "mul %halves, %halves, %sixth",
        "shr %halves, %halves, 18",
        f"mul %halves, %halves, {halves}",
        "cmpult %whole, %whole, %halves",
    ]


def _line() -> list[str]:
    """Whether tiles in a line are few, and else whether workers take whole ones."""
    return [
        *_whole(line_slots(True), line_slots(False)),
        to_frame("%whole", IS_WHOLE),
        "add %few, %tiles, -1",
        f"cmpult %few, %few, {FEW}",
        to_frame("%few", IS_FEW),
    ]


def _rounds() -> list[str]:
    """Whether all workers together take whole rows of tiles, which then are whole ones."""
    lines = [load_back("%beside", COLUMN_TILES), "mov %round, $mzero"]
    for wide, rows in ROUNDS.items():
        name = f"%is_{wide}"
        lines += [f"cmpeq {name}, %beside, {wide - 1}", f"mul {name}, {name}, {rows}"]
        lines.append(f"add %round, %round, {name}")
    return [
        *lines,
        load_back("%below", ROW_TILES),
        "cmpslt %several, $mzero, %below",
        "mul %round, %round, %several",
        load_back("%near", NEAR),
        "cmpeq %far, %near, 0",
        "mul %round, %round, %far",
        to_frame("%round", ROUND),
        "cmpult %is_round, $mzero, %round",
        load_back("%whole", IS_WHOLE),
        "or %whole, %whole, %is_round",
        to_frame("%whole", IS_WHOLE),
    ]


def _line_counts() -> list[str]:
    """How many tiles follow each worker's first one."""
    lines = [
        load_back("%tiles", TILES),
        load_back("%whole", IS_WHOLE),
        f"setzi %sixth, {SIXTH}",
        "shl %shares, %tiles, 1",
        "movnz %shares, %whole, %tiles",
        "add %shares, %shares, 5",
        # To the next worker's first share: one, or none to the other worker of a pair.
        "sub %after, 2, %whole",
    ]
    for number in range(WORKER_SLOTS):
        lines += [
            f"mul %more{number}, %shares, %sixth",
            f"shr %more{number}, %more{number}, 18",
            f"add %more{number}, %more{number}, -1",
            to_frame(f"%more{number}", number * LINE_WORDS + LINE_MORE),
            f"sub %shares, %shares, {'%after' if number % 2 else '%whole'}",
        ]
    return lines


def _few_entries() -> list[str]:
    """Where the workers' code begins instead, if tiles are few."""
    lines = [load_back("%tiles", TILES), load_back("%few", IS_FEW), "setzi %exit, .Ltranspose_exit"]
    for number in range(WORKER_SLOTS):
        tile, part = divmod(number, _THIRDS)
        word = number * LINE_WORDS + LINE_MORE
        lines += [
            f"setzi %entry{number}, .Ltranspose_few_{part}",
            f"cmpult %without{number}, %tiles, {tile + 1}",
            f"movnz %entry{number}, %without{number}, %exit",
            load_back(f"%more{number}", word),
            f"movnz %more{number}, %few, %entry{number}",
            to_frame(f"%more{number}", word),
        ]
    return lines


def _line_places() -> list[list[str]]:
    """Each worker's first tile in x and in out, and the step to the next one."""
    found = []
    for axis, start, along, half, word, step_word in (
        (0, X, X_STRIDE, 16, LINE_X, LINE_X_STEP),
        (1, OUT, OUT_STRIDE, 256, LINE_OUT, LINE_OUT_STEP),
    ):
        lines = [
            load_back("%few", IS_FEW),
            load_back("%whole", IS_WHOLE),
            # From tile to tile: in x a panel where they lie side by side, in out where they do not.
            load_back("%high", ROW_TILES),
            "cmpult %high, $mzero, %high" if axis == 0 else "cmpeq %high, %high, 0",
            load_back("%step", along),
            f"setzi %tile, {TILE}",
            "movnz %step, %high, %tile",
            f"add %across, %step, -{few_place(_THIRDS - 1)[axis]}",
            f"setzi %within, {half}",
            "sub %between, %step, %within",
            "movnz %within, %whole, %step",
            "movnz %between, %whole, %step",
            "add %whole, %whole, 1",
            "mul %whole, %whole, 3",
            "mul %step, %step, %whole",
            *to_frames("%step", step_word, LINE_WORDS),
            load_back("%first", start),
        ]
        for number in range(WORKER_SLOTS):
            lines.append(to_frame("%first", number * LINE_WORDS + word))
            part = number % _THIRDS
            on = f"%on{number}"
            lines.append(f"mov {on}, {'%between' if number % 2 else '%within'}")
            if part < _THIRDS - 1:
                third = few_place(part + 1)[axis] - few_place(part)[axis]
                lines += [f"setzi %third{number}, {third}", f"movnz {on}, %few, %third{number}"]
            else:
                lines.append(f"movnz {on}, %few, %across")
            lines.append(f"add %first, %first, {on}")
        found.append(lines)
    return found


def _round_places() -> list[list[str]]:
    """The same if all workers together take whole rows of tiles: the first ones follow each other."""
    found = []
    for start, word, step_word in ((X, LINE_X, LINE_X_STEP), (OUT, LINE_OUT, LINE_OUT_STEP)):
        beside, below = ("%along", "%tile") if start == X else ("%tile", "%along")
        lines = [
            load_back("%round", ROUND),
            load_back("%last", COLUMN_TILES),
            load_back("%along", X_STRIDE if start == X else OUT_STRIDE),
            f"setzi %tile, {TILE}",
            # From the last tile of a row to the first one of the next row.
            f"mul %back, {beside}, %last",
            f"sub %back, {below}, %back",
            f"mul %step, {below}, %round",
            load_back("%first", start),
            "mov %left, %last",
        ]
        for number in range(WORKER_SLOTS):
            frame = number * LINE_WORDS
            for value, here in (("%first", frame + word), ("%step", frame + step_word)):
                kept = f"%kept_{here}"
                lines += [load_back(kept, here), f"movnz {kept}, %round, {value}", to_frame(kept, here)]
            lines += [
                f"mov %on{number}, %back",
                f"movnz %on{number}, %left, {beside}",
                f"add %first, %first, %on{number}",
                f"cmpeq %at_end{number}, %left, 0",
                "add %left, %left, -1",
                f"movnz %left, %at_end{number}, %last",
            ]
        found.append(lines)
    return found


def _line_strides() -> list[str]:
    return [
        f"setzi %strides, {STRIDES & 0xFFFFF:#x}",
        f"or %strides, %strides, {STRIDES & 0xFFF00000:#x}",
        *to_frames("%strides", LINE_STRIDES, LINE_WORDS),
    ]


def _choice() -> list[str]:
    """The way a call takes."""
    return [
        *_whole(turns_slots(True, True), turns_slots(False, True)),
        "setzi $m9, .Ltranspose_halves",
        "setzi %entry, .Ltranspose_whole",
        "movnz $m9, %whole, %entry",
        load_back("%near", NEAR),
        "setzi %entry, .Ltranspose_plain",
        "movnz $m9, %near, %entry",
        # At equal steps: in a line, if there are tiles and they are not near, or by whole rows.
        "cmpult %tiles, $mzero, %tiles",
        load_back("%high", ROW_TILES),
        "cmpeq %high, %high, 0",
        load_back("%wide", COLUMN_TILES),
        "cmpeq %wide, %wide, 0",
        "or %high, %high, %wide",
        "and %high, %high, %tiles",
        "cmpult $m8, %near, %high",
        load_back("%round", ROUND),
        "or $m8, $m8, %round",
        load_back("%few", IS_FEW),
        load_back("%whole", IS_WHOLE),
        "setzi %entry, .Ltranspose_line_halves",
        "setzi %other, .Ltranspose_line_whole",
        "movnz %entry, %whole, %other",
        "setzi %other, .Ltranspose_few",
        "movnz %entry, %few, %other",
        "movnz $m9, $m8, %entry",
    ]
