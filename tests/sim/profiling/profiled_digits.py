"""The digits network on a few tiles, run twice in one session; made once per setting and process."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tilewright.compiler.pipeline import compile_graph
from tilewright.models import digits, digits_reference
from tilewright.package import Package
from tilewright.runtime import RunRecord, Session, open_device

IMAGES = 48
TILES = 16


@dataclass(frozen=True, eq=False)
class Recorded:
    package: Package
    records: list[RunRecord]
    logits: NDArray[np.generic]


@cache
def package() -> Package:
    generator = np.random.default_rng(5)

    def draw(*shape: int) -> NDArray[np.float32]:
        return generator.normal(0, 0.1, shape).astype(np.float32)

    shapes = list(pairwise(digits_reference.LAYERS))
    parameters = digits_reference.Parameters(
        [draw(*shape) for shape in shapes], [draw(columns) for _, columns in shapes]
    )
    return compile_graph(digits.network(parameters, batch=IMAGES).graph(), tiles=TILES)


@cache
def recorded_runs(activity: bool) -> Recorded:
    x = np.random.default_rng(6).random((IMAGES, 64), np.float32)
    records = []
    with open_device("sim") as device, Session(device, package(), activity=activity) as session:
        for _ in range(2):
            logits = session.run({"x": x})["logits"]
            assert session.last_run is not None
            records.append(session.last_run)
    return Recorded(package(), records, logits)
