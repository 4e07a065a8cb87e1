"""Workers: bundles, repeats, lock-step, exits, and what survives from one launch to the next."""

from __future__ import annotations

import numpy as np
import pytest
from tile_programs import DATA, DATA1, WORKERS, run, run_workers, tile_of, words_array, worker_stop

from tilewright.ipu21.simulator.stops import ExceptionKind, StopKind

pytestmark = pytest.mark.sim

ONLY_WORKER_0 = "get $m0, $WSR\nand $m0, $m0, 7\nbrnz $m0, done\n"


def test_both_halves_of_a_bundle_read_the_old_registers() -> None:
    result = run_workers(
        ONLY_WORKER_0
        + """
        setzi $a0, 5
        { st32 $a0, $m13, $m15, 0 ; setzi $a0, 9 }
        st32 $a0, $m13, $m15, 1
        { atom $m1, $a0 ; setzi $a0, 1 }
        { st32 $m1, $m13, $m15, 2 ; or $a1, $a0, $a15 }
        { ld32 $a0, $m13, $m15, 0 ; or $a2, $a0, $a15 }
        st32 $a2, $m13, $m15, 3
        st32 $a0, $m13, $m15, 4
        done:
        """,
        memory={DATA: np.zeros(5, np.uint32)},
    )
    assert result.read(DATA, 5, np.uint32).tolist() == [5, 9, 9, 1, 5]


def test_writes_to_zero_registers_are_dropped() -> None:
    result = run_workers(
        ONLY_WORKER_0
        + """
        setzi $m15, 7
        setzi $m14, 7
        setzi $m12, 7
        setzi $a15, 7
        setzi $a9, 7
        st32 $m15, $m13, $m15, 0
        st32 $a9, $m13, $m15, 1
        st64 $a14:15, $m13, $m15, 1
        st32 $m12, $m13, $m15, 4
        done:
        """,
        memory={DATA: np.full(5, 3, np.uint32)},
    )
    assert result.read(DATA, 5, np.uint32).tolist() == [0, 0, 0, 0, 0x580E0]


@pytest.mark.parametrize("count", [0, 1, 2, 500])
def test_repeat_runs_its_body_count_times(count: int) -> None:
    result = run_workers(
        ONLY_WORKER_0
        + f"""
        setzi $m1, {count}
        setzi $m2, 0
        nop
        {{ rpt $m1, 1 ; setzi $a0, 0 }}
        {{ add $m2, $m2, 1 ; fnop }}
        {{ add $m2, $m2, 2 ; fnop }}
        st32 $m2, $m13, $m15, 0
        done:
        """,
        memory={DATA: words_array(1)},
    )
    assert result.read(DATA, 1, np.uint32)[0] == 3 * count
    assert result.slots[0] == 3 + 3 + 1 + 2 * count + 1 + 1


def test_repeat_takes_its_count_from_an_immediate_or_16_bits_of_a_register() -> None:
    body = ONLY_WORKER_0 + "setzi $m2, 0\n{}\n{{ add $m2, $m2, 1 ; fnop }}\nst32 $m2, $m13, $m15, 0\ndone:\n"
    immediate = run_workers(body.format("nop\nrpt 7, 0"), memory={DATA: words_array(0)})
    assert immediate.read(DATA, 1, np.uint32)[0] == 7
    register = "setzi $m3, 0x50003\n{ nop ; fnop }\n{ rpt $m3, 0 ; fnop }"
    program = ONLY_WORKER_0 + f"{register}\n{{ add $m2, $m2, 1 ; fnop }}\nst32 $m2, $m13, $m15, 0\ndone:\n"
    assert run_workers(program, memory={DATA: words_array(0)}).read(DATA, 1, np.uint32)[0] == 3


def test_a_repeat_body_takes_only_bundles_without_control_or_system_instructions() -> None:
    # The assembler refuses such bodies, so the words are made by hand: rpt 2, 0 and a branch in a bundle.
    for words in ([0x40000200, 0x9AD00000 | 0x80000000], [0x40000200, 0x19E00000]):
        tile = tile_of(f"{WORKERS}nop\n", {2: DATA})
        entry = tile.pc + 16
        tile.write(entry + 4, words_array(*words).tobytes())
        stop = tile.run()
        assert stop.kind is StopKind.EXCEPTION and stop.context == 1


def test_workers_run_in_lock_step() -> None:
    """Worker 0 reads what worker 1 stored a slot earlier, and not what it stores a slot later."""
    body = """
        get $m0, $WSR
        and $m0, $m0, 7
        brnz $m0, 1f
        nop
        ld32 $m1, $m13, $m15, 0
        nop
        ld32 $m2, $m13, $m15, 0
        st32 $m1, $m13, $m15, 1
        st32 $m2, $m13, $m15, 2
        bri done
    1:  cmpeq $m0, $m0, 1
        brz $m0, done
        setzi $m3, 11
        st32 $m3, $m13, $m15, 0
        setzi $m3, 22
        st32 $m3, $m13, $m15, 0
        done:
    """
    result = run_workers(body, memory={DATA: words_array(99, 0, 0)})
    # Worker 1 stores in its turns 7 and 9. Worker 0 reads in its turns 5 and 7, both just before.
    assert result.read(DATA, 3, np.uint32).tolist() == [22, 99, 99]
    delayed = body.replace("nop\n", "nop\nnop\n", 1).replace("nop\n        ld32 $m2", "nop\nnop\n ld32 $m2")
    later = run_workers(delayed, memory={DATA: words_array(99, 0, 0)})
    assert later.read(DATA, 3, np.uint32).tolist() == [22, 99, 11]


def test_stores_are_seen_by_every_later_slot_of_the_same_rotation() -> None:
    body = """
        get $m0, $WSR
        and $m0, $m0, 7
        st32 $m0, $m13, $m15, 0
        ld32 $m1, $m13, $m15, 0
        shl $m2, $m0, 2
        add $m2, $m2, $m13
        st32 $m1, $m2, $m15, 1
    """
    result = run_workers(body, memory={DATA: np.zeros(7, np.uint32)})
    assert result.read(DATA, 7, np.uint32)[1:].tolist() == [5] * 6


def test_registers_accumulators_and_generator_survive_between_launches() -> None:
    body = """
    setzi $m0, first
    setzi $m1, second
    runall $m0, $m2, 0
    sync 2
    runall $m1, $m2, 3
    sync 2
    br $m10
.align 8
first:
    setzi $m5, 77
    setzi $a3, 88
    setzi $a0, 42
    uput $PRNG_SEED, $a0
    setzi $a1, 0x3c00
    f16v2cmac $a1, $a1
    exitz $m15
.align 8
second:
    st32 $m5, $m13, $m15, 0
    st32 $a3, $m13, $m15, 1
    f32v2gina $a4:5, $a14:15, 0
    st32 $a4, $m13, $m15, 2
    exitz $m15
"""
    result = run(body, {2: DATA}, {DATA: np.zeros(18, np.uint32)})
    assert result.read(DATA, (6, 3), np.uint32).tolist() == [[77, 88, 0x3F800000]] * 6
    assert [result.tile.csr(0x103, context) for context in range(1, 7)] == [42] * 6


def test_workers_start_with_the_supervisors_floating_point_control_and_clean_status() -> None:
    body = (
        "setzi $m1, 0x80000\nput $FP_ICTL, $m1\n"
        + """
    setzi $m0, worker
    runall $m0, $m2, 0
    sync 2
    br $m10
.align 8
worker:
    uget $a0, $FP_CTL
    uget $a1, $FP_STS
    st32 $a0, $m13, $m15, 0
    st32 $a1, $m13, $m15, 1
    exitz $m15
"""
    )
    result = run(body, {2: DATA}, {DATA: words_array(1, 1)})
    assert result.read(DATA, 2, np.uint32).tolist() == [0x80000, 0]


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        ("exitz $m15", True),
        ("exitnz $m15", False),
        ("exitpos $m15", True),
        ("exitneg $m15", False),
        ("exitz $m5", False),
        ("exitnz $m5", False),
    ],
)
def test_local_consensus_is_the_and_of_the_workers(verdict: str, expected: bool) -> None:
    """$m5 is the worker's number, so one of six disagrees."""
    body = f"""
    setzi $m1, 2
    put $CR, $m1
    setzi $m0, worker
    runall $m0, $m2, 0
    sync 2
    get $m3, $SSR
    br $m10
.align 8
worker:
    get $m5, $WSR
    and $m5, $m5, 7
    {verdict}
"""
    result = run(body, {2: DATA})
    assert result.tile.consensus is expected
    assert result.tile.m[0, 3] & 1 == expected


def test_vertex_base_steps_by_the_stride() -> None:
    body = """
    setzi $m0, worker
    runall $m0, $m2, 2
    sync 2
    br $m10
.align 8
worker:
    st32 $m13, $m13, $m15, 0
    st32 $m12, $m13, $m15, 1
    exitz $m15
"""
    result = run(body, {2: DATA}, {DATA: np.zeros(12, np.uint32)})
    expected = [[DATA + 8 * worker, 0x580E0 + 0x100 * worker] for worker in range(6)]
    assert result.read(DATA, (6, 2), np.uint32).tolist() == expected


def test_a_matrix_product_on_the_tile() -> None:
    """One 16 x 16 panel: six workers, one row each, weights by 128-bit loads in natural column order."""
    rng = np.random.default_rng(1)
    a = rng.integers(-8, 9, (6, 16)).astype(np.float16)
    b = rng.integers(-8, 9, (16, 16)).astype(np.float16)
    loads = []
    for column in range(16):
        unit = column // 4 * 2 + column % 2 + (8 if column % 4 >= 2 else 0)
        loads += [f"ld128putcs {4 * unit}", f"ld128putcs {4 * unit + 2}"]
    phases = [
        f"{{ ld64step $a0:1, $m15, $m4+=, 1 ; f16v4hihov4amp $a2:3, $a0:1, $azeros, {phase} }}"
        for phase in range(4)
    ]
    drain = [
        f"f16v4hihov4amp $a2:3, $azeros, $azeros, {phase}\nst64step $a2:3, $m15, $m5+=, 1"
        for phase in range(4)
    ]
    body = f"""
    setzi $m1, {DATA1}
    put $CCCSLOAD, $m1
    {chr(10).join(loads)}
    setzi $m0, worker
    runall $m0, $m2, 0
    sync 2
    br $m10
.align 8
worker:
    get $m3, $WSR
    and $m3, $m3, 7
    shl $m3, $m3, 5
    setzi $a0, 8
    uput $FP_CLR, $a0
    add $m4, $m2, $m3
    setzi $m4, {DATA}
    add $m4, $m4, $m3
    setzi $m5, {DATA + 0x1000}
    add $m5, $m5, $m3
    ld64step $a0:1, $m15, $m4+=, 1
    {chr(10).join(phases)}
    {chr(10).join(drain)}
    exitz $m15
"""
    left = np.append(a, np.zeros(16, np.float16))
    result = run(body, {2: DATA}, {DATA1: np.ascontiguousarray(b.T), DATA: left})
    found = result.read(DATA + 0x1000, (6, 16), np.float16)
    np.testing.assert_array_equal(found, (a.astype(np.float64) @ b).astype(np.float16))


def test_floating_point_flags_trap_only_when_enabled() -> None:
    body = "setzi $a0, 0\nf32oox $a1, $a0"
    assert run_workers(body).tile.csr(0x100, 1) == 2
    stop = worker_stop(body, csrs={0x20: 2})
    assert (stop.kind, stop.exception, stop.cause) == (StopKind.EXCEPTION, ExceptionKind.FLOATING_POINT, 5)


def test_stochastic_rounding_draws_once_per_instruction() -> None:
    body = "f16v4add $a0:1, $a2:3, $a4:5\nexitz $m15"
    plain, stochastic = run_workers(body), run_workers(body, csrs={0x20: 1 << 19})
    assert plain.tile.csr(0x103, 1) == 0
    seeded = "setzi $a0, 1\nuput $PRNG_SEED, $a0\n"
    once = run_workers(seeded + "urand64 $a6:7").tile
    rounded = run_workers(seeded + body, csrs={0x20: 1 << 19}).tile
    assert [once.csr(number, 1) for number in range(0x103, 0x107)] == [
        rounded.csr(number, 1) for number in range(0x103, 0x107)
    ]
    assert stochastic.cycles == plain.cycles


def test_flags_without_a_known_meaning_are_named() -> None:
    for body in (
        "f16v4hihov4amp $a0:1, $a2:3, $a4:5, 63",
        "f32sisoslic $a0:1, $a2, $a4:5, 4",
        "f32v2gina $a0:1, $a2:3, 4",
    ):
        stop = worker_stop(body)
        assert stop.kind is StopKind.UNSUPPORTED and stop.category == "fact unknown"
        assert body.split()[0] in stop.text and "no public source" in stop.text
