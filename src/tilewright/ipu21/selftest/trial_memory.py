"""What a trial does, carried out in NumPy: the judge of the device."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ..kernels import KERNELS
from .trial import Area, Call, Compute, Exchange, Trial

ELEMENTS = {"add_f16": np.float16, "copy_u64": np.uint64}
"""Type of a kernel's operands in its reference."""


class Memory:
    """The areas of all tiles as arrays [tiles, words]; it lasts from run to run as the device's does."""

    def __init__(self, trial: Trial) -> None:
        self._trial = trial
        self.contents = {
            area.name: np.zeros((len(area.tiles), area.words), np.uint32) for area in trial.areas
        }
        self._areas: dict[int, list[tuple[int, Area, int]]] = {}
        for area in sorted(trial.areas, key=lambda area: area.address):
            for row, tile in enumerate(area.tiles):
                self._areas.setdefault(tile, []).append((area.address, area, row))

    def write(self, contents: Mapping[str, NDArray[np.uint32]]) -> None:
        """Set whole areas."""
        for name, values in contents.items():
            self.contents[name][:] = values

    def words(self, tile: int, address: int, words: int) -> NDArray[np.uint32]:
        """View of words that lie in one area."""
        places = self._areas[tile]
        _, area, row = places[bisect_right(places, address, key=lambda place: place[0]) - 1]
        begin = (address - area.address) // 4
        assert begin >= 0 and begin + words <= area.words, "the trial leaves its areas"
        return self.contents[area.name][row, begin : begin + words]

    def run(self) -> dict[str, NDArray[np.uint32]]:
        """Carry out all steps; contents of the areas that the host takes."""
        for step in self._trial.steps:
            if isinstance(step, Exchange):
                self._exchange(step)
            else:
                self._compute(step)
        return {area.name: self.contents[area.name].copy() for area in self._trial.areas if area.taken}

    def _exchange(self, step: Exchange) -> None:
        flying = [self.words(m.source, m.address, m.words).copy() for m in step.messages]
        for message, values in zip(step.messages, flying, strict=True):
            for tile, address in message.receivers:
                self.words(tile, address, message.words)[:] = values

    def _compute(self, step: Compute) -> None:
        for call in step.calls:
            self._call(call)

    def _call(self, call: Call) -> None:
        """Kernels whose operands are all runs of `words` 8-byte words."""
        contract = KERNELS[call.kernel].contract
        count = call.arguments["words"]

        def operand(name: str) -> NDArray[np.uint32]:
            return self.words(call.tile, call.arguments[name], 2 * count)

        reference = KERNELS[call.kernel].reference
        inputs = [operand(item.name) for item in contract.operands if item.role == "in"]
        if inputs:
            element = ELEMENTS[call.kernel]
            result = reference(*(values.copy().view(element) for values in inputs))
        else:
            result = reference(*(call.arguments[item.name] for item in contract.scalars))
        output = next(item.name for item in contract.operands if item.role == "out")
        operand(output)[:] = np.ascontiguousarray(result).view(np.uint32).reshape(-1)
