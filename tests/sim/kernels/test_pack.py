"""Packed worker code does what it did in order, by a model of what its instructions read and write."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from tilewright.ipu21.kernels.pack import pack

LINES: dict[str, tuple[str, Sequence[str], Sequence[str]]] = {
    "ld32 $a0, $m1, $mzero, 3": ("main", ["$m1", "m1+3"], ["$a0"]),
    "ld64step $a2:3, $mzero, $m1+=, $m2": ("main", ["$m1", "$m2"], ["$a2", "$a3", "$m1"]),
    "ld64 $a4:5, $m0, $mzero, 1": ("main", ["$m0", "m0+1"], ["$a4", "$a5"]),
    "st64 $a2:3, $m0, $mzero, 1": ("main", ["$a2", "$a3", "$m0"], ["m0+1"]),
    "st64step $a0:1, $mzero, $m2+=, 1": ("main", ["$a0", "$a1", "$m2"], ["$m2", "m2"]),
    "add $m1, $m1, $m0": ("main", ["$m1", "$m0"], ["$m1"]),
    "setzi $m0, 4": ("main", [], ["$m0"]),
    "setzi $a3, 0": ("aux", [], ["$a3"]),
    "or $a1, $azero, 0xff800000": ("aux", [], ["$a1"]),
    "f16v4mul $a0:1, $a4:BL, $a0:1": ("aux", ["$a4", "$a0", "$a1"], ["$a0", "$a1"]),
    "f32v4tof16 $a4:5, $a0:3": ("aux", ["$a0", "$a1", "$a2", "$a3"], ["$a4", "$a5"]),
    "f16v8acc $a0:3": ("aux", ["$a0", "$a1", "$a2", "$a3", "sums"], ["sums"]),
    "f32v2mac $a2:3, $a4:5": ("aux", ["$a2", "$a3", "$a4", "$a5", "sums"], ["sums"]),
    "f32v2aop $a2:3, $a0:1, 0": ("aux", ["$a0", "$a1", "$a2", "$a3", "sums"], ["sums"]),
    "f16v2gina $a4, $azero, 0": ("aux", ["sums"], ["$a4", "sums"]),
    "f16v4mix $a2:3, $azeros, $azeros": ("aux", ["sums", "$TAS"], ["$a2", "$a3", "sums"]),
    "uput $TAS, $a0": ("aux", ["$a0"], ["$TAS"]),
    "uput $FP_CLR, $a4": ("aux", ["$a4"], ["sums"]),
}
"""(pipeline, what is read, what is written)."""

State = dict[str, int]


def after(state: State, lines: Sequence[str]) -> State:
    """The state after lines that all read before any writes."""
    changed = dict(state)
    for line in lines:
        _, reads, writes = LINES[line]
        values = (line, *(state.get(name, hash(name)) for name in reads))
        changed |= {name: hash((values, index)) for index, name in enumerate(writes)}
    return changed


@pytest.mark.parametrize("seed", range(300))
def test_order_is_kept(seed: int) -> None:
    lines = random.Random(seed).choices(list(LINES), k=2 + seed % 40)
    expected: State = {}
    for line in lines:
        expected = after(expected, [line])
    found: State = {}
    pairs = pack(lines)
    for main, auxiliary in pairs:
        assert main == "nop" or LINES[main][0] == "main"
        assert auxiliary == "fnop" or LINES[auxiliary][0] == "aux"
        found = after(found, [line for line in (main, auxiliary) if line in LINES])
    assert found == expected
    assert sorted(line for pair in pairs for line in pair if line in LINES) == sorted(lines)


def test_bundles() -> None:
    add, load = "f16v8acc $a0:3", "ld64step $a0:1, $mzero, $m3+=, 1"
    assert pack([]) == []
    assert pack([add, load]) == [(load, add)]
    assert pack([load, add]) == [(load, "fnop"), ("nop", add)]
    # A store only reads what it stores.
    store = "st64 $a2:3, $m0, $mzero, 1"
    assert pack([store, add]) == [(store, add)]
    # What others wait for comes first.
    chain = ["ld32 $m2, $m0, $mzero, 1", "ld32 $a0, $m2, $mzero, 0", "f32oox $a0, $a0"]
    assert pack(["setzi $m5, 1", *chain]) == [
        (chain[0], "fnop"),
        (chain[1], "fnop"),
        ("setzi $m5, 1", chain[2]),
    ]


def test_branches_stay_in_front_of_accesses() -> None:
    leave, load, store = "brneg $m8, .Lexit", "ld64 $a0:1, $m2, $mzero, 0", "st64 $a2:3, $m8, $mzero, 0"
    assert pack([leave, load, "f16v4add $a2:3, $a4:5, $a6:7", store]) == [
        (leave, "f16v4add $a2:3, $a4:5, $a6:7"),
        (load, "fnop"),
        (store, "fnop"),
    ]
    asked = "ld32 $m8, $mvertex_base, $mzero, 0"
    assert [main for main, _ in pack([asked, leave, store, load])] == [asked, leave, store, load]


def test_what_others_wait_for_overtakes_no_branch_but_in_registers() -> None:
    leave, other = "brneg $m8, .Lexit", "brneg $m9, .Lexit"
    load, *sums = "ld32 $m1, $m0, $mzero, 1", "add $m2, $m1, $m0", "add $m3, $m2, $m0"
    assert [main for main, _ in pack([leave, load, *sums])] == [leave, load, *sums]
    # The second branch reads what is written for others that wait.
    changes = ["add $m9, $m9, $m0", "add $m4, $m9, $m0", "add $m5, $m4, $m0"]
    assert [main for main, _ in pack([leave, other, *changes])] == [leave, other, *changes]
    reads = ["add $m1, $m8, $m0", *sums]
    assert [main for main, _ in pack([leave, *reads])] == [*reads[:2], leave, reads[2]]
