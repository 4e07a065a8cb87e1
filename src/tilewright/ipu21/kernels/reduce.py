"""`reduce_f16`: own partial sum plus `remote` others, summed in float32 and rounded once.

The words of all column groups are one long run, cut into six equal shares. Remote partials and the result are
contiguous; the own partial is a slice of a larger block, so its pointer jumps at each group's end. One word
takes one slot per partial and one for the store. The body is unrolled for up to `UNROLLED` remote partials,
because a repeat block cannot hold another.

Worker registers:
    $m0 remote pointer   $m1 words left after this one   $m2 own pointer   $m3 result pointer   $m4 own words
    left in the group   $m5 words per group   $m6 own bytes from a group's end to the next   $m7, $m8 remote
    strides, along the partials and back to the first   $m9 words until the jump   $m10 remote - 1   $m11
    remote - 2
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...arithmetic import ceil_div
from ..machine.timing import MULTI_SLOT, RUN_LAUNCH, RUN_RELEASE, WORKER_SLOTS
from .halves import Halves, to_halves
from .kernel import Contract, Kernel, Operand, Scalar
from .launch import MAXIMUM_WORDS, RETURN, SIXTH
from .text import bundle, section, worker

UNROLLED = 16
"""Most remote partials with a body of their own; with more, a word takes two further slots."""

_SHARE, _TOTAL, _WORDS, _JUMP, _OWN, _OUT, _ALONG_STEP, _BACK_STEP, _REMOTE, _COUNT, _BODY, _SCRATCH = range(
    12
)
_FRAME_BYTES = 72

_X, _Y, _SUM = "$a0:1", "$a2:3", "$a4:5"
_LOAD_OWN = f"ld64step {_X}, $mzero, $m2+=, 1"
_ALONG = f"ld64step {_Y}, $mzero, $m0+=, $m7"
_BACK = f"ld64step {_Y}, $mzero, $m0+=, $m8"
_ADD = f"f16v4acc {_Y}"
_READ = f"f16v4gacc {_SUM}"
_STORE = f"st64step {_SUM}, $mzero, $m3+=, 1"

_START = (
    bundle("get $m0, $WSR", "setzi $a4, 0x03c00"),
    bundle("and $m0, $m0, 7", "or $a4, $a4, 0x3c000000"),
    bundle(f"ld32 $m2, $mvertex_base, $mzero, {_SHARE}", "uput $TAS, $a4"),  # both factors of mix: 1
    bundle(f"ld32 $m1, $mvertex_base, $mzero, {_TOTAL}", "or $a2, $azero, 0x3f000000"),
    f"add $m9, $m0, {_SCRATCH}",
    "mul $m0, $m0, $m2",
    "sub $m1, $m1, $m0",
    "min $m1, $m1, $m2",
    "add $m1, $m1, -1",
    "brneg $m1, .Lreduce_exit",
    # The group of the first word, floor((first + 0.5) / words) in float32: exact for these sizes.
    "stm32 $m0, $mvertex_base, $m9",
    f"ld32 $a1, $mvertex_base, $mzero, {_WORDS}",
    bundle("ld32 $a0, $mvertex_base, $mzero, $m9", "f32fromui32 $a1, $a1"),
    bundle(f"ld32 $m5, $mvertex_base, $mzero, {_WORDS}", "f32fromui32 $a0, $a0"),
    bundle(f"ld32 $m6, $mvertex_base, $mzero, {_JUMP}", "f32add $a0, $a0, $a2"),
    bundle(f"ld32 $m2, $mvertex_base, $mzero, {_OWN}", "f32div $a0, $a0, $a1"),
    bundle(f"ld32 $m3, $mvertex_base, $mzero, {_OUT}", "f32int $a0, $a0, 3"),
    bundle(f"ld32 $m7, $mvertex_base, $mzero, {_ALONG_STEP}", "f32toui32 $a0, $a0"),
    "atom $m4, $a0",
    "mul $m9, $m4, $m6",
    "add $m2, $m2, $m9",
    "mul $m4, $m4, $m5",
    "sub $m4, $m0, $m4",  # place of the first word in its group
    "sub $m4, $m5, $m4",
    "add $m4, $m4, -1",
    "shl $m0, $m0, 3",
    "add $m2, $m2, $m0",
    "add $m3, $m3, $m0",
    f"ld32 $m9, $mvertex_base, $mzero, {_REMOTE}",
    "add $m0, $m0, $m9",
    f"ld32 $m8, $mvertex_base, $mzero, {_BACK_STEP}",
    f"ld32 $m10, $mvertex_base, $mzero, {_COUNT}",
    f"ld32 $m9, $mvertex_base, $mzero, {_BODY}",
    _LOAD_OWN,
    "br $m9",
)
_START_SLOTS = len(_START) + MULTI_SLOT["f32div"] - 1

_TAIL = (
    ".Lreduce_tail:",
    bundle("rpt $m10, 0", f"f16v4mix $azeros, {_X}, $azeros"),
    bundle(_ALONG, _ADD),
    _ADD,
    _READ,
    f"st64 {_SUM}, $m3, $mzero, 0",
    ".Lreduce_exit:",
    "exitz $m15",
)
_TAIL_SLOTS = 5


def _body(count: int) -> list[str]:
    """Words with `count` remote partials up to the last word, whose first loads are done already."""
    label = f".Lreduce_body_{count}"
    mix = f"f16v4mix $azeros, {_X}, {_Y}"
    if count == 1:
        word = [bundle(_BACK, mix), bundle(_LOAD_OWN, _READ), bundle(_STORE)]
    else:
        strides = [_ALONG] * (count - 2) + [_BACK, _ALONG]
        word = [bundle(load, _ADD if index else mix) for index, load in enumerate(strides)]
        word += [bundle(_LOAD_OWN, _READ), bundle(_STORE)]
    return [
        _BACK if count == 1 else _ALONG,
        f"{label}_group:",
        "min $m9, $m1, $m4",
        "sub $m1, $m1, $m9",
        "mov $m4, $m5",
        bundle(f"rpt $m9, {len(word) - 1}"),
        *word,
        "add $m2, $m2, $m6",
        f"brnz $m1, {label}_group",
        "bri .Lreduce_tail",
    ]


def _many() -> list[str]:
    """Words with any number of remote partials, at least 2."""
    return [
        "add $m11, $m10, -1",
        _ALONG,
        ".Lreduce_many_group:",
        "min $m9, $m1, $m4",
        "sub $m1, $m1, $m9",
        "mov $m4, $m5",
        "brz $m9, .Lreduce_many_jump",
        "add $m9, $m9, -1",
        ".Lreduce_many_word:",
        bundle("rpt $m11, 0", f"f16v4mix $azeros, {_X}, $azeros"),
        bundle(_ALONG, _ADD),
        bundle(_BACK, _ADD),
        bundle(_ALONG, _ADD),
        bundle(_LOAD_OWN, _READ),
        _STORE,
        "brnzdec $m9, .Lreduce_many_word",
        ".Lreduce_many_jump:",
        "add $m2, $m2, $m6",
        "brnz $m1, .Lreduce_many_group",
        "bri .Lreduce_tail",
    ]


def _source() -> str:
    lines = [
        "brz $m5, .Lreduce_return",
        "brz $m6, .Lreduce_return",
        "brz $m7, .Lreduce_return",
        f"add $m11, $m11, -{_FRAME_BYTES}",
        "mul $m7, $m6, $m7",
        "shr $m9, $m9, 3",
        f"min $m0, $m5, {UNROLLED + 1}",
        "add $m5, $m5, -1",
        f"setzi $m1, {SIXTH}",
        f"st32 $m2, $m11, $mzero, {_OUT}",
        "add $m2, $m7, 5",
        f"st32 $m3, $m11, $mzero, {_OWN}",
        "shl $m0, $m0, 2",
        "setzi $m3, .Lreduce_bodies",
        f"st32 $m5, $m11, $mzero, {_COUNT}",
        "mul $m5, $m9, $m5",
        f"st32 $m4, $m11, $mzero, {_REMOTE}",
        "mul $m2, $m2, $m1",
        "shl $m4, $m6, 3",
        f"st32 $m6, $m11, $mzero, {_WORDS}",
        "ld32 $m0, $m3, $m0, 0",
        "sub $m5, 1, $m5",
        f"st32 $m7, $m11, $mzero, {_TOTAL}",
        f"st32 $m9, $m11, $mzero, {_ALONG_STEP}",
        "sub $m8, $m8, $m4",
        "shr $m2, $m2, 18",
        "setzi $m4, .Lreduce_worker",
        f"st32 $m0, $m11, $mzero, {_BODY}",
        f"st32 $m5, $m11, $mzero, {_BACK_STEP}",
        f"st32 $m8, $m11, $mzero, {_JUMP}",
        f"st32 $m2, $m11, $mzero, {_SHARE}",
        "runall $m4, $m11, 0",
        f"add $m11, $m11, {_FRAME_BYTES}",
        "sync 2",
        ".Lreduce_return:",
        "br $m10",
        ".Lreduce_bodies:",
        ".word 0",
        *(f".word .Lreduce_body_{count}" for count in range(1, UNROLLED + 2)),
        *worker(".Lreduce_worker", _START),
        *worker(".Lreduce_tail", _TAIL[1:]),
    ]
    for count in range(1, UNROLLED + 1):
        lines += worker(f".Lreduce_body_{count}", _body(count))
    lines += worker(f".Lreduce_body_{UNROLLED + 1}", _many())
    return section("reduce_f16", lines)


SUPERVISOR = 38 + RUN_LAUNCH + RUN_RELEASE
"""Cycles of a call beside its workers."""


def cycles(remote: Any, words: Any, columns: Any) -> Any:
    """Cycles of a call (exact on the simulator); integers or arrays. See `Kernel.cycles`."""
    remote, words, columns = (np.asarray(value, dtype=np.int64) for value in (remote, words, columns))
    total = words * columns
    share = ceil_div(total, WORKER_SLOTS)
    group = np.maximum(words, 1)
    many = remote > UNROLLED
    each = np.where(many, remote + 4, remote + 2)
    slots = np.zeros(np.broadcast(remote, total).shape, dtype=np.int64)
    for index in range(WORKER_SLOTS):
        first = index * share
        left = np.minimum(total - first, share) - 1
        in_group = group - 1 - first % group
        groups = 1 + np.maximum(0, ceil_div(left - in_group, group))
        # A group whose repeat count is 0 (only the first can be) skips its loop.
        entered = groups - ((in_group == 0) | (left <= 0))
        around = 6 * groups + np.where(many, entered, 0)
        busy = _START_SLOTS + np.where(many, 2, 1) + around + left * each + 1 + _TAIL_SLOTS + remote - 1
        slots = np.maximum(slots, np.where(left >= 0, busy, 0))
    return np.where(total > 0, SUPERVISOR + WORKER_SLOTS * slots, RETURN + 1 + (words > 0))


def reference(own: Halves, remote: Halves) -> Halves:
    """own [groups, words * 4] plus remote [partials, groups, words * 4], added in order in float32, rounded
    once.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        total = own.astype(np.float32)
        for partial in remote:
            total = total + partial.astype(np.float32)
        return to_halves(total)


KERNEL = Kernel(
    "reduce_f16",
    _source,
    Contract(
        operands=(
            Operand("out", "words", "out"),
            Operand("own", "words", "in"),
            Operand("remote", "words", "in"),
        ),
        scalars=(
            Scalar("remote_count", "remote partials", 1, 4096),
            Scalar("words", "8-byte words per column group", 0, MAXIMUM_WORDS),
            Scalar("columns", "column groups", 0, MAXIMUM_WORDS),
            Scalar("own_stride", "bytes from one group of the own partial to the next", 0, multiple=8),
            Scalar("remote_stride", "bytes from one remote partial to the next", 0, multiple=8),
        ),
        may_alias=(("out", "own"),),
        notes="$TAS is clobbered.",
    ),
    cycles,
    reference,
)
