"""All the work of a plan, per tile and per class of tiles that do the same."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..plan.builder import traffic_of
from ..plan.movement import COPY, Traffic
from ..plan.steps import Compute, Exchange, Plan
from .calls import Call, lower_call


@dataclass
class Phase:
    """One exchange step: the traffic of each of its moves, with the buffers it runs between.

    Attributes:
        moves: (source buffer, destination buffer, traffic).
        active: tiles that send or receive.
    """

    moves: list[tuple[str, str, Traffic]]
    active: NDArray[np.bool_]

    @property
    def copies(self) -> bool:
        """True if some tile copies what need not leave it."""
        return any(len(traffic.copies) for _, _, traffic in self.moves)

    @property
    def words(self) -> int:
        """32-bit words that leave senders."""
        return sum(int(traffic.fragments["words"].sum()) for _, _, traffic in self.moves)


@dataclass(frozen=True)
class TileClass:
    """Tiles with the same buffers and the same calls.

    Attributes:
        index: position in the list of classes.
        tiles: its logical tiles, rising.
        bytes: buffer name -> bytes, tail excluded; buffers it does not hold are absent.
    """

    index: int
    tiles: NDArray[np.int64]
    bytes: dict[str, int]

    @property
    def representative(self) -> int:
        return int(self.tiles[0])


@dataclass
class TileWork:
    """A lowered plan.

    Attributes:
        plan: where it came from.
        work: per step a Phase or a Call.
        classes: tiles that share structure.
        class_of: class index per logical tile.
    """

    plan: Plan
    work: list[Phase | Call]
    classes: list[TileClass]
    class_of: NDArray[np.int64]


def lower_plan(plan: Plan) -> TileWork:
    """Expand every step into arrays and sort the tiles into classes."""
    work: list[Phase | Call] = []
    for step in plan.steps:
        work.append(lower_call(plan, step) if isinstance(step, Compute) else _phase(plan, step))
    classes, class_of = _classify(plan, work)
    return TileWork(plan, work, classes, class_of)


def _phase(plan: Plan, step: Exchange) -> Phase:
    moves: list[tuple[str, str, Traffic]] = []
    active = np.zeros(plan.tiles, dtype=bool)
    for move in step.moves:
        traffic = traffic_of(plan, move)
        active[traffic.fragments["source"]] = True
        active[traffic.tiles] = True
        moves.append((move.source, move.destination, traffic))
    return Phase(moves, active)


def copies_of(phase: Phase, tile: int) -> list[tuple[str, str, int, int, int]]:
    """Local copies a tile makes for a phase: (source buffer, destination buffer, offsets, 64-bit words)."""
    result = []
    for source, destination, traffic in phase.moves:
        mine = traffic.copies[traffic.copies["tile"] == tile]
        for copy in mine:
            result.append(
                (
                    source,
                    destination,
                    int(copy["source_offset"]),
                    int(copy["destination_offset"]),
                    int(copy["words"]),
                )
            )
    return result


def _classify(plan: Plan, work: list[Phase | Call]) -> tuple[list[TileClass], NDArray[np.int64]]:
    columns: list[NDArray[np.int64]] = []
    held: dict[str, NDArray[np.int64]] = {}
    for name, buffer in plan.buffers.items():
        size = np.zeros(plan.tiles, dtype=np.int64)
        size[: buffer.layout.tiles] = buffer.shard_bytes()
        held[name] = size
        columns.append(size)
    copies: dict[int, list[tuple[int, ...]]] = {tile: [] for tile in range(plan.tiles)}
    for index, item in enumerate(work):
        columns.append(item.active.astype(np.int64))
        if isinstance(item, Call):
            columns += [np.where(item.active, offset, 0) for _, offset in item.operands]
            columns += [
                np.where(item.active, values, 0) for values in (*item.registers, *item.strides.values())
            ]
            continue
        for move, (_, _, traffic) in enumerate(item.moves):
            assert traffic.copies.dtype == COPY
            for copy in traffic.copies.tolist():
                copies[copy[0]].append((index, move, *copy[1:]))
    signature = np.stack(columns, axis=1) if columns else np.zeros((plan.tiles, 1), dtype=np.int64)
    groups: dict[tuple[object, ...], list[int]] = {}
    for tile in range(plan.tiles):
        key = (signature[tile].tobytes(), tuple(copies[tile]))
        groups.setdefault(key, []).append(tile)
    class_of = np.zeros(plan.tiles, dtype=np.int64)
    classes = []
    for index, tiles in enumerate(groups.values()):
        members = np.array(tiles, dtype=np.int64)
        class_of[members] = index
        sizes = {name: int(size[tiles[0]]) for name, size in held.items() if size[tiles[0]]}
        classes.append(TileClass(index, members, sizes))
    return classes, class_of
