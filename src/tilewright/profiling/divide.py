"""One run's steps, divided by what the tiles did inside them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import ProfileError
from tilewright.runtime import device

from .layers import CYCLE_BITS, Layer, moments, union
from .records import (
    BARRIER,
    BOTH,
    COMPUTE,
    CONTROL,
    COPY,
    EXCHANGE,
    HOST,
    IDLE,
    INTERVAL,
    RECEIVE,
    ROW_IDLE,
    SEND,
    SUPERVISOR,
    SYNCHRONISATION,
)

_STEP_KINDS = {"host": HOST, "exchange": EXCHANGE, "compute": COMPUTE, "copy": COPY}
_WAITS = (device.BARRIER_WAIT, device.HOST_WAIT, device.WORDS_WAIT)


def divide(
    intervals: NDArray[np.void], activity: NDArray[np.void] | None, kinds: Sequence[str]
) -> tuple[NDArray[np.void], NDArray[np.void]]:
    """INTERVAL and BARRIER rows of one run.

    Args:
        intervals: the device's `INTERVAL` rows.
        activity: the device's `ACTIVITY` rows; without them each step is one interval of its own kind.
        kinds: kind of each profile step.

    Raises ProfileError for times or steps out of range.
    """
    steps = intervals[(intervals["context"] == SUPERVISOR) & (intervals["end"] >= intervals["begin"])]
    if activity is not None:
        steps = np.concatenate([_resumed(steps, activity), steps])
    if not len(steps):
        return np.zeros(0, INTERVAL), np.zeros(0, BARRIER)
    if int(steps["step"].max()) >= len(kinds):
        raise ProfileError(f"an interval of step {steps['step'].max()} of only {len(kinds)}")
    steps = steps[np.lexsort((steps["begin"], steps["tile"]))]
    origin = int(steps["begin"].min())
    if int(steps["end"].max()) - origin >= 1 << CYCLE_BITS:
        raise ProfileError(f"a run longer than 2^{CYCLE_BITS} cycles")
    kind_of = np.array([_STEP_KINDS[kind] for kind in kinds], np.uint8)
    rows = np.zeros(len(steps), INTERVAL)
    for name in ("tile", "step", "begin", "end"):
        rows[name] = steps[name]
    rows["instance"] = occurrences(steps)
    rows["kind"] = kind_of[rows["step"]]
    if activity is None:
        return rows[rows["end"] > rows["begin"]], np.zeros(0, BARRIER)
    pieces = _Division(rows, activity, origin)
    result = np.concatenate([pieces.supervisor(), pieces.workers()])
    result = result[np.lexsort((result["begin"], result["context"], result["tile"]))]
    return result, _barriers(activity)


def _resumed(steps: NDArray[np.void], activity: NDArray[np.void]) -> NDArray[np.void]:
    """Steps that went on when recording began, until the tile's first mark."""
    known = activity[activity["kind"] == device.STEP]
    rows = np.zeros(len(known), steps.dtype)
    rows["tile"], rows["step"], rows["begin"] = known["tile"], known["detail"], known["begin"]
    first = np.full(1 << 16, -1, np.int64)
    order = np.argsort(-steps["begin"], kind="stable")
    first[steps["tile"][order]] = steps["begin"][order]
    rows["end"] = first[rows["tile"]]
    return rows[rows["end"] > rows["begin"]]


def occurrences(steps: NDArray[np.void]) -> NDArray[np.int64]:
    """Per row, in time order on each tile: how often its tile has had its step before."""
    key = steps["tile"].astype(np.int64) << 16 | steps["step"]
    order = np.argsort(key, kind="stable")
    ranked = key[order]
    start = np.flatnonzero(np.concatenate([[True], ranked[1:] != ranked[:-1]]))
    lengths = np.diff(np.concatenate([start, [len(ranked)]]))
    result = np.zeros(len(steps), np.int64)
    result[order] = np.arange(len(ranked)) - np.repeat(start, lengths)
    return result


def _barriers(activity: NDArray[np.void]) -> NDArray[np.void]:
    known = activity[activity["kind"] == device.BARRIER]
    rows = np.zeros(len(known), BARRIER)
    rows["group"], rows["tile"] = known["detail"], known["tile"]
    rows["last"], rows["release"] = known["begin"], known["end"]
    return rows[np.argsort(rows["release"], kind="stable")]


class _Division:
    """Steps (one row each, sorted by tile and begin) against the layers of activity."""

    def __init__(self, steps: NDArray[np.void], activity: NDArray[np.void], origin: int) -> None:
        self._origin = origin
        self._steps = steps
        self._activity = activity
        self._spans = Layer(
            moments(steps["tile"], steps["begin"] - origin), moments(steps["tile"], steps["end"] - origin)
        )

    def _layer(self, *kinds: int) -> Layer:
        rows = self._activity[np.isin(self._activity["kind"], kinds)]
        low, high = self._origin, self._origin + (1 << CYCLE_BITS) - 1
        begin = np.clip(rows["begin"], low, high) - low
        end = np.clip(rows["end"], low, high) - low
        return union(moments(rows["tile"], begin), moments(rows["tile"], end))

    def supervisor(self) -> NDArray[np.void]:
        """The division of every tile's time."""
        row, sending, receiving = (
            self._layer(device.ROW),
            self._layer(device.SENDING),
            self._layer(device.RECEIVING),
        )
        working, waiting = self._layer(device.WORKER), self._layer(*_WAITS)
        absent = self._layer(device.ABSENT)
        layers = (self._spans, row, sending, receiving, working, waiting, absent)
        edges = np.unique(np.concatenate([edge for layer in layers for edge in (layer.begin, layer.end)]))
        begin, end = edges[:-1], edges[1:]
        step = self._spans.index(begin)
        begin, end, step = begin[step >= 0], end[step >= 0], step[step >= 0]
        own = self._steps["kind"][step]
        moving = np.array([ROW_IDLE, SEND, RECEIVE, BOTH])[
            sending.covers(begin) + 2 * receiving.covers(begin)
        ]
        # A worker that drains in an exchange step is part of getting ready for it.
        working_as = np.where((own == COMPUTE) | (own == COPY), own, CONTROL)
        kind = np.select(
            [
                own == HOST,
                row.covers(begin),
                working.covers(begin),
                waiting.covers(begin),
                absent.covers(begin),
            ],
            [np.full(len(own), HOST), moving, working_as, SYNCHRONISATION, IDLE],
            CONTROL,
        )
        if not len(step):
            return np.zeros(0, INTERVAL)
        changes = (step[1:] != step[:-1]) | (kind[1:] != kind[:-1])
        first = np.flatnonzero(np.concatenate([[True], changes]))
        last = np.concatenate([first[1:], [len(kind)]]) - 1
        rows = self._steps[step[first]]
        base = (rows["tile"].astype(np.int64) << CYCLE_BITS) - self._origin
        rows["begin"], rows["end"] = begin[first] - base, end[last] - base
        rows["kind"] = kind[first]
        return rows

    def workers(self) -> NDArray[np.void]:
        """Runs of workers, each in the step in which it began."""
        known = self._activity[self._activity["kind"] == device.WORKER]
        at = moments(known["tile"], np.maximum(known["begin"] - self._origin, 0))
        step = self._spans.index(at)
        known, step = known[step >= 0], step[step >= 0]
        rows = self._steps[step]
        own = rows["kind"]
        rows["kind"] = np.where((own == EXCHANGE), CONTROL, own)
        rows["context"], rows["begin"], rows["end"] = known["detail"], known["begin"], known["end"]
        return rows
