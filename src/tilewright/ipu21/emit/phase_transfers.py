"""One exchange phase as the fabric sees it: logical fragments with addresses on physical tiles."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..fabric.transfers import DESTINATION, TRANSFER
from ..lower.tile_work import Phase, TileWork
from ..machine.topology import to_physical
from ..place.placement import Placement
from .bindings import buffer_addresses


def phase_transfers(
    phase: Phase, work: TileWork, placement: Placement
) -> tuple[NDArray[np.void], NDArray[np.void]]:
    """TRANSFER and DESTINATION records of a phase, physical tiles and byte addresses."""
    transfers, destinations = [], []
    first = 0
    for source, destination, traffic in phase.moves:
        source_address = buffer_addresses(source, work, placement)
        destination_address = buffer_addresses(destination, work, placement)
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
