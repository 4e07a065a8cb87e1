"""Loads, stores, pacing and their faults."""

from __future__ import annotations

import numpy as np
import pytest
from tile_programs import DATA, DATA1, run, run_workers, stop_of, tile_of, words_array, worker_stop

from tilewright.ipu21.simulator.checks import Checks
from tilewright.ipu21.simulator.stops import ExceptionKind, Stop, StopKind

pytestmark = pytest.mark.sim

BYTES = np.arange(0x80, 0x80 + 64, dtype=np.uint8)
ONLY = "get $m0, $WSR\nand $m0, $m0, 7\nbrnz $m0, done\n"
OUT = DATA + 0x4000


def worker(body: str, words: int, memory: dict[int, np.ndarray] | None = None) -> list[int]:
    """Words at OUT after worker 0 ran a body with $m1 = DATA, $m2 = OUT."""
    program = f"{ONLY}setzi $m1, {DATA}\nsetzi $m2, {OUT}\n{body}\ndone:\n"
    result = run_workers(program, memory={DATA: BYTES, OUT: np.zeros(64, np.uint8)} | (memory or {}))
    return [int(word) for word in result.read(OUT, words, np.uint32)]


def little(*values: int) -> int:
    return int.from_bytes(bytes(values), "little")


def test_narrow_loads_extend_or_repeat() -> None:
    words = worker(
        """
        ldz8 $m3, $m1, $m15, 1
        st32 $m3, $m2, $m15, 0
        lds8 $m3, $m1, $m15, 1
        st32 $m3, $m2, $m15, 1
        ldz16 $m3, $m1, $m15, 1
        st32 $m3, $m2, $m15, 2
        lds16 $m3, $m1, $m15, 1
        st32 $m3, $m2, $m15, 3
        ldb16 $a0, $m1, $m15, 1
        st32 $a0, $m2, $m15, 4
        ldb8 $a0, $m1, $m15, 1
        st32 $a0, $m2, $m15, 5
        """,
        6,
    )
    half = little(0x82, 0x83)
    assert words == [0x81, 0xFFFFFF81, half, 0xFFFF0000 | half, half * 0x10001, 0x81818181]


def test_offsets_and_strides_count_accesses() -> None:
    words = worker(
        """
        setzi $m4, 2
        ld32 $m3, $m1, $m15, $m4
        st32 $m3, $m2, $m15, 0
        setzi $m5, 0
        ld32step $m3, $m1, $m5+=, 3
        ld32step $m6, $m1, $m5+=, -1
        st32 $m6, $m2, $m15, 1
        st32 $m5, $m2, $m15, 2
        setzi $m7, 4
        ldz16step $m3, $m1, $m7+=, $m4
        st32 $m7, $m2, $m15, 3
        setzi $m8, 20
        st32step $m3, $m2, $m8+=, 2
        st32 $m8, $m2, $m15, 4
        setzi $m9, 7
        stm32 $m9, $m2, $m9
        """,
        8,
    )
    at = [little(*BYTES[index : index + 4]) for index in range(0, 64, 4)]
    assert words == [at[2], at[3], 8, 8, 28, at[1] & 0xFFFF, 0, 7]


def test_pairs_and_quads() -> None:
    memory = {DATA1: BYTES}
    words = worker(
        f"setzi $m3, {DATA1}\nld128 $a0:3, $m3, $m15, 1\nst64 $a0:1, $m2, $m15, 0\nst64 $a2:3, $m2, $m15, 1",
        4,
        memory,
    )
    assert words == [little(*BYTES[index : index + 4]) for index in range(16, 32, 4)]


PACE = """
    setzi $m4, {a0}
    setzi $m5, {a1}
    setzi $m6, {a2}
    tapack $m8:9, $m4, $m5, $m6
    setzi $m7, {strides}
    {body}
    st32 $m8, $m2, $m15, 0
    st32 $m9, $m2, $m15, 1
    st64 $a0:1, $m2, $m15, 1
    st64 $a2:3, $m2, $m15, 2
"""


def paced(body: str, a0: int, a1: int, a2: int, strides: int) -> tuple[list[int], list[int]]:
    """The three addresses afterwards, and $a0..$a3."""
    elements = {DATA: BYTES, DATA + 0x8000: BYTES + 64, DATA + 0xC000: np.zeros(64, np.uint8)}
    program = PACE.format(body=body, a0=a0, a1=a1, a2=a2, strides=strides)
    low, high, *values = worker(program, 6, elements)
    return [low & 0x1FFFFF, high & 0x1FFFFF, low >> 21 | (high >> 21) << 11], values


def test_paced_loads_and_stores() -> None:
    a0, a1, a2 = DATA, DATA + 0x8000, DATA + 0xC000
    strides = 3 | (-1 & 0x3FF) << 10
    expected0 = [little(*BYTES[:4]), little(*BYTES[4:8])]
    expected1 = [word + 0x40404040 for word in expected0]
    addresses, values = paced("ld2x64pace $a0:1, $a2:3, $m8:9+=, $m7, 0b0100", a0, a1, a2, strides)
    assert addresses == [a0 + 8, a1 + 24, a2] and values == expected0 + expected1
    addresses, values = paced("ldst64pace $a0:1, $a0:1, $m8:9+=, $m7, 0b1001", a0, a1, a2, strides)
    assert addresses == [a0 + 24, a1, a2 - 8] and values[:2] == expected0
    addresses, values = paced("ld2xst64pace $a0:3, $a4:5, $m8:9+=, $m7, 0b110100", a0, a1, a2, strides)
    assert addresses == [a0 + 8, a1 + 24, a2] and values == expected0 + expected1
    addresses, _ = paced("st64pace $a4:5, $m8:9+=, $m7, 0b10", a0, a1, a2, strides)
    assert addresses == [a0, a1, a2 - 8]


def test_sparse_delta_loads() -> None:
    deltas = np.array([8, 20, 0, 0], dtype=np.uint16)
    words = worker(
        f"""
        setzi $m3, {DATA + 0x8000}
        setzi $m4, 4
        ldd16a32 $a0, $m3++, $m1, $m4@
        ldd16a32 $a1, $m3++, $m1, $m4@
        ldd16b16 $a2, $m3++, $m1, $m4@
        st32 $a0, $m2, $m15, 0
        st32 $a1, $m2, $m15, 1
        st32 $a2, $m2, $m15, 2
        st32 $m3, $m2, $m15, 3
        """,
        4,
        {DATA + 0x8000: deltas},
    )
    half = little(*BYTES[20:22])
    assert words == [little(*BYTES[4:8]), little(*BYTES[8:12]), half * 0x10001, DATA + 0x8006]


def faults(body: str, **options: object) -> Stop:
    return worker_stop(ONLY + f"setzi $m1, {DATA}\nsetzi $m2, {DATA1}\n{body}\ndone:\n", **options)


@pytest.mark.parametrize(
    ("body", "kind", "address"),
    [
        ("ld32 $m3, $m15, $m15, 0", ExceptionKind.ADDRESS_RANGE, 0),
        ("setzi $m3, 0xe8000\nld32 $m3, $m3, $m15, 0", ExceptionKind.ADDRESS_RANGE, 0xE8000),
        ("st64 $a0:1, $m15, $m15, 1", ExceptionKind.ADDRESS_RANGE, 8),
        ("add $m1, $m1, 2\nld32 $m3, $m1, $m15, 0", ExceptionKind.ADDRESS_ALIGNMENT, DATA + 2),
        ("add $m1, $m1, 1\nldz16 $m3, $m1, $m15, 0", ExceptionKind.ADDRESS_ALIGNMENT, DATA + 1),
        ("add $m1, $m1, 4\nld64 $a0:1, $m1, $m15, 0", ExceptionKind.ADDRESS_ALIGNMENT, DATA + 4),
        ("ld128 $a0:3, $m1, $m15, 0", ExceptionKind.ADDRESS_REGION, DATA),
        ("add $m2, $m2, 8\nld128 $a0:3, $m2, $m15, 0", ExceptionKind.ADDRESS_ALIGNMENT, DATA1 + 8),
    ],
)
def test_bad_addresses(body: str, kind: ExceptionKind, address: int) -> None:
    stop = faults(body)
    assert (stop.kind, stop.exception, stop.address, stop.context) == (StopKind.EXCEPTION, kind, address, 1)
    assert f"{address:#x}" in stop.text and "worker 0" in stop.text


def test_discarded_loads_do_not_fault() -> None:
    assert run_workers("ld32step $m15, $m15, $m1+=, 5\nld64 $a14:15, $m15, $m15, 1").cycles > 0


@pytest.mark.parametrize(
    ("a0", "a1", "conflict"),
    [
        (DATA, DATA + 0x1000, True),
        (DATA, DATA + 0x4000, False),
        (DATA1, DATA1 + 8, False),
        (DATA1, DATA1 + 16, True),
        (DATA1, DATA1 + 0x8000, False),
        (DATA1 - 8, DATA1 + 8, False),
    ],
)
def test_two_accesses_of_one_instruction_need_different_elements(a0: int, a1: int, conflict: bool) -> None:
    body = f"setzi $m4, {a0}\nsetzi $m5, {a1}\nld2x64pace $a0:1, $a2:3, $m4:5+=, $m15, 0"
    if conflict:
        stop = faults(body)
        assert (stop.exception, stop.address, stop.cause) == (ExceptionKind.CONFLICT, a1, 6)
        unchecked = Checks(conflict=False)
        assert run_workers(body, checks=unchecked).cycles > 0
    else:
        assert run_workers(body).cycles > 0


def test_poison_finds_reads_of_unwritten_bytes_only_when_asked() -> None:
    body = f"setzi $m1, {DATA}\nld64 $a0:1, $m1, $m15, 0"
    assert run_workers(body).cycles > 0
    watching = Checks(poison=True)
    stop = worker_stop(body, checks=watching)
    assert (stop.exception, stop.address) == (ExceptionKind.POISON, DATA)
    partly = worker_stop(body, memory={DATA: BYTES[:7]}, checks=watching)
    assert partly.exception is ExceptionKind.POISON
    assert run_workers(body, memory={DATA: BYTES[:8]}, checks=watching).cycles > 0
    stored = f"setzi $m1, {DATA}\nst32 $m1, $m1, $m15, 0\nst32 $m1, $m1, $m15, 1\nld64 $a0:1, $m1, $m15, 0"
    assert run_workers(stored, checks=watching).cycles > 0


def test_code_can_be_patched_by_stores_and_from_outside() -> None:
    body = """
    setzi $m3, 0x19
    shl $m3, $m3, 24
    add $m3, $m3, 5
    setzi $m4, patched
    st32 $m3, $m4, $m15, 0
patched:
    setzi $m0, 1
    br $m10
"""
    tile = tile_of("1: bri 1b")
    tile.run(budget=10)
    result = run(body)
    assert result.tile.m[0, 0] == 5
    again = tile_of("patched: setzi $m0, 1\nbr $m10")
    entry = again.pc
    again.run()
    again.write(entry, (0x19000007).to_bytes(4, "little"))
    again.pc = entry
    again.run()
    assert again.m[0, 0] == 7


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("setzi $m0, 0x80000\nbr $m0", ExceptionKind.INVALID_PC),
        ("add $m0, $m10, 2\nbr $m0", ExceptionKind.INVALID_PC),
        (".long 0x53000000", ExceptionKind.INVALID_INSTRUCTION),
        ("{ nop ; fnop }", ExceptionKind.INVALID_INSTRUCTION),
        ("setzi $a0, 1", ExceptionKind.INVALID_INSTRUCTION),
        ("get $m0, 0xf0", ExceptionKind.UNKNOWN_CSR),
        ("trap 0", ExceptionKind.BREAKPOINT0),
        ("trap 1", ExceptionKind.BREAKPOINT1),
        ("ld64putcs 64", ExceptionKind.INVALID_OPERAND),
        ("sync 9", ExceptionKind.SYNC_ZONE),
        ("runall $m15, $m15, 0", ExceptionKind.INVALID_PC),
    ],
)
def test_supervisor_exceptions(body: str, kind: ExceptionKind) -> None:
    tile = tile_of(f"{body}\nbr $m10\n")
    stop = stop_of(tile)
    assert (stop.kind, stop.exception, stop.context) == (StopKind.EXCEPTION, kind, 0)
    assert "supervisor" in stop.text


def test_a_launch_while_workers_run_is_an_exception() -> None:
    body = "setzi $m0, w\nrunall $m0, $m2, 0\nrunall $m0, $m2, 0\nsync 2\nbr $m10\n.align 8\nw: exitz $m15"
    assert stop_of(tile_of(body, {2: DATA})).exception is ExceptionKind.WORKER_ACTIVE


def test_endless_loops_use_up_the_budget() -> None:
    tile = tile_of("1: bri 1b")
    stop = tile.run(budget=1000)
    assert stop.kind is StopKind.BUDGET
    assert tile.counters[0] == 1000
    loop = "setzi $m0, w\nrunall $m0, $m2, 0\nsync 2\nbr $m10\n.align 8\nw: bri w"
    endless = tile_of(loop, {2: DATA})
    assert endless.run(budget=1000).kind is StopKind.BUDGET
    assert endless.run(budget=1000).kind is StopKind.BUDGET


def test_dense_and_sparse_load() -> None:
    words = worker(
        f"""
        setzi $m3, {DATA + 0x8000}
        setzi $m4, 0x50010
        setzi $a0, 99
        ld64a32 $a0:3, $m3++, $m1, $m4
        st64 $a0:1, $m2, $m15, 0
        st64 $a2:3, $m2, $m15, 1
        st32 $m3, $m2, $m15, 4
        st32 $m4, $m2, $m15, 5
        """,
        6,
        {DATA + 0x8000: words_array(7, 8)},
    )
    # Only the low half of the delta register counts, and it stays.
    assert words == [99, little(*BYTES[16:20]), 7, 8, DATA + 0x8008, 0x50010]


def test_two_half_loads_with_mini_deltas() -> None:
    words = worker(
        """
        setzi $m3, 4
        setzi $m4, 10
        shl $m4, $m4, 16
        add $m3, $m3, $m4
        setzi $m5, 0x23
        ldb16b16 $a0:1, $m1, $m3++, $m5>>
        ldb16b16 $a2:3, $m1, $m3++, $m5>>
        st64 $a0:1, $m2, $m15, 0
        st64 $a2:3, $m2, $m15, 1
        st32 $m3, $m2, $m15, 4
        st32 $m5, $m2, $m15, 5
        """,
        6,
    )
    halves = [little(*BYTES[at : at + 2]) * 0x10001 for at in (4, 10, 6, 16)]
    assert words == [*halves, 8 | 20 << 16, 0]
