"""The static runtime every tile carries: start-up in two forms, barrier follower.

Sequence of the start-up (known, as in the published runtime): leave the loader's superstep, wait for its
workers, bring the exchange and worker registers into a defined state, meet the host, go to the generated
program `tile_program`. The published runtime also writes worker CSR 7, whose meaning is open; nothing here
depends on it, so it is left out. So is its worker barrier in front of every exchange: kernels return only
when their workers have ended.
"""

from __future__ import annotations

from ..machine.topology import MUX_HOST_BASE, MUX_NEUTRAL
from .text import bundle, section, worker

WORKER_AREAS = 0x580E0
WORKER_AREA_BYTES = 0x100
STACK_TOP = WORKER_AREAS + 6 * WORKER_AREA_BYTES
"""Six worker areas, then the supervisor's initial stack pointer, 0x586e0 (known: the published layout)."""

DRAWS = 15
"""Random words drawn and dropped after seeding, so that nearby seeds diverge (known)."""

START = "_start"
START_IDLE = "_start_idle"
HOST_FOLLOWER = "host_follower"

_ARRIVE = (
    "sync 3",
    "sync 2",
    f"setzi $m0, {MUX_NEUTRAL:#x}",
    "put $INCOMING_MUX, $m0",
    "put $INCOMING_MUXPAIR, $m0",  # its value after reset is open; 0 would be a tile
    "put $OUTGOING_BASE, $mzero",
    "put $INCOMING_BASE, $mzero",
)
_MEET_HOST = (
    f"setzi $m0, {MUX_HOST_BASE:#x}",
    "put $INCOMING_MUX, $m0",
    "sync 7",
    f"setzi $m0, {MUX_NEUTRAL:#x}",
    "put $INCOMING_MUX, $m0",
    "bri tile_program",
)
_SEED_FRAME_BYTES = 32
_SEED_WORKER = (
    "get $m0, $WSR",
    "and $m0, $m0, 7",
    "ld32 $m1, $mvertex_base, $mzero, 0",
    "or $m1, $m1, $m0",
    "add $m0, $m0, 1",
    "stm32 $m1, $mvertex_base, $m0",  # the only way from $m to $a is through memory
    "ld32 $a0, $mvertex_base, $mzero, $m0",
    "uput $PRNG_SEED, $a0",
    bundle(f"rpt {DRAWS}, 0"),
    bundle("nop", "urand64 $azeros"),
    "exitz $m15",
)


def start_source() -> str:
    """Start of a tile that computes; the image's first word (a nop the loader skips) lies in front of
    `_start`.

    Floating point: round to nearest, no exceptions, no stochastic rounding, overflow saturates ($FP_ICTL =
    0); float8 formats and scale neutral. Each worker's PRNG is seeded with (tile + 1) * 8 + worker (known).
    """
    areas = [WORKER_AREAS + i * WORKER_AREA_BYTES for i in range(6)]
    lines = [
        *_ARRIVE,
        *(f"setzi $m{i}, {area:#x}" for i, area in enumerate(areas)),
        *(f"put $WORKER{i}_BASE, $m{i}" for i in range(6)),
        f"setzi $m11, {STACK_TOP:#x}",
        "put $FP_ICTL, $mzero",
        "put $FP_INFMT, $mzero",
        "put $FP_ISCL, $mzero",
        "get $m1, $TILE_ID",
        f"add $m9, $m11, -{_SEED_FRAME_BYTES}",
        "setzi $m0, .Lstart_worker",
        "add $m1, $m1, 1",
        "shl $m1, $m1, 3",
        "st32 $m1, $m9, $mzero, 0",
        "runall $m0, $m9, 0",
        "sync 2",
        *_MEET_HOST,
        *worker(".Lstart_worker", _SEED_WORKER),
    ]
    return section(START, lines, front=["nop"])


def start_idle_source() -> str:
    """Start of a tile that only keeps the barriers: it never reads its number, so all of them stay alike."""
    return section(START_IDLE, [*_ARRIVE, *_MEET_HOST], front=["nop"])


def host_follower_source() -> str:
    """Sits out the next two barriers (entry and completion of a host phase); returns by `$m10`."""
    return section(HOST_FOLLOWER, ["sans 1", "sync 1", "br $m10"])
