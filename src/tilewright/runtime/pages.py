"""The host's side of a transfer: pages the device can reach, and the batches that move through them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tilewright.package.records import HostCall, HostExchange
from tilewright.package.target import HOST_PAGE_BYTES

POISON = 0xA5
"""Filled into the place of an output before the device writes it, so that a missing write shows."""


class HostPages:
    """Zeroed page-aligned buffers, one per declared page, alive as long as this object."""

    def __init__(self, exchange: HostExchange) -> None:
        total = sum(page.size for page in exchange.pages)
        arena = np.zeros(total + HOST_PAGE_BYTES, np.uint8)
        begin = -arena.ctypes.data % HOST_PAGE_BYTES
        self._exchange = exchange
        self._pages: dict[int, NDArray[np.uint8]] = {}
        for page in exchange.pages:
            self._pages[page.index] = arena[begin : begin + page.size]
            begin += page.size

    def in_attach_order(self) -> list[tuple[int, NDArray[np.uint8]]]:
        """Index and buffer of every page in the order that gives the device its addresses."""
        return [(index, self._pages[index]) for index in self._exchange.attach_order]

    def write_command(self, command: int) -> None:
        """Put the command word where the tile program would look for it."""
        begin = self._exchange.command_offset
        word = np.frombuffer(command.to_bytes(4, "little"), np.uint8)
        self._pages[self._exchange.command_page][begin : begin + 4] = word

    def __getitem__(self, index: int) -> NDArray[np.uint8]:
        return self._pages[index]


class Batch:
    """The slices that move between two barriers."""

    def __init__(self, slices: NDArray[np.void]) -> None:
        self._moves: list[tuple[int, int, int, int]] = slices.tolist()
        self.nbytes = moved_bytes(slices)

    def into_pages(self, pages: HostPages, data: NDArray[np.uint8]) -> None:
        """Copy from the call's host byte string."""
        for page, place, offset, size in self._moves:
            pages[page][place : place + size] = data[offset : offset + size]

    def poison(self, pages: HostPages) -> None:
        """Fill the places of the batch with `POISON`."""
        for page, place, _, size in self._moves:
            pages[page][place : place + size] = POISON

    def from_pages(self, pages: HostPages, data: NDArray[np.uint8]) -> None:
        """Copy to the call's host byte string."""
        for page, place, offset, size in self._moves:
            data[offset : offset + size] = pages[page][place : place + size]


def moved_bytes(slices: NDArray[np.void]) -> int:
    """Bytes that the slices of a call move."""
    return int(slices["size"].sum(dtype=np.int64))


def batches_of(call: HostCall) -> tuple[list[Batch], list[Batch]]:
    """Input and output batches of a call, in order."""
    return (
        _cut(call.inputs, call.input_batch_ends),
        _cut(call.outputs, call.output_batch_ends),
    )


def _cut(slices: NDArray[np.void], ends: list[int]) -> list[Batch]:
    return [Batch(slices[begin:end]) for begin, end in zip([0, *ends], ends, strict=False)]
