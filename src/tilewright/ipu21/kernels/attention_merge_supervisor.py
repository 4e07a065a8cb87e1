"""The supervisors of `attention_merge_f16` and `attention_merge_own_f16`: from arguments to launch."""

from __future__ import annotations

from functools import cache

from .attention_merge_few import COUNTS as FEW_COUNTS
from .attention_merge_straight import COUNTS
from .attention_merge_words import (
    BACK_HALF,
    BACK_PANEL,
    BETWEEN,
    COLUMNS,
    COMMON,
    COUNT,
    FIRST,
    FRAME_BYTES,
    HALVED_ROWS,
    IS_ODD,
    LEAST,
    LEAST_SUM,
    ODD,
    OTHERS,
    OUT,
    OUT_STEP,
    OWN,
    OWN_STATE,
    OWN_STEP,
    PAIRS,
    PANELS,
    PART_STEP,
    ROWS,
    STATE_STEP,
    STATES,
    STRAIGHT_HALF,
    STRAIGHT_PANEL,
    WEIGHT_BYTES,
    WORKER_WORDS,
)
from .grid import THIRD
from .supervisor import call_cycles, launch, load_back, schedule, to_frame, to_frames

_OWN_ARGUMENTS = {
    "%out": "$m2",
    "%own": "$m3",
    "%own_state": "$m4",
    "%others": "$m5",
    "%states": "$m6",
    "%shape": "$m7",
    "%packed": "$m8",
}
_OWN_HEAD = (
    "shr %count, %packed, 20",
    "shl %own_along, %packed, 12",
    "shr %own_along, %own_along, 12",
    "shl %along, %rows, 5",
    "mul %part, %along, %panels",
    "shl %between, %rows, 1",
)
_MERGE_ARGUMENTS = {
    "%out": "$m2",
    "%own": "$m3",
    "%own_state": "$m4",
    "%shape": "$m5",
    "%parts": "$m6",
    "%along": "$m7",
    "%part": "$m8",
}
_MERGE_HEAD = (
    "add %count, %parts, -1",
    "mov %own_along, %along",
    "add %others, %own, %part",
    "add %states, %own_state, $m9",
    "shr %between, $m9, 2",
)


@cache
def prologue(own: bool) -> tuple[str, ...]:
    """From the arguments to the launch; $m8 = 0 for whole rows. Rows that end with half a panel are whole."""
    common = [
        f"add $m11, $m11, -{FRAME_BYTES}",
        "shr %halves, %shape, 16",
        "and %unpaired, %halves, 1",
        to_frame("%unpaired", IS_ODD),
        "add %panels, %halves, 1",
        "shr %panels, %panels, 1",
        "shl %rows, %shape, 16",
        "shr %rows, %rows, 16",
        *(_OWN_HEAD if own else _MERGE_HEAD),
        to_frame("%out", OUT),
        to_frame("%own", OWN),
        to_frame("%own_state", OWN_STATE),
        to_frame("%others", OTHERS),
        to_frame("%states", STATES),
        to_frame("%between", BETWEEN),
        to_frame("%count", COUNT),
        "and %odd, %count, 1",
        to_frame("%odd", ODD),
        "shl %odd, %odd, 1",
        f"add %odd, %odd, {WEIGHT_BYTES - 4 - 4}",
        "sub %odd, 0, %odd",
        to_frame("%odd", FIRST),
        "shr %pairs, %count, 1",
        to_frame("%pairs", PAIRS),
        to_frame("%own_along", _SAVED_OWN),
        to_frame("%along", _SAVED_OTHERS),
        # One row: a worker's next panel is the third one.
        "cmpeq %times, %rows, 1",
        "andc %times, %times, %unpaired",
        "shl %times, %times, 1",
        "add %times, %times, 1",
        "mul %own_along, %own_along, %times",
        "mul %along, %along, %times",
        # What a worker with whole rows has to do differently, in words.
        f"cmpult %halved, %rows, {HALVED_ROWS + 1}",
        "andc %halved, %halved, %unpaired",
        "shl %halved, %halved, 1",
        "add %halved, %halved, -3",
        "mul %all, %part, %count",
        "add %part, %part, -8",
        "shrs %part, %part, 3",
        to_frame("%part", PART_STEP),
        "sub %back, 16, %all",
        to_frame("%back", BACK_HALF),
        "shl %less, %halved, 3",
        "add %less, %less, 8",
        "sub %all, %less, %all",
        "add %all, %all, %along",
        to_frame("%all", BACK_PANEL),
        "shrs %own_along, %own_along, 3",
        "add %own_along, %own_along, %halved",
        to_frame("%own_along", OWN_STEP),
        "mul %times, %times, %rows",
        "shl %times, %times, 2",
        "add %times, %times, %halved",
        to_frame("%times", OUT_STEP),
        "add %rows, %rows, -1",
        to_frame("%rows", ROWS),
        "add %panels, %panels, -1",
        to_frame("%panels", PANELS),
    ]
    given = _OWN_ARGUMENTS if own else _MERGE_ARGUMENTS
    free = [f"$m{register}" for register in range(9) if f"$m{register}" not in given.values()]
    return (
        *schedule(common, free, given, seed=_SEED),
        *(line for part in _workers(own) for line in schedule(part, _FREE)),
    )


_SAVED_OWN, _SAVED_OTHERS = WORKER_WORDS, WORKER_WORDS + 1
"""Where bytes from panel to panel wait: in words that are written later."""
_FREE = [f"$m{register}" for register in range(8)]
_SEED = 24


def _workers(own: bool) -> list[list[str]]:
    """The workers' own frames, from the common words and the places of the first row; the worker code ($m9)
    and whether rows are few ($m8).
    """
    # From a pair of workers to the next one: a row, or a panel of the only row.
    begin = [load_back("%rows", ROWS), "cmpult %several, $mzero, %rows"]
    states = [*begin, "shl %step, %several, 3"]
    parts = []
    for word, saved in ((OWN, _SAVED_OWN), (OTHERS, _SAVED_OTHERS)):
        step = ["setzi %row, 32", load_back("%step", saved), "movnz %step, %several, %row"]
        parts.append([*begin, *step, load_back("%from", word), *_spread(word, "%from", "%step", 16)])
    parts += [
        ["setzi %row, 32", load_back("%from", OUT), *_spread(OUT, "%from", "%row", 16)],
        [*states, load_back("%from", OWN_STATE), *_spread(OWN_STATE, "%from", "%step")],
        [*states, load_back("%from", STATES), *_spread(STATES, "%from", "%step")],
        [f"add %common, $m11, {4 * ROWS}", *to_frames("%common", COMMON, WORKER_WORDS)],
        *([_FEW_WORDS] if own else []),
    ]
    for pair in range(3):
        parts.append(
            [
                *begin,
                load_back("%panels", PANELS),
                # Every third panel of the only row.
                f"add %mine, %panels, {3 - pair}",
                f"setzi %third, {THIRD}",
                "mul %mine, %mine, %third",
                "shr %mine, %mine, 16",
                "add %mine, %mine, -1",
                "movnz %mine, %several, %panels",
                # None for a pair without a row.
                f"cmpult %without, %rows, {pair}",
                "and %several, %without, %several",
                "setzi %none, 0",
                "add %none, %none, -1",
                "movnz %mine, %several, %none",
                to_frame("%mine", 2 * pair * WORKER_WORDS + COLUMNS),
                to_frame("%mine", (2 * pair + 1) * WORKER_WORDS + COLUMNS),
                *(_mark(2 * pair * WORKER_WORDS + OWN_STATE) if own else []),
            ]
        )
    choice = [
        load_back("%rows", ROWS),
        load_back("%panels", PANELS),
        load_back("%unpaired", IS_ODD),
        f"cmpult $m8, %rows, {HALVED_ROWS}",
        "andc $m8, $m8, %unpaired",
        "setzi $m9, .Lmerge_rows",
        "setzi %last, .Lmerge_odd",
        "movnz $m9, %unpaired, %last",
        *(_STRAIGHT if own else []),
        "setzi %entry, .Lmerge_few",
        *(_FEW_STRAIGHT if own else []),
        "movnz $m9, $m8, %entry",
        "setzi %exit, .Lmerge_exit",
        "min %rows, %rows, %panels",
        "cmpslt %rows, %rows, 0",
        "movnz $m9, %rows, %exit",
    ]
    if own:
        # From behind the last part's half row to the first one's next, in words.
        for word, back in ((STRAIGHT_HALF, BACK_HALF), (STRAIGHT_PANEL, BACK_PANEL)):
            further = [load_back("%back", back), load_back("%step", PART_STEP), "shrs %back, %back, 3"]
            parts.append([*further, "add %back, %back, %step", to_frame("%back", word)])
    return [*parts, choice]


_FEW_WORDS = [
    load_back("%between", BETWEEN),
    *to_frames("%between", STATE_STEP, WORKER_WORDS),
    f"setzi %least, {LEAST >> 16:#x}",
    "shl %least, %least, 16",
    to_frame("%least", LEAST_SUM),
]
"""What only code for a number of other parts reads."""
_FEW_STRAIGHT = [
    load_back("%others", COUNT),
    f"cmpult %few, %others, {FEW_COUNTS.stop}",
    "mul %others, %others, %few",
    "shl %others, %others, 2",
    "setzi %table, .Lmerge_few_straight",
    "ld32 %few_straight, %table, %others, 0",
    "movnz %entry, %few_straight, %few_straight",
]
"""The code for the number of other parts, if it is linked."""
_STRAIGHT = [
    load_back("%count", COUNT),
    f"cmpult %known, %count, {COUNTS.stop}",
    "mul %count, %count, %known",
    "shl %count, %count, 2",
    "setzi %straight, .Lmerge_straight",
    "ld32 %straight, %straight, %count, 0",
    "andc %straight_known, %known, %unpaired",
    "mul %straight, %straight, %straight_known",
    "movnz $m9, %straight, %straight",
]
"""The code for the number of other parts, if it is linked and all panels are whole."""


def _mark(word: int) -> list[str]:
    """The sign of %mine onto a pair's pointer, which is the same in both frames."""
    return [
        "shr %sign, %mine, 31",
        "shl %sign, %sign, 31",
        load_back("%marked", word),
        "or %marked, %marked, %sign",
        to_frame("%marked", word),
        to_frame("%marked", word + WORKER_WORDS),
    ]


def _spread(word: int, name: str, step: str, half: int = 0) -> list[str]:
    """Into the frames of three pairs: a value that grows by `step` between pairs and by `half` in a pair."""
    lines = []
    for pair in range(3):
        first = 2 * pair * WORKER_WORDS + word
        other = f"{name}_{pair}" if half else name
        lines += [
            to_frame(name, first),
            *([f"add {other}, {name}, {half}"] if half else []),
            to_frame(other, first + WORKER_WORDS),
            *([f"add {name}, {name}, {step}"] if pair < 2 else []),
        ]
    return lines


WHOLE_ROWS = "brz $m8, .Lmerge_all"
"""The branch to the second launch."""


def launches() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """For few rows, and for whole rows."""
    return launch(FRAME_BYTES, WORKER_WORDS), launch(FRAME_BYTES)


def supervisor_cycles(own: bool, few: bool) -> int:
    """Cycles of a call beside its workers' slots."""
    to = launches()[not few]
    return call_cycles([*prologue(own), WHOLE_ROWS if few else f"!{WHOLE_ROWS}", *to])
