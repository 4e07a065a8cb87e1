"""Small profiles whose every number is known, and large or hostile ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tilewright.ipu21.machine.topology import TILES
from tilewright.profiling.divide import divide
from tilewright.profiling.records import Profile, Run, Step
from tilewright.runtime import INTERVAL
from tilewright.runtime import device as d

HOSTILE = [
    "<img src=x onerror=document.title='owned'>",
    "</script><script>document.title='owned'</script>",
    "\"'><svg onload=document.title='owned'>",
    "long" * 500,
    "{{7*7}} ${document.title='owned'} &lt;b&gt; מימין لليسار",
]
STEPS = [
    Step("input", "host", "", "host"),
    Step("mm.receive", "exchange", "mm", "exchange", (("expression", "matmul(%x, %w)"),)),
    Step(
        "mm.multiply",
        "compute",
        "mm",
        "gemm_f16",
        (("expression", "matmul(%x, %w)"), ("multiply-adds", "4,992")),
    ),
    Step("gelu.gelu", "compute", "gelu", "gelu_f16"),
    Step("output", "host", "", "host"),
]


def sample_run(origin: int = 1000, tiles: tuple[int, ...] = (0, 5, 70)) -> Run:
    """One exchange and two compute steps on three tiles; tile 5 is the last to be ready, tile 70 to end.

    Relative to `origin`: tiles begin the exchange at 10, 16 and 13 and wait in its barrier from 15, 40 and 20
    until 100; the row lasts until 130. Tile 0 sends in 105..120, tile 5 receives 110..125, tile 70 both. They
    compute until 180, 170 and 210, workers in 140..170, 140..160 and 140..205, then gelu 20 cycles more.
    """
    steps, activity = [], []
    for place, tile in enumerate(tiles):
        begin, ready, end, worked = (10, 16, 13)[place], (15, 40, 20)[place], (180, 170, 210)[place], 0
        worked = (170, 160, 205)[place]
        times = (0, begin, 132, end, end + 20, end + 30)
        steps += [(tile, 0, step, times[step], times[step + 1]) for step in range(5)]
        activity += [(d.BARRIER_WAIT, tile, 0, ready, 100), (d.ROW, tile, 0, 100, 130)]
        if place in (0, 2):
            activity.append((d.SENDING, tile, 0, 105, 120))
        if place in (1, 2):
            activity.append((d.RECEIVING, tile, 0, 110, 125))
        activity += [(d.WORKER, tile, worker, 140, worked) for worker in range(1, 7)]
    activity.append((d.BARRIER, tiles[1], 3, 40, 100))
    intervals = np.array(steps, INTERVAL)
    rows = np.array(activity, d.ACTIVITY)
    for table in (intervals, rows):
        table["begin"] += origin
        table["end"] += origin
    divided, barriers = divide(intervals, rows, [step.kind for step in STEPS])
    # Tile 70: from 13 to 230. Tile 0: from 10 to 200. Tile 5: from 16 to 190.
    return Run(217, divided, barriers)


def sample_profile(runs: int = 2, steps: list[Step] | None = None) -> Profile:
    return Profile(
        digest="5a" * 32,
        package="sample.ipuexe",
        compiler="tilewright 0.1.0",
        device="sim",
        clock_hz=1_500_000_000,
        exact=True,
        steps=steps or STEPS,
        runs=[sample_run(1000 + 1000 * number) for number in range(runs)],
    )


def hostile_profile() -> Profile:
    """The sample with markup, templates, long and right-to-left text for every name."""
    steps = [
        Step(name, step.kind, name, name, ((name, name),)) for name, step in zip(HOSTILE, STEPS, strict=True)
    ]
    plain = sample_profile(2, steps)
    return Profile(plain.digest, HOSTILE[0], HOSTILE[1], HOSTILE[2], plain.clock_hz, True, steps, plain.runs)


def large_profile(blocks: int) -> Profile:
    """Every tile of the chip through `blocks` times the sample's device steps, workers included."""
    one = sample_run(0, (0, 5, 70)).intervals
    host = np.isin(one["step"], (0, 4))
    parts, steps = [], [STEPS[0]]
    bars = []
    for block in range(blocks):
        steps += [Step(f"block_{block}.{s.name}", s.kind, f"block_{block}", s.kernel) for s in STEPS[1:4]]
        rows = one[~host].copy()
        rows["step"] += 3 * block
        rows["begin"] += 300 * block
        rows["end"] += 300 * block
        parts.append(rows)
        barrier = sample_run(300 * block).barriers
        bars.append(barrier)
    steps.append(STEPS[4])
    template = np.concatenate(parts)
    many = np.tile(template, TILES // 3 + 1)
    many["tile"] = np.repeat(np.arange(TILES // 3 + 1) * 3, len(template)) + _place(many["tile"])
    many = many[many["tile"] < TILES]
    many = many[np.lexsort((many["begin"], many["context"], many["tile"]))]
    cycles = 300 * (blocks - 1) + 217
    run = Run(cycles, many, np.concatenate(bars))
    plain = sample_profile(1)
    return Profile(plain.digest, "large", plain.compiler, "sim", plain.clock_hz, True, steps, [run])


def looped_profile(times: int) -> Profile:
    """The sample's device steps `times` times in one run, as by a loop in the program."""
    one = sample_run(0)
    host = np.isin(one.intervals["step"], (0, 4))
    parts, bars = [], []
    for time in range(times):
        rows = one.intervals[~host].copy()
        barriers = one.barriers.copy()
        rows["instance"] = time
        for name, table in (("begin", rows), ("end", rows), ("last", barriers), ("release", barriers)):
            table[name] += 300 * time
        parts.append(rows)
        bars.append(barriers)
    rows = np.concatenate(parts)
    rows = rows[np.lexsort((rows["begin"], rows["context"], rows["tile"]))]
    plain = sample_profile(1)
    run = Run(300 * (times - 1) + 217, rows, np.concatenate(bars))
    return Profile(plain.digest, "looped", plain.compiler, "sim", plain.clock_hz, True, plain.steps, [run])


def _place(tile: NDArray[np.uint16]) -> NDArray[np.uint16]:
    return np.searchsorted(np.array([0, 5, 70]), tile).astype(np.uint16)
