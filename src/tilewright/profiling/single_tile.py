"""A profile of one function on one tile: what its supervisor and its workers did, cycle by cycle."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tilewright.ipu21.machine.topology import CLOCK_HZ
from tilewright.runtime import INTERVAL
from tilewright.runtime import device as runtime

from .divide import divide
from .records import Profile, Run, Step


def single_tile_profile(
    name: str,
    entry: str,
    digest: str,
    *,
    tile: int,
    begin: int,
    cycles: int,
    workers: NDArray[np.void],
    compiler: str,
) -> Profile:
    """The profile of one call.

    Args:
        name: of what was run. entry: the function. digest: SHA-256 of its code, 64 hexadecimal digits.
        tile: physical id. begin, cycles: when the call began, and how long it took.
        workers: records with `context` (1..6), `begin` and `end` for each run of a worker.
    """
    steps = np.array([(tile, runtime.SUPERVISOR, 0, begin, begin + cycles)], INTERVAL)
    activity = np.zeros(len(workers), runtime.ACTIVITY)
    activity["kind"], activity["tile"] = runtime.WORKER, tile
    activity["detail"], activity["begin"] = workers["context"], workers["begin"]
    # A worker's last turn may reach past the cycle in which the call counts as over.
    activity["end"] = np.minimum(workers["end"], begin + cycles)
    intervals, barriers = divide(steps, activity[activity["end"] > activity["begin"]], ["compute"])
    return Profile(
        digest=digest,
        package=name,
        compiler=compiler,
        device="sim",
        clock_hz=CLOCK_HZ,
        exact=True,
        steps=[Step(entry, "compute", entry, entry)],
        runs=[Run(cycles, intervals, barriers)],
    )
