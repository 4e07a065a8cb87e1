"""Assembly of `reduce_f16`.

The words of all column groups are one long run, cut into six equal shares; remote partials and the result lie
that way too, while the own partial is a slice of a larger block whose pointer jumps at each group's end. A
step adds all partials of one unit into the float32 accumulators and takes the sums out, which leaves zeros
there.

Units are 16 bytes ("wide") where the supervisor finds that both inputs are interleaved and everything is
aligned to 16 bytes, and 8 bytes ("plain") elsewhere. The wide step is unrolled for up to `UNROLLED` remote
partials: one slot per partial and four to take eight sums out, two of which also store. It stores the second
half of a unit one step late; until there is one, the store writes the place of the first half and the pointer
stays.

Worker registers:
    $m0 remote pointer         $m1 units left after this one   $m2 own pointer       $m3 result pointer
    $m4 own units left in the  $m5 units per group             $m6 own bytes from    $m7, $m8 remote strides
        in units: group                                                      group to group        along
            partials, and back
    $m9 units until the jump   $m10 remote partials - 1        $m11 step of the late store, 0 or 1
"""

from __future__ import annotations

from ..machine.memory import REGION1_BASE, REGION1_SHIFT
from ..machine.timing import MULTI_SLOT
from .launch import SIXTH
from .text import bundle, section, worker

UNROLLED = 16
"""Most remote partials with a wide step of their own; more cost two further slots per unit."""


SHARE, TOTAL, WORDS, JUMP, OWN, OUT, ALONG, BACK, REMOTE, COUNT, BODY, SCRATCH = range(12)
"""Words of the workers' frame; each worker has one word of scratch."""
FRAME_BYTES = 72

TAKE_OUT = tuple(f"f16v2gina $a{register}, $azero, 0" for register in (4, 5, 6, 7))
"""Two sums each; the others move down and zeros move in."""


def is_wide(own: int, remote: int, words: int, own_stride: int, remote_stride: int) -> bool:
    """True if a call takes its fast way for these arguments (own, remote: byte addresses)."""
    aligned = (own | remote | own_stride | remote_stride) % 16 == 0 and words % 2 == 0
    return aligned and own >= REGION1_BASE and remote >= REGION1_BASE


def _load(wide: bool, pointer: str, step: str) -> str:
    return f"{'ld128step $a0:3' if wide else 'ld64step $a0:1'}, $mzero, {pointer}+=, {step}"


def _add(wide: bool) -> str:
    return "f16v8acc $a0:3" if wide else "f16v4acc $a0:1"


def _start(wide: bool) -> list[str]:
    """A worker's share, the place of its first unit, and the load of its own partial there."""
    lines = [
        bundle("get $m0, $WSR", "setzi $a4, 8"),
        bundle("and $m0, $m0, 7", "uput $FP_CLR, $a4"),  # 8: clear all accumulators
        bundle(f"ld32 $m2, $mvertex_base, $mzero, {SHARE}", "or $a2, $azero, 0x3f000000"),
        f"ld32 $m1, $mvertex_base, $mzero, {TOTAL}",
        f"add $m9, $m0, {SCRATCH}",
        "mul $m0, $m0, $m2",
        "sub $m1, $m1, $m0",
        "min $m1, $m1, $m2",
        "add $m1, $m1, -1",
        "brneg $m1, .Lreduce_exit",
        # The group of the first unit, floor((first + 0.5) / units per group), exact in float32 here.
        "stm32 $m0, $mvertex_base, $m9",
        f"ld32 $a1, $mvertex_base, $mzero, {WORDS}",
        bundle("ld32 $a0, $mvertex_base, $mzero, $m9", "f32fromui32 $a1, $a1"),
        bundle(f"ld32 $m5, $mvertex_base, $mzero, {WORDS}", "f32fromui32 $a0, $a0"),
        bundle(f"ld32 $m6, $mvertex_base, $mzero, {JUMP}", "f32add $a0, $a0, $a2"),
        bundle(f"ld32 $m2, $mvertex_base, $mzero, {OWN}", "f32div $a0, $a0, $a1"),
        bundle(f"ld32 $m3, $mvertex_base, $mzero, {OUT}", "f32int $a0, $a0, 3"),
        bundle(f"ld32 $m7, $mvertex_base, $mzero, {ALONG}", "f32toui32 $a0, $a0"),
        "atom $m4, $a0",
        "mul $m9, $m4, $m6",
        "add $m2, $m2, $m9",
        "mul $m4, $m4, $m5",
        "sub $m4, $m0, $m4",  # place of the first unit in its group
        "sub $m4, $m5, $m4",
        "add $m4, $m4, -1",
        f"shl $m0, $m0, {4 if wide else 3}",
        "add $m2, $m2, $m0",
        "add $m3, $m3, $m0",
        f"ld32 $m9, $mvertex_base, $mzero, {REMOTE}",
        "add $m0, $m0, $m9",
        f"ld32 $m8, $mvertex_base, $mzero, {BACK}",
        f"ld32 $m10, $mvertex_base, $mzero, {COUNT}",
        _load(wide, "$m2", "1"),
    ]
    if wide:
        lines += ["setzi $m11, 0", f"ld32 $m9, $mvertex_base, $mzero, {BODY}", "br $m9"]
    return lines


def start_slots(wide: bool) -> int:
    """Slots of a worker before its first step."""
    return len(_start(wide)) + MULTI_SLOT["f32div"] - 1


def _sums(wide: bool) -> list[str]:
    """Takes the sums of a unit out and stores what is complete."""
    if not wide:
        return [*TAKE_OUT[:2], "st64step $a4:5, $mzero, $m3+=, 1"]
    return [
        bundle("st64step $a6:7, $mzero, $m3+=, $m11", TAKE_OUT[0]),
        bundle("setzi $m11, 1", TAKE_OUT[1]),
        bundle("st64step $a4:5, $mzero, $m3+=, 1", TAKE_OUT[2]),
        bundle("nop", TAKE_OUT[3]),
    ]


def _steps(wide: bool, label: str) -> list[str]:
    """All units but the last, any number of partials: `remote` + 6 slots each, wide one more."""
    load_own = bundle(_load(wide, "$m2", "1"), _add(wide))
    return [
        f"{label}_group:",
        "min $m9, $m1, $m4",
        "sub $m1, $m1, $m9",
        "mov $m4, $m5",
        f"brz $m9, {label}_jump",
        "add $m9, $m9, -1",
        f"{label}_unit:",
        bundle("rpt $m10, 0"),
        bundle(_load(wide, "$m0", "$m7"), _add(wide)),
        bundle(_load(wide, "$m0", "$m8"), _add(wide)),
        load_own,
        *_sums(wide),
        f"brnzdec $m9, {label}_unit",
        f"{label}_jump:",
        "add $m2, $m2, $m6",
        f"brnz $m1, {label}_group",
    ]


def _unrolled(count: int) -> list[str]:
    """All wide units but the last, for one number of remote partials."""
    label = f".Lreduce_body_{count}"
    loads = [_load(True, "$m0", "$m7")] * (count - 1) + [_load(True, "$m0", "$m8"), _load(True, "$m2", "1")]
    unit = [bundle(load, _add(True)) for load in loads] + _sums(True)
    return [
        f"{label}_group:",
        "min $m9, $m1, $m4",
        "sub $m1, $m1, $m9",
        "mov $m4, $m5",
        bundle(f"rpt $m9, {len(unit) - 1}"),
        *unit,
        "add $m2, $m2, $m6",
        f"brnz $m1, {label}_group",
        "bri .Lreduce_wide_tail",
    ]


def _tail(wide: bool) -> list[str]:
    """The last unit: nothing is loaded beyond it."""
    along = bundle(_load(wide, "$m0", "$m7"), _add(wide))
    last = "st64 $a6:7, $m3, $mzero, 0" if wide else ""
    return [bundle("rpt $m10, 0"), along, along, _add(wide), *_sums(wide), *([last] if wide else [])]


TAIL_SLOTS = {True: 9, False: 7}
"""Slots of the last unit and the exit, beside one per remote partial."""


def _supervisor(wide: bool) -> list[str]:
    """Fills the frame's numbers in units; $m0, $m1 free, $m4 index of the body in its table, $m7 words in
    all.
    """
    shift = 1 if wide else 0
    return [
        *(["shr $m6, $m6, 1"] if wide else []),
        f"shr $m9, $m9, {3 + shift}",
        f"add $m0, $m7, {10 if wide else 5}",
        f"setzi $m1, {SIXTH}",
        *(["setzi $m3, .Lreduce_bodies", "shr $m7, $m7, 1"] if wide else []),
        "mul $m5, $m9, $m5",
        "mul $m0, $m0, $m1",
        *(["ld32 $m4, $m3, $m4, 0"] if wide else []),
        f"setzi $m2, .Lreduce_{'wide' if wide else 'plain'}",
        f"st32 $m6, $m11, $mzero, {WORDS}",
        f"st32 $m9, $m11, $mzero, {ALONG}",
        f"st32 $m7, $m11, $mzero, {TOTAL}",
        "sub $m5, 1, $m5",
        f"shr $m0, $m0, {18 + shift}",
        *([f"st32 $m4, $m11, $mzero, {BODY}"] if wide else []),
        f"st32 $m5, $m11, $mzero, {BACK}",
        f"st32 $m0, $m11, $mzero, {SHARE}",
        "runall $m2, $m11, 0",
        f"add $m11, $m11, {FRAME_BYTES}",
        "sync 2",
        "br $m10",
    ]


def source() -> str:
    """The whole kernel."""
    lines = [
        "brz $m5, .Lreduce_return",
        "brz $m6, .Lreduce_return",
        "brz $m7, .Lreduce_return",
        f"add $m11, $m11, -{FRAME_BYTES}",
        "or $m1, $m3, $m4",
        "or $m0, $m8, $m9",
        "mul $m7, $m6, $m7",
        f"st32 $m2, $m11, $mzero, {OUT}",
        f"st32 $m3, $m11, $mzero, {OWN}",
        "or $m1, $m1, $m0",
        "and $m0, $m3, $m4",
        "shl $m2, $m6, 3",
        f"st32 $m4, $m11, $mzero, {REMOTE}",
        f"min $m4, $m5, {UNROLLED + 1}",
        "add $m5, $m5, -1",
        "and $m1, $m1, 15",
        f"shr $m0, $m0, {REGION1_SHIFT}",
        "sub $m8, $m8, $m2",
        "and $m2, $m6, 1",
        "shl $m4, $m4, 2",
        f"st32 $m5, $m11, $mzero, {COUNT}",
        "brnz $m1, .Lreduce_choose_plain",
        "brz $m0, .Lreduce_choose_plain",
        f"st32 $m8, $m11, $mzero, {JUMP}",
        "brnz $m2, .Lreduce_choose_plain",
        *_supervisor(True),
        ".Lreduce_choose_plain:",
        f"st32 $m8, $m11, $mzero, {JUMP}",
        *_supervisor(False),
        ".Lreduce_return:",
        "br $m10",
        ".Lreduce_bodies:",
        ".word 0",
        *(f".word .Lreduce_body_{count}" for count in range(1, UNROLLED + 2)),
        *worker(
            ".Lreduce_plain",
            [*_start(False), *_steps(False, ".Lreduce_steps"), *_tail(False), ".Lreduce_exit:", "exitz $m15"],
        ),
        *worker(".Lreduce_wide", _start(True)),
    ]
    for count in range(1, UNROLLED + 1):
        lines += worker(f".Lreduce_body_{count}", _unrolled(count))
    many = f".Lreduce_body_{UNROLLED + 1}"
    lines += worker(many, [*_steps(True, many), "bri .Lreduce_wide_tail"])
    lines += worker(".Lreduce_wide_tail", [*_tail(True), "exitz $m15"])
    return section("reduce_f16", lines)
