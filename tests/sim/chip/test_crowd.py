"""Asking many tiles at once gives what asking each gives: results, cycles, barriers, memory, logs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tilewright as tw
from tilewright import ops
from tilewright.ipu21.isa.csrs import INCOMING_DCOUNT
from tilewright.ipu21.simulator.checks import Checks
from tilewright.ipu21.simulator.classes import BEGUN
from tilewright.ipu21.simulator.crowd import Crowd
from tilewright.ipu21.simulator.device import SimulatedDevice
from tilewright.ipu21.simulator.single import prepare
from tilewright.ipu21.simulator.stops import StopKind
from tilewright.ipu21.simulator.tile import Tile
from tilewright.ipu21.simulator.tiles import CompiledTiles
from tilewright.ipu21.simulator.together import TileByTile, Together
from tilewright.ipu21.toolchain import assemble, link
from tilewright.package.records import Package
from tilewright.runtime.session import Session

pytestmark = pytest.mark.sim

TILES = 23
GENERATOR = np.random.default_rng(5)
PLAIN = Checks()
W = (GENERATOR.standard_normal((48, 48)) / 7).astype(np.float32)
ONE, ZERO = np.ones(48, np.float32), np.zeros(48, np.float32)


def network(x: Any) -> dict[str, Any]:
    """A loop, so that phases happen again, with reductions and rearrangements in it."""

    def layer(y: Any) -> Any:
        turned = ops.transpose(ops.gelu(y @ W), permutation=(1, 0))
        return ops.layer_norm(y + ops.transpose(turned, permutation=(1, 0)), ONE, ZERO)

    return {"y": ops.repeat(layer, 3, x)}


def everything(package: Package, inputs: list[NDArray[np.float32]], checks: Checks = PLAIN) -> list[Any]:
    with SimulatedDevice(checks=checks) as device, Session(device, package) as session:
        found: list[Any] = []
        for x in inputs:
            found.append(session.run({"x": x})["y"].tobytes())
            assert session.last_run is not None
            found += [session.last_run.cycles, device.intervals().tobytes()]
        chip = device.chip
        found += [list(chip.barriers), [group.tile.clock for group in chip.classes]]
        tiles = [group.tile for group in chip.classes]
        found += [[tile.memory.tobytes() for tile in tiles]]
        return [*found, [tile._shadow.tobytes() for tile in tiles if isinstance(tile, Tile)]]


@pytest.mark.parametrize("checks", [PLAIN, Checks.thorough()], ids=["plain", "thorough"])
def test_whole_runs_are_alike(checks: Checks, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tw.compile(tw.trace(network, x=tw.TensorType((40, 48))), tiles=TILES)
    inputs = [GENERATOR.standard_normal((40, 48)).astype(np.float32) for _ in range(3)]
    asked = []
    together = CompiledTiles.together

    def counted(self: CompiledTiles, tiles: Any) -> Together:
        found = together(self, tiles)
        assert isinstance(found, Crowd)
        asked.append(len(tiles))
        return found

    monkeypatch.setattr(CompiledTiles, "together", counted)
    quick = everything(package, inputs, checks)
    assert max(asked) > TILES
    monkeypatch.setattr(CompiledTiles, "together", lambda self, tiles: TileByTile(tiles, self.run))
    assert quick == everything(package, inputs, checks)
    # All but the last, what has been written, is the same without checks.
    assert quick[:-1] == everything(package, inputs)[:-1]


def crowd_of(tiles: list[Tile]) -> Crowd:
    return Crowd(tiles, CompiledTiles(tiles[0].checks).run_states)


def tiles_at_sync(zone: int, following: str, checks: Checks = PLAIN) -> list[Tile]:
    source = f"""
.section .text.f, "ax"
.globl f
.type f, @function
.align 8
f:
    setzi $m0, 99
    put $INCOMING_MUX, $m0
    put $INCOMING_DCOUNT, $m0
    sync {zone}
    {following}
    br $m10
.align 8
g:  br $m10
"""
    image = link([assemble(source)], roots=["f"])
    tiles = [prepare(image, "f", checks=checks) for _ in range(3)]
    for number, tile in enumerate(tiles):
        tile.physical = 7 * number + 1
        assert tile.run().kind is StopKind.SYNC
    return tiles


@pytest.mark.parametrize("zone", [3, 7])
@pytest.mark.parametrize("following", ["nop", "call $m10, g"])
def test_going_on_after_a_barrier(zone: int, following: str) -> None:
    alone, many = tiles_at_sync(zone, following), tiles_at_sync(zone, following)
    crowd = crowd_of(many)
    crowd.resume(np.array([0, 2]), 500)
    for tile in (alone[0], alone[2]):
        tile.resume(500)
    for one, other in zip(alone, many, strict=True):
        assert one.clock == other.clock
    assert (alone[0].clock == 494) is (zone == 3 and following != "nop")


def test_exchange_registers() -> None:
    tiles = tiles_at_sync(3, "nop")
    crowd = crowd_of(tiles)
    assert crowd.begun().tolist() == [[tile.csr(number) for number in BEGUN] for tile in tiles]
    assert crowd.begun()[1][0] == 99
    # Ids are 1, 8 and 15.
    crowd.count_down(np.array([15, 1]), np.array([100, 3]))
    assert [tile.csr(INCOMING_DCOUNT) for tile in tiles] == [96, 99, (1 << 17) - 1]


def test_stale_code_is_forgotten() -> None:
    tiles = tiles_at_sync(7, "nop")
    crowd = crowd_of(tiles)
    begin = tiles[0].pc - 16
    decoded = [tile._decoded.copy() for tile in tiles]
    assert decoded[1].any()
    crowd.invalidate(np.array([8]), np.array([begin + 1]), np.array([7]))
    tiles[0].invalidate(begin + 1, 7)
    assert np.array_equal(tiles[0]._decoded, tiles[1]._decoded)
    assert not np.array_equal(tiles[1]._decoded, decoded[1])
    assert np.array_equal(tiles[2]._decoded, decoded[2])


def test_what_the_fabric_has_written() -> None:
    """Ranges that begin and end anywhere, one of them empty."""
    alone, many = (tiles_at_sync(7, "nop", Checks.thorough()) for _ in range(2))
    one_by_one = TileByTile(alone, CompiledTiles(PLAIN).run)
    ranges = [(1, 0x60001, 3), (8, 0x60004, 64), (8, 0x70006, 11), (15, 0x90007, 1), (1, 0x60010, 0)]
    arguments = [np.array(column) for column in zip(*ranges, strict=True)]
    for together in (one_by_one, crowd_of(many)):
        together.invalidate(*arguments)
    for one, other in zip(alone, many, strict=True):
        assert np.array_equal(one._shadow, other._shadow)
        assert np.array_equal(one._touched, other._touched)
    assert not np.array_equal(alone[0]._shadow, alone[1]._shadow)


@pytest.mark.parametrize(
    ("place", "begin", "size", "missing"),
    [
        (0, 0x60000, 8, 0x60000),
        (0, 0x60001, 8, 0x60004),
        (1, 0x60001, 8, 0x60001),
        (1, 0x60004, 64, None),
        (1, 0x60004, 65, 0x60044),
        (1, 0x60010, 0x40, 0x60044),
        (2, 0x60004, 0, None),
        (2, 0x60004, 1, 0x60004),
    ],
)
def test_what_nobody_has_written(place: int, begin: int, size: int, missing: int | None) -> None:
    tiles = tiles_at_sync(7, "nop", Checks.thorough())
    tiles[0].write(0x60001, bytes(3))
    tiles[1].write(0x60004, bytes(64))
    ranges = [(1, 0x60008, 16), (place, begin, size), (2, 0x60000, 4)]
    arguments = [np.array(column) for column in zip(*ranges, strict=True)]
    wanted = (2, 0x60000) if missing is None else (1, missing)
    assert TileByTile(tiles, CompiledTiles(PLAIN).run).unwritten(*arguments) == wanted
    assert crowd_of(tiles).unwritten(*arguments) == wanted
    some = [column[:1] for column in arguments]
    assert crowd_of(tiles).unwritten(*some) is None
    assert crowd_of(tiles_at_sync(7, "nop")).unwritten(*arguments) is None
