"""Which rows share a place when there is no room for all: most bytes for the cycles they cost first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from .shared_rows import SharedRow


def choose_shared(
    offers: Sequence[Sequence[SharedRow]], over: Sequence[int], times: Mapping[int, int]
) -> list[list[SharedRow]]:
    """Per class, the shared rows that bring its rows into their room, or all if that is not enough.

    A phase waits for the last tile, so what one class has lost in a step costs another nothing.

    Args:
        offers: per class, what can be shared. over: per class, bytes of rows it has too many.
        times: how often each step runs.
    """
    last = max((step for each in offers for one in each for step in one.uses), default=-1)
    lost = np.zeros(last + 1, np.int64)
    runs = np.array([times.get(step, 1) for step in range(last + 1)], np.int64)
    chosen: list[list[SharedRow]] = [[] for _ in offers]
    for index in sorted(range(len(offers)), key=lambda index: (-over[index], index)):
        left = over[index]
        if left <= 0:
            break
        open_ = list(offers[index])
        while left > 0 and open_:
            scores = []
            for offer in open_:
                steps = list(offer.uses)
                more = int(np.maximum(offer.cycles - lost[steps], 0) @ runs[steps])
                scores.append(min(offer.saved, left) / max(more, 0.5))
            offer = open_.pop(int(np.argmax(scores)))
            steps = list(offer.uses)
            lost[steps] = np.maximum(lost[steps], offer.cycles)
            left -= offer.freed
            chosen[index].append(offer)
    return chosen
