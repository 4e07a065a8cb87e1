"""Random exchange graphs: asked, walked item by item and run on simulated tiles, the memories are the same.

More seeds:  EXCHANGE_SEEDS=5000 pytest tests/sim/fabric   (150 by default).
"""

from __future__ import annotations

import os

import pytest
from phase_on_tiles import ROW, agree
from random_graphs import random_graph

from tilewright.ipu21.fabric.schedule import schedule
from tilewright.ipu21.fabric.verify import verify

pytestmark = pytest.mark.sim

BATCH = 10
SEEDS = int(os.environ.get("EXCHANGE_SEEDS", "150"))


@pytest.mark.parametrize("batch", range(-(-SEEDS // BATCH)))
def test_random_graphs(batch: int) -> None:
    wide = 0
    for seed in range(BATCH * batch, BATCH * (batch + 1)):
        phase = random_graph(seed, big=seed % BATCH == 0)
        plan = schedule(*phase)
        found = verify(plan.rows, dict.fromkeys(plan.rows, ROW), *phase)
        assert found == [], f"seed {seed}: {found[0]}"
        assert plan.horizon >= plan.bound, f"seed {seed}"
        # The walk is slow where thousands of words move.
        agree(plan.rows, phase, walk=seed % BATCH != 0, seed=seed)
        wide += bool(plan.messages.wide.any())
    assert wide, "no graph of the batch used 64-bit items"
