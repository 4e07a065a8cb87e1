"""The published float16 GEMM panel as a program of our own: the anchor of the timing model.

Instruction by instruction the published kernel takes 66 supervisor cycles until its `runall` issues, six
workers of 20 + 4 n slots (n rows each), and 21 supervisor cycles after the wait; hardware shows
235 + 4 * rows cycles per panel (derived from a published fit).
"""

from __future__ import annotations

from tilewright.ipu21.machine.memory import IMAGE_BASE, REGION1_BASE
from tilewright.ipu21.machine.timing import SUPERVISOR_LATENCY
from tilewright.ipu21.simulator.single import run_function
from tilewright.ipu21.toolchain import assemble, link

SUPERVISOR_BEFORE, WORKER_FIXED, SUPERVISOR_AFTER = 66, 20, 21
_WEIGHT_LOADS = 32


def panel_source(rows: int) -> str:
    """Assembly of one panel over `rows` rows, a multiple of 6."""
    # The pointer is ready six cycles after its setzi, and $CCCSLOAD six after the put.
    busy = ["nop"] * 5 + ["put $CCCSLOAD, $m1"] + [f"ld128putcs {2 * i}" for i in range(_WEIGHT_LOADS)]
    waited = SUPERVISOR_LATENCY - 1
    busy += ["nop"] * (SUPERVISOR_BEFORE - 2 - len(busy) - waited)
    after = ["nop"] * (SUPERVISOR_AFTER - 6)
    fixed = [f"setzi $m4, {rows // 6}", "{ nop ; fnop }"] + ["nop"] * (WORKER_FIXED - 4)
    row = [f"{{ nop ; f16v4hihov4amp $a0:1, $a2:3, $a4:5, {phase} }}" for phase in range(4)]
    lines = ["setzi $m0, worker", f"setzi $m1, {REGION1_BASE:#x}", *busy, "runall $m0, $m2, 0", "sync 2"]
    lines += [*after, "br $m10", ".align 8", "worker:", *fixed, "rpt $m4, 3", *row, "exitz $m15"]
    return "\n".join([".globl panel", "panel:", *lines, ""])


def panel_cycles(rows: int) -> int:
    """Simulated cycles of one panel."""
    image = link([assemble(panel_source(rows), filename="panel.S")], intervals=((IMAGE_BASE, 0x50000),))
    weights = {REGION1_BASE: bytes(512)}
    return run_function(image, image.symbols["panel"], {2: REGION1_BASE}, weights).cycles
