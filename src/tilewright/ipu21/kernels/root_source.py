"""Assembly of the root families: the supervisor, which gives every worker a frame of its own."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from ..machine.memory import REGION1_BASE
from .grid import THIRD, choose
from .root_frame import (
    ALONG,
    BACK,
    BIAS,
    BIAS_JUMP,
    CONSTANT,
    COUNT,
    JUMP,
    MORE,
    OUT,
    OWN,
    PANELS,
    POINT,
    RETURN,
    ROWS,
    SHARED,
    TO_REMOTE,
    TO_RESIDUAL,
    WORKER,
    Member,
)
from .supervisor import call_cycles, launch, schedule, to_frame
from .text import section

INTERLEAVED_SHIFT = 19
"""Bit set in all addresses of region 1 and in none below."""


def is_wide(own: int, remote: int, own_stride: int, remote_stride: int, remote_count: int) -> bool:
    """True if a call loads 16 bytes at a time for these arguments."""
    remote = remote if remote_count else own
    aligned = (own | remote | own_stride | remote_stride) % 16 == 0
    return aligned and own >= REGION1_BASE and remote >= REGION1_BASE


def _pointers(variant: Member) -> list[tuple[int, str]]:
    """Words of a worker's frame that hold addresses, and the names of the first worker's."""
    return [(OUT, "%out"), (OWN, "%own")] + [(BIAS, "%bias")] * variant.bias


def _first_frames(variant: Member) -> list[str]:
    """Pointers of the first pair of workers, and of all to the shared frame."""
    lines = []
    for word, name in _pointers(variant):
        lines += [to_frame(name, word), f"add {name}_upper, {name}, 16"]
        lines.append(to_frame(f"{name}_upper", variant.words + word))
    lines.append(f"add %shared, $m11, {4 * variant.shared(0)}")
    return lines + [to_frame("%shared", index * variant.words + SHARED) for index in range(6)]


def _frames(variant: Member) -> list[str]:
    """Pointers of the other two pairs, which lie %dense, %along, %wider bytes apart."""
    lines = []
    for (word, name), along in zip(_pointers(variant), ("%dense", "%along", "%wider"), strict=False):
        lines += [f"ld32 {name}, $m11, $mzero, {word}", f"add {name}, {name}, {along}"]
        lines.append(f"add {name}_upper, {name}, 16")
        for pair in (1, 2):
            for half, pointer in enumerate((name, f"{name}_upper")):
                lines.append(to_frame(pointer, (2 * pair + half) * variant.words + word))
                if pair == 1:
                    lines.append(f"add {pointer}, {pointer}, {along}")
    return lines


def _counts(variant: Member, pair: int, rows: str, panels: str, jump: str) -> list[str]:
    """Stores a pair's rows - 1, panels - 1 and jump."""
    return [
        to_frame(register, index * variant.words + word)
        for index in (2 * pair, 2 * pair + 1)
        for register, word in ((rows, ROWS), (panels, PANELS), (jump, JUMP))
    ]


def _by_row(variant: Member) -> list[str]:
    """The workers' frames where they share the rows."""
    shift = variant.row_shift
    lines = [
        f"shl %dense, %chunk, {shift}",
        f"shl %along, %chunk, {shift}",
        "add %panels, %panels, -1",
        f"shl %panel, %rows, {shift}",
        "sub %more, %stride, %panel",
        to_frame("%more", variant.shared(MORE)),
        "mov %left0, %rows",
    ]
    for pair in range(3):
        lines += [
            f"min %rows{pair}, %chunk, %left{pair}",
            *([f"sub %left{pair + 1}, %left{pair}, %chunk"] if pair < 2 else []),
            f"sub %jump{pair}, %rows, %rows{pair}",
            f"shl %jump{pair}, %jump{pair}, {shift}",
            f"add %rows{pair}, %rows{pair}, -1",
            *_counts(variant, pair, f"%rows{pair}", "%panels", f"%jump{pair}"),
        ]
    if variant.bias:
        lines += [
            f"setzi %step, {variant.row_bytes}",
            to_frame("%step", variant.shared(BIAS_JUMP)),
            "setzi %wider, 0",
        ]
    return [*lines, *_frames(variant)]


def _by_panel(variant: Member) -> list[str]:
    """The workers' frames where they share the panels."""
    lines = [
        f"shl %dense, %rows, {variant.row_shift}",
        "mov %along, %stride",
        f"shl %jump, %rows, {variant.row_shift + 1}",
        "sub %more, %stride, %dense",
        "mul %more, %more, 3",
        to_frame("%more", variant.shared(MORE)),
        "add %rows, %rows, -1",
    ]
    for pair in range(3):
        lines += [
            f"add %panels{pair}, %panels, {2 - pair}",
            f"mul %panels{pair}, %panels{pair}, {THIRD}",
            f"shr %panels{pair}, %panels{pair}, 16",
            f"add %panels{pair}, %panels{pair}, -1",
            *_counts(variant, pair, "%rows", f"%panels{pair}", "%jump"),
        ]
    if variant.bias:
        lines += [f"setzi %step, {3 * variant.row_bytes}", to_frame("%step", variant.shared(BIAS_JUMP))]
        lines.append(f"setzi %wider, {variant.row_bytes}")
    return [*lines, *_frames(variant)]


def _head(variant: Member) -> list[str]:
    """What is the same for both ways; ends with the choice of one."""
    lines = ["sub %further, $m6, %out", to_frame("%further", variant.shared(TO_RESIDUAL))] * variant.residual
    point = ["cmpeq %alone, %count, 0", "setzi %point, .Lroot_point", "movnz %worker, %alone, %point"]
    lines += [
        "shr %count, $m8, 20",
        "shl %stride, $m8, 12",
        "shr %stride, %stride, 12",
        to_frame("%count", variant.shared(COUNT)),
        "mul %back, %others, %count",
        "sub %back, 32, %back",
        to_frame("%back", variant.shared(BACK)),
        "sub %distance, %remote, %out",
        to_frame("%distance", variant.shared(TO_REMOTE)),
        # Wide: both in region 1, and no lowest four bits. Without remote partials, own decides.
        "mov %judged, %own",
        "movnz %judged, %count, %remote",
        "or %bits, %stride, %others",
        "or %bits, %bits, %own",
        "or %bits, %bits, %judged",
        "and %bits, %bits, 15",
        "and %region, %own, %judged",
        f"shr %region, %region, {INTERLEAVED_SHIFT}",
        "cmpeq %bits, %bits, 0",
        "and %region, %region, %bits",
        "setzi %worker, .Lroot_plain",
        "setzi %wide, .Lroot_wide",
        "movnz %worker, %region, %wide",
        *(point if POINT in variant.ways else []),
        to_frame("%worker", variant.shared(WORKER)),
        # From one remote partial to the next in accesses: of 16 bytes, or of 8 from second half to first.
        "add %step, %others, -8",
        "shrs %step, %step, 3",
        "shrs %others, %others, 4",
        "movnz %step, %region, %others",
        to_frame("%step", variant.shared(ALONG)),
    ]
    for index, value in enumerate(variant.constants):
        name = f"%constant{index}"
        lines += [f"setzi {name}, {value:#x}", to_frame(name, variant.shared(CONSTANT + index))]
    return [*lines, *choose()]


_HEAD_SEEDS = {(False, False): 12, (False, True): 5, (True, False): 42, (True, True): 36}
"""By bias and residual: what `schedule` makes least cycles of."""


@cache
def _supervisor(variant: Member) -> tuple[tuple[str, ...], ...]:
    """From the arguments to the workers' end: the head, rows shared, panels shared."""
    pinned = {"%rows": "$m0", "%panels": "$m1", "%chunk": "$m7", "%stride": "$m8", "%panelwise": "$m6"}
    names = re.compile("|".join(rf"{name}\b" for name in pinned))
    head = [
        f"add $m11, $m11, -{variant.frame_bytes}",
        "shl $m0, $m7, 16",
        "shr $m0, $m0, 16",
        "shr $m1, $m7, 16",
        to_frame("%return", variant.shared(RETURN)),
        *_first_frames(variant),
        *(names.sub(lambda match: pinned[match[0]], line) for line in _head(variant)),
    ]
    given = {
        "%out": "$m2",
        "%own": "$m3",
        "%remote": "$m4",
        "%bias": "$m5",
        "%others": "$m9",
        "%return": "$m10",
    }
    pool = ["$m2", "$m3", "$m4", "$m5", "$m6"]
    kept = {name: register for name, register in pinned.items() if name != "%panelwise"}
    ends = [
        f"ld32 $m9, $m11, $mzero, {variant.shared(WORKER)}",
        f"ld32 $m10, $m11, $mzero, {variant.shared(RETURN)}",
    ]
    way = {True: _by_row(variant) + ends, False: _by_panel(variant) + ends}
    head_seed = _HEAD_SEEDS[variant.bias, variant.residual]
    row_seed, panel_seed = (5, 11) if variant.bias else (0, 0)
    by_row = schedule(way[True], pool, kept, seed=row_seed)
    return tuple(
        tuple(lines)
        for lines in (
            schedule(head, (), given, seed=head_seed),
            ["brnz $m6, .Lroot_by_panel", *by_row, *launch(variant.frame_bytes, variant.words)],
            [*schedule(way[False], pool, kept, seed=panel_seed), *launch(variant.frame_bytes, variant.words)],
        )
    )


def source(variant: Member, workers: Sequence[str]) -> str:
    """The whole kernel, from its workers' ways `.Lroot_<way>` and their end `.Lroot_exit`."""
    head, by_row, by_panel = _supervisor(variant)
    return section(
        variant.symbol,
        [
            *head,
            *by_row,
            ".Lroot_by_panel:",
            *by_panel,
            *workers,
        ],
    )


def supervisor_cycles(variant: Member, by_row: bool) -> int:
    """Cycles of a call beside its workers' slots."""
    head, row_way, panel_way = _supervisor(variant)
    return call_cycles([*head, *row_way] if by_row else [*head, f"!{row_way[0]}", *panel_way])
