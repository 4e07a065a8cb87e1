"""Products whose weight panels lie in two arrays, in any order, and are found by a list."""

from __future__ import annotations

from typing import Any

import numpy as np
from kernel_runs import halves
from numpy.typing import NDArray

from tilewright.ipu21.kernels import KERNELS, gemm
from tilewright.ipu21.kernels.gemm_frame import ADD, ROW, ZERO
from tilewright.ipu21.kernels.gemm_source import LISTED
from tilewright.ipu21.machine.memory import REGION1_BASE

ELEMENT = 0x8000
BLOCK = 512
STANDARD = {"own": 0x70000, "others": 0x78000}
LIST, A = 0x58800, 0x5C000

Halves = NDArray[np.float16]


class ListedCase:
    """One product: its operands, where they lie, and what must come out.

    Args:
        standard: of the two arrays of panels, those that lie in region 0.
    """

    def __init__(
        self, rows: int, inner: int, columns: int, mode: str = ZERO, *, standard: tuple[str, ...] = ()
    ) -> None:
        seed = rows * 100 + inner * 10 + columns
        self.symbol = LISTED[mode]
        self.shape = {"rows": rows, "inner": inner, "columns": columns}
        self.wide = not standard
        self.a = halves(seed, inner, rows, 16)
        self.w = halves(seed + 1, columns * inner, 16, 16, scale=0.25)
        shape = {ZERO: (0,), ROW: (columns, 16), ADD: (columns, rows, 16)}[mode]
        self.start = halves(seed + 2, *shape) if mode != ZERO else None
        self.where = {"c": REGION1_BASE, "w": LIST}
        at = REGION1_BASE
        sizes = {"c": columns * rows * 32, "own": self.w.nbytes, "others": self.w.nbytes}
        for name, behind in (("c", "own"), ("own", "others"), ("others", "start")):
            at += -(-sizes[name] // ELEMENT) * ELEMENT
            self.where[behind] = at
        self.where["a"] = A if self.a.nbytes <= 0x70000 - A else self.where["start"] + sizes["c"]
        self.where |= {name: STANDARD[name] for name in standard}
        if mode == ZERO:
            del self.where["start"]
        random = np.random.default_rng(seed)
        count = len(self.w)
        self.mine = random.random(count) < 0.4
        order = random.permutation(count)
        place = np.where(self.mine, self.where["own"], self.where["others"]) + BLOCK * order
        self.list = np.append(place, [0] * gemm.LOOK_AHEAD).astype(np.uint32)
        self.panels = list(zip(place.tolist(), self.w, strict=True))

    @property
    def arguments(self) -> dict[str, int]:
        return {**self.where, **self.shape}

    @property
    def inputs(self) -> list[tuple[int, NDArray[Any]]]:
        start = [] if self.start is None else [(self.where["start"], self.start)]
        return [(self.where["a"], self.a), (LIST, self.list), *self.panels, *start]

    @property
    def expected(self) -> Halves:
        w = self.w.reshape(self.shape["columns"], self.shape["inner"], 16, 16)
        return gemm.reference(self.a, w, self.start)

    @property
    def cycles(self) -> int:
        return int(KERNELS[self.symbol].cycles(**self.shape, wide=self.wide, straight=False))
