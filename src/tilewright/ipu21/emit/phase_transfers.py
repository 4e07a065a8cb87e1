"""One exchange phase as the fabric sees it: logical fragments with addresses on physical tiles."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..fabric.transfers import DESTINATION, TRANSFER
from ..lower.tile_work import Phase, TileWork
from ..machine.topology import to_physical
from ..place.placement import Placement


def phase_transfers(
    phase: Phase, work: TileWork, placement: Placement
) -> tuple[NDArray[np.void], NDArray[np.void]]:
    """TRANSFER and DESTINATION records of a phase, physical tiles and byte addresses."""
    transfers, destinations = [], []
    first = 0
    for source, destination, traffic in phase.moves:
        source_address = _addresses(source, work, placement)
        destination_address = _addresses(destination, work, placement)
        fragments = traffic.fragments
        sent = np.zeros(len(fragments), dtype=TRANSFER)
        sent["source"] = to_physical(fragments["source"])
        sent["address"] = source_address[fragments["source"]] + fragments["source_offset"]
        sent["words"] = fragments["words"]
        sent["first"] = fragments["first"] + first
        sent["count"] = fragments["count"]
        received = np.zeros(len(traffic.tiles), dtype=DESTINATION)
        received["tile"] = to_physical(traffic.tiles)
        # Fragments list their receivers in order and without gaps.
        offsets = np.repeat(fragments["destination_offset"], fragments["count"])
        received["address"] = destination_address[traffic.tiles] + offsets
        transfers.append(sent)
        destinations.append(received)
        first += len(received)
    return np.concatenate(transfers), np.concatenate(destinations)


def _addresses(buffer: str, work: TileWork, placement: Placement) -> NDArray[np.int64]:
    """Address of a buffer on each logical tile; -1 where the tile does not hold it."""
    per_class = np.array(
        [placed[buffer].address if buffer in placed else -1 for placed in placement.classes], dtype=np.int64
    )
    return per_class[work.class_of]
