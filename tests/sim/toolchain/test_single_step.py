"""Stepping a tile one issue at a time is the same run, and every step tells what happened."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tilewright.ipu21.simulator.single import finish, prepare
from tilewright.ipu21.simulator.stops import Stop, StopKind
from tilewright.ipu21.simulator.tile import Tile
from tilewright.ipu21.simulator.trace import Step, steps
from tilewright.ipu21.toolchain import assemble, link

pytestmark = pytest.mark.sim

# The supervisor goes on while the workers run, and the workers end at different times.
SOURCE = """
.globl f
f:  setzi $m0, worker
    setzi $m1, 0x60000
    setzi $m5, 40
    runall $m0, $m1, 2
again:
    add $m3, $m3, 5
    st32step $m3, $m15, $m4+=, 1
    mul $m6, $m3, $m3
    ld32 $m7, $m1, $m15, 0
    brnzdec $m5, again
    sync 2
    br $m10
.align 8
worker:
    get $m1, $WSR
    and $m1, $m1, 7
    ld32 $m0, $m13, $m15, 0
    rpt $m1, 0
    { add $m0, $m0, 1 ; f32add $a1, $a1, $a2 }
loop: st32 $m0, $m13, $m15, 0
    brnzdec $m1, loop
    exitz $m15
"""


def fresh() -> Tile:
    image = link([assemble(SOURCE)])
    tile = prepare(image, "f", {4: 0x60100}, {0x60000: np.arange(12, dtype=np.uint32)})
    tile.a[:, 2] = np.float32(1.5).view(np.uint32)
    return tile


def test_stepping_changes_nothing() -> None:
    whole, stepped = fresh(), fresh()
    result = finish(whole)
    seen = list(steps(stepped))
    assert isinstance(seen[-1], Stop) and seen[-1].kind is StopKind.ENDED
    issued = [step for step in seen if isinstance(step, Step)]
    assert len(issued) == int(result.slots.sum()) + result.instructions
    assert stepped.clock == whole.clock and seen[-1].clock + 6 == result.cycles
    for mine, other in ((stepped.m, whole.m), (stepped.a, whole.a), (stepped.memory, whole.memory)):
        np.testing.assert_array_equal(mine, other)
    cycles = [step.cycle for step in issued]
    assert cycles == sorted(cycles) and len(set(cycles)) == len(cycles)
    for context in range(1, 7):
        turns = [step.cycle for step in issued if step.context == context]
        assert {second - first for first, second in itertools.pairwise(turns)} == {6}


def test_what_a_step_tells() -> None:
    issued = [step for step in steps(fresh()) if isinstance(step, Step)]
    load = next(step for step in issued if step.context == 3 and "ld32" in step.text)
    assert load.reads == (("$m13", 0x60010), ("[0x60010:4]", 4)) and load.writes == (("$m0", 4),)
    bundle = next(step for step in issued if step.context == 3 and "f32add" in step.text)
    assert bundle.text == "{ add $m0, $m0, 1 ; f32add $a1, $a1, $a2 }"
    assert dict(bundle.writes) == {"$m0": 5, "$a1": 0x3FC00000, "$REPEAT_COUNT": 1}
    assert ("$a2", 0x3FC00000) in bundle.reads
    store = next(step for step in issued if "st32step" in step.text)
    assert store.writes == (("$m4", 0x60104), ("[0x60100:4]", 5)) and store.context == 0
    assert "w2" in bundle.line("worker+0x10") and "<worker+0x10>" in bundle.line("worker+0x10")


STATE = """
.globl f
f:  setzi $m0, 3
    put $FP_ICTL, $m0
    get $m1, $FP_ICTL
    get $m2, $SCOUNT_L
    setzi $m3, 0x90000
    put $CCCSLOAD, $m3
    ld128putcs 4
    setzi $m4, 4
    put $CR, $m4
    setzi $m5, w
    run $m5, $m3, 0
    sync 2
    br $m10
.align 8
w:  uget $a2, $FP_CTL
    uput $PRNG_SEED, $a3
    urand32 $a0
    uput $TAS, $a4
    uput $TAS, $a4
    f32v2axpy $a0:1, $a4:5, $a4:5
    f16v8acc $a4:7
    setzi $a1, 8
    uput $FP_CLR, $a1
    exitz $m15
"""


def test_control_registers_accumulators_and_weights_are_told() -> None:
    image = link([assemble(STATE)])
    tile = prepare(image, "f", {}, {0x90000: np.arange(1, 9, dtype=np.uint32)})
    tile.a[0, 3:8] = 9, 0x3F800000, 0x40000000, 0x40004000, 0x3C003C00
    issued = [step for step in steps(tile) if isinstance(step, Step)]

    def step(start: str, which: int = 0) -> Step:
        return [item for item in issued if item.text.startswith(start)][which]

    assert step("put $FP_ICTL").writes == (("$FP_ICTL", 3),)
    assert step("get $m1, $FP_ICTL").reads == (("$FP_ICTL", 3),)
    counter = step("get $m2, $SCOUNT_L")
    assert counter.reads == (("$SCOUNT_L", counter.cycle),) and counter.writes == (("$m2", counter.cycle),)
    weights = step("ld128putcs")
    assert weights.reads == (("[0x90000:16]", 4 << 96 | 3 << 64 | 2 << 32 | 1),)
    assert weights.writes == (("$CCCSLOAD", 0x90010), ("$CWEI_1_0", 2 << 32 | 1), ("$CWEI_1_1", 4 << 32 | 3))
    assert step("put $CR").writes == (("$CR", 4), ("$CWEI_1_0", 0), ("$CWEI_1_1", 0))
    # The worker's $FP_CTL is what the supervisor put; its generator moves once per draw.
    assert step("uget $a2").reads == (("$FP_CTL", 3),)
    seeded, drawn = dict(step("uput $PRNG_SEED").writes), dict(step("urand32").writes)
    assert seeded["$PRNG_SEED"] == 9 and seeded["$PRNG"] >> 64 and drawn["$PRNG"] != seeded["$PRNG"]
    # A register that is put is told even if it keeps its value.
    assert step("uput $TAS", 1).writes == (("$TAS", 0x3F800000),)
    sums = step("f32v2axpy")
    assert ("$TAS", 0x3F800000) in sums.reads
    assert sums.writes[-2:] == (("$AACC0", 0x40000000), ("$AACC2", 0x40800000))
    name, value = step("f16v8acc").writes[-1]
    assert name == "$AACC2..AACC14" and value >> 384 == int(np.float32(1).view(np.uint32))
    assert f"$AACC2..AACC14={value & 0xFFFFFFFF:#010x}.." in step("f16v8acc").line(source="k.S:3")
    assert step("f16v8acc").line(source="k.S:3").endswith("  # k.S:3")
    assert step("uput $FP_CLR").writes[-1] == ("$AACC0..AACC14", 0)


def test_a_budget_is_exact() -> None:
    tile = fresh()
    for issued in range(1, 60):
        stop = tile.run(budget=1)
        assert stop.kind is StopKind.BUDGET and int(tile.counters.sum()) == issued
    last = list(steps(fresh(), budget=7))
    assert len(last) == 8 and isinstance(last[-1], Stop) and last[-1].kind is StopKind.BUDGET
