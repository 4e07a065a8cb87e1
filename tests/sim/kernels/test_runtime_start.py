"""The start-up as it runs on a tile: what each barrier sees, and the state the program finds."""

from __future__ import annotations

import pytest

from tilewright.errors import LinkError
from tilewright.ipu21.isa import build, csrs
from tilewright.ipu21.kernels import CODE_END, COMPUTING, IDLE, link_kernels
from tilewright.ipu21.machine.memory import ENTRY_POINT, IMAGE_BASE
from tilewright.ipu21.simulator.stops import StopKind
from tilewright.ipu21.simulator.tile import Tile
from tilewright.ipu21.toolchain import LinkedImage

pytestmark = pytest.mark.sim

PROGRAM = 0x5C000
MASK = (1 << 64) - 1


def loaded(image: LinkedImage, physical: int) -> Tile:
    """The tile as the loader leaves it, with a program that ends at once."""
    tile = Tile(physical)
    for segment in image.segments:
        tile.load(segment.address, segment.data, len(segment.data))
    words = [build.setzi(0, 0), build.br(0)]
    program = b"".join(word.to_bytes(4, "little") for word in words)
    tile.load(PROGRAM, program, len(program))
    tile.pc = IMAGE_BASE
    return tile


def to_barrier(tile: Tile, zone: int) -> None:
    stop = tile.run()
    while stop.kind == StopKind.WINDOW_CLOSED:
        stop = tile.run()
    assert (stop.kind, stop.zone) == (StopKind.SYNC, zone)


def seeded(seed: int) -> tuple[int, int]:
    """State of the published generator (xoroshiro128aox) after seeding and 15 draws."""
    low, inverse = seed, ~seed & 0xFFFFFFFF
    s0 = inverse << 32 | low
    s1 = ((inverse << 13 | low >> 19) & 0xFFFFFFFF) << 32 | ((low << 13 | inverse >> 19) & 0xFFFFFFFF)
    for _ in range(15):
        x = s0 ^ s1
        s0 = ((s0 << 55 | s0 >> 9) ^ x ^ (x << 14)) & MASK
        s1 = (x << 36 | x >> 28) & MASK
    return s0, s1


def test_only_a_start_up_routine_is_an_entry() -> None:
    assert link_kernels(("copy_u64", "gemm_f16"), {}).entry is None


def test_start_of_a_computing_tile() -> None:
    image = link_kernels((*COMPUTING, "gemm_f16"), {"tile_program": PROGRAM})
    assert image.entry == ENTRY_POINT
    tile = loaded(image, physical=1291)
    to_barrier(tile, 3)
    tile.resume(1000)
    to_barrier(tile, 7)
    assert tile.active_workers == 0, "nobody is still drawing seeds when the host is met"
    assert tile.csr(csrs.INCOMING_MUX) == 0x600
    tile.resume(5000)
    assert tile.run().kind == StopKind.ENDED

    assert tile.csr(csrs.INCOMING_MUX) == 0x640
    assert tile.csr(csrs.OUTGOING_BASE) == tile.csr(csrs.INCOMING_BASE) == 0
    assert tile.m[0, 11] == 0x586E0
    assert tile.active_workers == 0
    for worker in range(6):
        assert tile.csr(0x21 + worker) == 0x580E0 + 0x100 * worker
        numbers = [tile.csr(0x103 + i, worker + 1) for i in range(4)]
        state = (numbers[1] << 32 | numbers[0], numbers[3] << 32 | numbers[2])
        assert state == seeded(1292 * 8 + worker)


def test_idle_tiles_stay_alike() -> None:
    """An idle start never asks which tile it is: the object may go on standing for many."""
    image = link_kernels(IDLE, {"tile_program": PROGRAM})
    assert image.entry == ENTRY_POINT
    tile = loaded(image, physical=7)
    tile.shared = True
    to_barrier(tile, 3)
    tile.resume(0)
    to_barrier(tile, 7)
    assert tile.csr(csrs.INCOMING_MUX) == 0x600
    tile.resume(0)
    assert tile.run().kind == StopKind.ENDED
    assert tile.csr(csrs.INCOMING_MUX) == 0x640


def test_follower_sits_out_two_barriers() -> None:
    tile = loaded(link_kernels(IDLE, {"tile_program": PROGRAM}), physical=0)
    tile.pc = link_kernels(IDLE, {"tile_program": PROGRAM}).symbols["host_follower"]
    to_barrier(tile, 1)
    assert tile.sans == 2


def test_images_begin_with_the_launch_slot_and_fit_their_element() -> None:
    for names in (COMPUTING, IDLE):
        image = link_kernels(names, {"tile_program": PROGRAM})
        assert image.segments[0].address == IMAGE_BASE
        assert image.segments[0].data[:4] == (0x19E00000).to_bytes(4, "little")
        assert max(segment.address + len(segment.data) for segment in image.segments) <= CODE_END


def test_a_missing_program_is_named() -> None:
    with pytest.raises(LinkError, match="tile_program"):
        link_kernels(IDLE, {})
